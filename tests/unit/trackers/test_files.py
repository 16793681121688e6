"""Folders of runs: what is read from files that are odd, broken or incomplete."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtriage.errors import RunNotFoundError, RunReadError, SourceError
from runtriage.model.history import RunHistory
from runtriage.model.vocab import RunState
from runtriage.registry import open_source, split_run

Write = Callable[..., None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an empty folder of runs."""
    folder = tmp_path / "runs-here"
    folder.mkdir()
    return folder


def put(root: Path, name: str, *, facts: object = None, **histories: str) -> None:
    """Write one run: ``csv="…"`` or ``jsonl="…"``; facts are JSON, or text as it is."""
    folder = root / name
    folder.mkdir(parents=True)
    if facts is not None:
        (folder / "run.json").write_text(facts if isinstance(facts, str) else json.dumps(facts))
    for form, text in histories.items():
        (folder / f"history.{form}").write_text(text)


def only(root: Path) -> RunHistory:
    """Read the only run of a folder."""
    source = open_source(f"files:{root}")
    (info,) = source.list_runs()
    return source.read(info)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nan", math.nan), ("NaN", math.nan), ("inf", math.inf), ("-inf", -math.inf), ("Infinity", math.inf),
        ("-Infinity", -math.inf), ("+Inf", math.inf), ("1e300", 1e300), ("1e999", math.inf), ("5e-324", 5e-324),
    ],
)  # fmt: skip
def test_spellings_of_hard_numbers(root: Path, text: str, value: float) -> None:
    """Every spelling of NaN and infinity is a logged value."""
    put(root, "r", csv=f"step,loss\n1,{text}\n2,0.5\n")
    np.testing.assert_array_equal(only(root).tracks["loss"].value, [value, 0.5])


def test_empty_cell_is_not_logged(root: Path) -> None:
    """An empty cell is no point, beside NaN which is one."""
    put(root, "r", csv="step,loss,val\n1,nan,\n2,1.0,3.0\n")
    assert only(root).tracks["val"].step.tolist() == [2]


def test_parquet_null_is_not_nan(root: Path) -> None:
    """In Parquet, null is not logged and NaN is."""
    put(root, "r", facts={})
    table = pa.table({"step": [0, 1, 2], "loss": pa.array([None, math.nan, 1.0], from_pandas=False)})
    pq.write_table(table, root / "r" / "history.parquet")
    assert only(root).tracks["loss"].step.tolist() == [1, 2]


def test_numbers_in_quotes(root: Path) -> None:
    """JSON lines may quote their numbers."""
    put(root, "r", jsonl='{"step": 1, "loss": "2.5"}\n{"step": 2, "loss": "Infinity"}\n')
    assert only(root).tracks["loss"].value.tolist() == [2.5, math.inf]


def test_bare_nan_in_json_lines(root: Path) -> None:
    """JSON lines with a bare NaN are read although they are no JSON."""
    put(root, "r", jsonl='{"step": 1, "loss": NaN}\n{"step": 2, "loss": 1.0}\n')
    np.testing.assert_array_equal(only(root).tracks["loss"].value, [math.nan, 1.0])


def test_cut_last_line_is_noted(root: Path) -> None:
    """A last line that was cut off is left out, and the notes say so."""
    put(root, "r", jsonl='{"step": 1, "loss": 1.0}\n{"step": 2, "lo')
    assert any("cut off" in note for note in only(root).notes)


def test_steps_stay_as_logged(root: Path) -> None:
    """Repeated, negative and backward steps near the ends of int64 are kept exactly."""
    steps = [2**63 - 1, -(2**63), 3, 3, -1, 2**53 + 1]
    put(root, "r", csv="step,loss\n" + "".join(f"{step},1.0\n" for step in steps))
    assert only(root).tracks["loss"].step.tolist() == steps


def test_steps_beyond_int64_give_way_to_row_numbers(root: Path) -> None:
    """Steps that no int64 holds are replaced by the number of the row, and the notes say so."""
    put(root, "r", csv="step,loss\n9223372036854775808,1\n3,2\n")
    found = only(root)
    assert found.tracks["loss"].step.tolist() == [0, 1]
    assert any("number of the row" in note for note in found.notes)


def test_no_step_column(root: Path) -> None:
    """Without a step column the number of the row is the step."""
    put(root, "r", csv="loss\n3\n2\n")
    assert only(root).tracks["loss"].step.tolist() == [0, 1]


def test_slash_in_metric(root: Path) -> None:
    """A slash in a metric's name stays."""
    put(root, "r", csv="step,train/loss\n1,2\n")
    assert list(only(root).tracks) == ["train/loss"]


def test_ragged_lines_are_left_out(root: Path) -> None:
    """A line with too few cells is left out and counted."""
    put(root, "r", csv="step,loss\n1,1\n2\n3,3\n")
    found = only(root)
    assert found.tracks["loss"].step.tolist() == [1, 3]
    assert any("1 lines" in note for note in found.notes)


def test_names_of_data_become_codes(root: Path) -> None:
    """The name of the data source is read as a code, so that a switch shows."""
    put(root, "r", csv="step,data_source\n1,web\n2,web\n3,code\n")
    assert only(root).tracks["data_source"].value.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("text", ["", "step,loss\n"])
def test_history_without_rows(root: Path, text: str) -> None:
    """A history without a row is an empty run with a note."""
    put(root, "r", facts={}, csv=text)
    found = only(root)
    assert (dict(found.tracks), bool(found.notes)) == ({}, True)


def test_run_without_history(root: Path) -> None:
    """A run that has facts only is an empty run with a note."""
    put(root, "r", facts={"name": "n"})
    assert only(root).notes == ("the run has no history file",)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_broken_file_names_itself(root: Path, form: str) -> None:
    """A file that cannot be read at all is a typed error that says where it lies."""
    put(root, "r", facts={})
    path = root / "r" / f"history.{form}"
    path.write_bytes(b"\x00\x01\xff" * 100)
    with pytest.raises(RunReadError) as caught:
        only(root)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("facts", ["{", "[1]", "\ud800".encode("utf-8", "surrogatepass").decode("latin1"), "null"])
def test_broken_facts_cost_only_the_facts(root: Path, facts: str) -> None:
    """A broken run.json costs the config, not the curves."""
    put(root, "r", facts=facts, csv="step,loss\n1,2\n")
    assert list(only(root).tracks) == ["loss"]


def test_missing_facts_have_defaults(root: Path) -> None:
    """Fields that run.json does not have take their defaults; the folder gives the id."""
    put(root, "r", facts={}, csv="step,loss\n1,2\n")
    info = only(root).info
    assert (info.id, info.name, info.state, dict(info.config)) == ("r", "r", RunState.UNKNOWN, {})


def test_link_that_is_no_web_address_is_dropped(root: Path) -> None:
    """A URL of another kind than http is not passed on."""
    put(root, "r", facts={"url": "javascript:alert(1)"})
    assert only(root).info.url is None


def test_two_folders_with_one_id_are_two_runs(root: Path) -> None:
    """Runs that claim one id are told apart by their folders."""
    put(root, "a", facts={"id": "same"}, csv="step,loss\n1,1\n")
    put(root, "b", facts={"id": "same"}, csv="step,loss\n1,2\n")
    source = open_source(f"files:{root}")
    values = [source.read(info).tracks["loss"].value.tolist() for info in source.list_runs()]
    assert values == [[1.0], [2.0]]


def test_ambiguous_name_is_not_found(root: Path) -> None:
    """A name that two runs share finds neither."""
    put(root, "a", facts={"name": "n"})
    put(root, "b", facts={"name": "n"})
    with pytest.raises(RunNotFoundError, match="2 runs"):
        open_source(f"files:{root}").find_run("n")


def test_runs_in_a_folder_called_runs(root: Path) -> None:
    """Runs may lie one folder deeper, in ``runs``."""
    put(root / "runs", "r", csv="step,loss\n1,2\n")
    assert only(root).info.id == "r"


def test_bare_tables_are_runs(root: Path) -> None:
    """A folder of tables is one run a table, named by its stem."""
    (root / "first.csv").write_text("step,loss\n1,2\n")
    assert (only(root).info.name, only(root).tracks["loss"].value.tolist()) == ("first", [2.0])


def test_tables_beside_runs_are_not_runs(root: Path) -> None:
    """Tables beside run folders are something else."""
    put(root, "r", csv="step,loss\n1,2\n")
    (root / "labels.csv").write_text("a,b\n1,2\n")
    assert [info.id for info in open_source(f"files:{root}").list_runs()] == ["r"]


def test_deleted_run_is_not_found(root: Path) -> None:
    """A run whose folder went away after listing is a typed error."""
    put(root, "r", csv="step,loss\n1,2\n")
    source = open_source(f"files:{root}")
    (info,) = source.list_runs()
    (root / "r" / "history.csv").unlink()
    (root / "r").rmdir()
    with pytest.raises(RunNotFoundError):
        source.read(info)


def test_missing_folder_is_a_source_error(root: Path) -> None:
    """A folder that is not there is said on listing."""
    with pytest.raises(SourceError, match="no such folder"):
        list(open_source(f"files:{root / 'absent'}").list_runs())


def test_cursor_moves_with_the_history(root: Path) -> None:
    """A listing tells a run that went on from one that did not."""
    put(root, "a", csv="step,loss\n1,2\n")
    put(root, "b", csv="step,loss\n1,2\n")
    source = open_source(f"files:{root}")
    before = {info.id: info.cursor for info in source.list_runs()}
    with (root / "a" / "history.csv").open("a") as file:
        file.write("2,3\n")
    after = {info.id: info.cursor for info in source.list_runs()}
    assert (before["a"] != after["a"], before["b"] == after["b"]) == (True, True)


def test_address_of_a_run_is_split(root: Path) -> None:
    """``files:DIR/RUN`` names a run of ``files:DIR``."""
    put(root, "r", facts={"id": "r1"})
    assert split_run(f"files:{root}/r") == (f"files:{root}", "r1")


def test_address_of_a_folder_is_not_split(root: Path) -> None:
    """``files:DIR`` names no run."""
    put(root, "r", facts={})
    assert split_run(f"files:{root}") == (f"files:{root}", None)


def test_absent_run_is_still_a_run(root: Path) -> None:
    """A name below a folder of runs is taken for a run, so the error can say that it is not there."""
    put(root, "r", facts={})
    assert split_run(f"files:{root}/zzz") == (f"files:{root}", "zzz")


def test_bytes_that_are_no_text_cost_their_line_only(root: Path) -> None:
    """A line with bytes that are not UTF-8 is left out with a note; the rows around it are read."""
    put(root, "r", csv="step,loss\n1,2.0\n")
    with (root / "r" / "history.csv").open("ab") as file:
        file.write(b"\xff\xfe\x00\n2,1.5\n")
    history = only(root)
    np.testing.assert_array_equal(history.tracks["loss"].value, [2.0, 1.5])
    assert any("1 lines" in note for note in history.notes)

"""``.wandb`` files: old and new keys, damage, attempts, and the real ones."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from runtriage.errors import RunNotFoundError, RunReadError
from runtriage.model.history import RunHistory
from runtriage.model.vocab import RunState
from runtriage.registry import open_source, split_run
from tests.oracles.wandb_log import BLOCK, ended, history, item, log, message, run, varint


def put(root: Path, *records: bytes, folder: str = "run-20240101_000000-abc") -> Path:
    """Write one attempt and return its log."""
    path = root / "wandb" / folder / "run-abc.wandb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(log(records))
    return path


def rows(start: int, stop: int) -> list[bytes]:
    """Return plain rows with the steps of a range."""
    return [history({("loss",): repr(1 / (i + 1)), ("_step",): str(i)}, i, i) for i in range(start, stop)]


def only(root: Path) -> RunHistory:
    """Read the only run of a folder."""
    source = open_source(f"wandb-local:{root}")
    (info,) = source.list_runs()
    return source.read(info)


@pytest.mark.parametrize("key", ["train/loss", ("train/loss",)])
def test_plain_and_nested_keys(tmp_path: Path, key: str | tuple[str, ...]) -> None:
    """Old clients write ``key``, new ones ``nested_key``: both are the metric."""
    put(tmp_path, history({key: "0.5", "_step": "3"}))
    assert only(tmp_path).tracks["train/loss"].step.tolist() == [3]


@pytest.mark.parametrize("first", [b"", message(16, b'"\x02id'), message(200, b"\n\x02id")])
def test_fields_that_come_before_the_content(tmp_path: Path, first: bytes) -> None:
    """Clients of today say how a record is to be handled before what it holds; all of it is read all the same."""
    update = message(5, message(1, item("late", "5")))
    records = [run("abc", {"lr": "0.1"}), b"\x08\x02" + update, *rows(0, 2), ended(1)]
    put(tmp_path, *(record[:2] + first + first + record[2:] for record in records))
    found = only(tmp_path)
    assert dict(found.info.config) == {"lr": 0.1, "late": 5}
    assert (found.info.state, found.info.id) == (RunState.FAILED, "abc")
    assert found.tracks["loss"].step.tolist() == [0, 1]


def test_nested_keys_are_joined_by_dots(tmp_path: Path) -> None:
    """A nested value of a new client has a dotted name."""
    put(tmp_path, history({("val", "loss"): "0.5"}))
    assert list(only(tmp_path).tracks) == ["val.loss"]


def test_nested_values_are_split(tmp_path: Path) -> None:
    """A nested value of an old client, one JSON text, has the same dotted names."""
    put(tmp_path, history({"val": '{"loss": 0.5, "top": {"1": 0.25}}'}))
    assert sorted(only(tmp_path).tracks) == ["val.loss", "val.top.1"]


@pytest.mark.parametrize("text", ["NaN", '"NaN"', '"nan"'])
def test_nan_as_token_and_as_text(tmp_path: Path, text: str) -> None:
    """NaN is a value, bare or in quotes."""
    put(tmp_path, history({"loss": text}))
    np.testing.assert_array_equal(only(tmp_path).tracks["loss"].value, [math.nan])


@pytest.mark.parametrize("text", ["-Infinity", '"-Infinity"', "-1e999"])
def test_infinity_as_token_and_as_text(tmp_path: Path, text: str) -> None:
    """Infinity is a value, bare or in quotes."""
    put(tmp_path, history({"loss": text}))
    assert only(tmp_path).tracks["loss"].value.tolist() == [-math.inf]


def test_null_is_not_logged(tmp_path: Path) -> None:
    """A null is no point."""
    put(tmp_path, history({"loss": "null"}), history({"loss": "1"}))
    assert only(tmp_path).tracks["loss"].value.tolist() == [1.0]


def test_media_are_no_metrics(tmp_path: Path) -> None:
    """Histograms and images are left out."""
    put(tmp_path, history({"h": '{"_type": "histogram", "values": [1]}', "loss": "1"}))
    assert list(only(tmp_path).tracks) == ["loss"]


def test_text_is_noted(tmp_path: Path) -> None:
    """Text that is no number is counted in the notes."""
    put(tmp_path, history({"t": '"hello"'}))
    assert any("not numbers" in note for note in only(tmp_path).notes)


def test_own_entries_are_no_metrics(tmp_path: Path) -> None:
    """The client's own row counter, clock and run time are no metrics."""
    put(tmp_path, history({"_step": "1", "_timestamp": "1.7e9", "_runtime": "2", "loss": "1"}))
    assert list(only(tmp_path).tracks) == ["loss"]


def test_clock_comes_along(tmp_path: Path) -> None:
    """Each point has the time of its row."""
    put(tmp_path, history({"_timestamp": "1.7e9", "loss": "1"}))
    wall = only(tmp_path).tracks["loss"].wall
    assert wall is not None
    assert wall.tolist() == [1.7e9]


def test_typed_values_without_text(tmp_path: Path) -> None:
    """A value of a newer client that has no JSON text is read from its typed field."""
    typed = message(2, b"n") + varint(5 << 3) + varint(13)  # sint64: 13 stands for -7
    put(tmp_path, b"\x08\x01" + message(2, message(1, typed)))
    assert only(tmp_path).tracks["n"].value.tolist() == [-7.0]


def test_typed_values_beside_text(tmp_path: Path) -> None:
    """A typed value before the JSON text does not hide the text."""
    both = message(2, b"n") + varint(5 << 3) + varint(13) + message(16, b"-7")
    put(tmp_path, b"\x08\x01" + message(2, message(1, both)))
    assert only(tmp_path).tracks["n"].value.tolist() == [-7.0]


def test_steps_of_the_record_serve_without_the_item(tmp_path: Path) -> None:
    """Where ``_step`` is not among the items, the record's own step counts, zero too."""
    put(tmp_path, history({"loss": "1"}, 1, 0), history({"loss": "2"}, 2, 300))
    assert only(tmp_path).tracks["loss"].step.tolist() == [0, 300]


def test_steps_keep_all_digits(tmp_path: Path) -> None:
    """A step that no float holds is kept exactly."""
    put(tmp_path, history({"loss": "1", "_step": str(2**53 + 1)}))
    assert only(tmp_path).tracks["loss"].step.tolist() == [2**53 + 1]


def test_records_longer_than_a_block(tmp_path: Path) -> None:
    """A row in several pieces is read, in its place among the others."""
    long = history({"loss": "0.5", "blob": json.dumps("x" * 3 * BLOCK), "_step": "1"})
    put(tmp_path, history({"loss": "1", "_step": "0"}), long, history({"loss": "0.25", "_step": "2"}))
    assert only(tmp_path).tracks["loss"].value.tolist() == [1.0, 0.5, 0.25]


def test_cut_tail_is_noted(tmp_path: Path) -> None:
    """A file that ends inside a record keeps what came before, and says so."""
    path = put(tmp_path, *rows(0, 10))
    path.write_bytes(path.read_bytes()[:-5])
    found = only(tmp_path)
    assert found.tracks["loss"].step.size == 9
    assert any("ends inside" in note for note in found.notes)


def test_unwritten_tail_is_noted(tmp_path: Path) -> None:
    """Space that was reserved and never written is an end, and said."""
    path = put(tmp_path, *rows(0, 10))
    path.write_bytes(path.read_bytes() + bytes(1000))
    found = only(tmp_path)
    assert (found.tracks["loss"].step.size, any("ends inside" in note for note in found.notes)) == (10, True)


def test_wrong_checksum_costs_one_row(tmp_path: Path) -> None:
    """A row whose content changed is left out and counted; the rows behind it are read."""
    path = put(tmp_path, *rows(0, 10))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"0.25", b"9.25"))
    found = only(tmp_path)
    assert found.tracks["loss"].step.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert any("1 rows" in note and "checksum" in note for note in found.notes)


def test_damaged_block_is_noted(tmp_path: Path) -> None:
    """A block whose headers are destroyed costs its own rows only."""
    path = put(tmp_path, *rows(0, 3000))
    content = bytearray(path.read_bytes())
    content[BLOCK : BLOCK + 200] = b"\xff" * 200
    path.write_bytes(bytes(content))
    found = only(tmp_path)
    assert found.tracks["loss"].step.max() == 2999
    assert any("damaged" in note for note in found.notes)


def test_empty_file_is_noted(tmp_path: Path) -> None:
    """A file of no bytes is a run without history."""
    put(tmp_path).write_bytes(b"")
    assert any("is empty" in note for note in only(tmp_path).notes)


def test_foreign_file_is_an_error(tmp_path: Path) -> None:
    """A file that is something else is a typed error with its path."""
    path = put(tmp_path)
    path.write_bytes(b"hello world, this is no log at all")
    with pytest.raises(RunReadError, match=r"not a \.wandb file") as caught:
        only(tmp_path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    ("records", "state"),
    [((ended(0),), RunState.FINISHED), ((ended(1),), RunState.FAILED), ((), RunState.UNKNOWN)],
)
def test_state_from_the_exit_record(tmp_path: Path, records: tuple[bytes, ...], state: RunState) -> None:
    """The exit code tells the state; without one nobody knows."""
    put(tmp_path, run("abc"), *records)
    assert only(tmp_path).info.state is state


def test_config_is_folded(tmp_path: Path) -> None:
    """Later config records change the config of the run record; the client's own entry is left out."""
    first = run("abc", {"lr": "0.1", "gone": "1", "_wandb": "{}"})
    changed = message(5, message(1, item(("opt", "name"), '"adam"')) + message(2, item("gone", "null")))
    put(tmp_path, first, b"\x08\x02" + changed)
    assert only(tmp_path).info.config == {"lr": 0.1, "opt": {"name": "adam"}}


def test_attempts_are_read_in_order(tmp_path: Path) -> None:
    """Attempts of one run are one history, oldest first, and the step that goes back is kept."""
    put(tmp_path, run("abc"), *rows(3, 6), folder="run-20240102_000000-abc")
    put(tmp_path, run("abc"), *rows(0, 5), folder="run-20240101_000000-abc")
    assert only(tmp_path).tracks["loss"].step.tolist() == [0, 1, 2, 3, 4, 3, 4, 5]


def test_attempts_are_noted(tmp_path: Path) -> None:
    """The notes say where later attempts begin, though the step may not go back."""
    put(tmp_path, run("abc"), *rows(5, 8), folder="run-20240102_000000-abc")
    put(tmp_path, run("abc"), *rows(0, 5), folder="run-20240101_000000-abc")
    assert "the run has 2 attempts; the later ones begin at step 5" in only(tmp_path).notes


def test_broken_attempt_does_not_cost_the_other(tmp_path: Path) -> None:
    """A log of one attempt that cannot be read is noted, and the other attempt is read."""
    put(tmp_path, run("abc"), *rows(0, 5), folder="run-20240101_000000-abc")
    put(tmp_path, folder="run-20240102_000000-abc").write_bytes(b"this is no log at all, but long enough")
    source = open_source(f"wandb-local:{tmp_path}")
    (info,) = source.list_runs()
    found = source.read(info)
    assert (found.tracks["loss"].step.size, "not a .wandb file" in " ".join(found.notes)) == (5, True)


def test_latest_run_is_not_a_second_run(tmp_path: Path) -> None:
    """The link to the latest run is not followed."""
    path = put(tmp_path, run("abc"), *rows(0, 5))
    (tmp_path / "wandb" / "latest-run").symlink_to(path.parent.name)
    assert only(tmp_path).tracks["loss"].step.size == 5


def test_summary_stands_in_for_history(tmp_path: Path) -> None:
    """A run folder without a log has the last values of its summary, and says so."""
    files = tmp_path / "wandb" / "run-20240101_000000-abc" / "files"
    files.mkdir(parents=True)
    (files / "wandb-summary.json").write_text('{"loss": NaN, "_step": 7}')
    (files / "config.yaml").write_text("wandb_version: 1\nlr:\n  desc: null\n  value: 0.1\n")
    found = only(tmp_path)
    assert (found.tracks["loss"].step.tolist(), found.info.config) == ([7], {"lr": 0.1})
    assert any("only the last values" in note for note in found.notes)


def test_folder_gone_is_not_found(tmp_path: Path) -> None:
    """A run whose folder went away after listing is a typed error."""
    path = put(tmp_path, run("abc"), *rows(0, 5))
    source = open_source(f"wandb-local:{tmp_path}")
    (info,) = source.list_runs()
    path.unlink()
    path.parent.rmdir()
    with pytest.raises(RunNotFoundError):
        source.read(info)


def test_address_of_a_folder_is_split(tmp_path: Path) -> None:
    """The folder of an attempt names its run."""
    put(tmp_path, run("abc"))
    source = f"wandb-local:{tmp_path}/wandb"
    assert split_run(f"{source}/run-20240101_000000-abc") == (source, "abc")


def test_reads_without_wandb() -> None:
    """Reading needs nothing of the client."""
    code = "import sys, runtriage.trackers.wandb.local; print('wandb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"

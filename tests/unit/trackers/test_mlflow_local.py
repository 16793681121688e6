"""File stores by hand: old layouts, damage, deleted runs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from runtriage.errors import RunNotFoundError
from runtriage.model.history import RunHistory
from runtriage.model.vocab import RunState
from runtriage.registry import open_source, split_run

META = "run_id: {id}\nrun_name: {id}-name\nstatus: {status}\nstart_time: 1700000000000\nlifecycle_stage: {stage}\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with one experiment."""
    folder = tmp_path / "mlruns" / "7"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("experiment_id: '7'\nname: exp\nlifecycle_stage: active\n")
    return tmp_path / "mlruns"


def put(store: Path, run_id: str = "a1", *, status: str = "3", stage: str = "active", **metrics: str) -> Path:
    """Write one run; metrics map names (``__`` for a slash) to the text of their files."""
    folder = store / "7" / run_id
    folder.mkdir()
    (folder / "meta.yaml").write_text(META.format(id=run_id, status=status, stage=stage))
    for name, text in metrics.items():
        path = folder / "metrics" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def only(store: Path) -> RunHistory:
    """Read the only run of a store."""
    source = open_source(f"mlflow-local:{store}")
    (info,) = source.list_runs()
    return source.read(info)


def test_folders_are_slashes(store: Path) -> None:
    """A metric in a folder has a slash in its name."""
    put(store, train__loss="1700000000000 0.5 3\n")
    assert only(store).tracks["train/loss"].step.tolist() == [3]


def test_lines_of_first_versions_have_no_step(store: Path) -> None:
    """Files of the first versions have no step: it is 0."""
    put(store, loss="1700000000000 0.5\n1700000000001 0.25\n")
    assert only(store).tracks["loss"].step.tolist() == [0, 0]


def test_lines_of_new_versions_name_a_dataset(store: Path) -> None:
    """Data set and digest behind the step are ignored."""
    put(store, loss="1700000000000 0.5 4 train abc123\n")
    assert only(store).tracks["loss"].step.tolist() == [4]


def test_mixed_lines_are_all_read(store: Path) -> None:
    """A file that an old and a new version wrote is read line by line."""
    put(store, loss="1700000000000 0.5\n1700000000001 nan 2\n1700000000002 -inf 3 d e\n")
    found = only(store).tracks["loss"]
    assert found.step.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(found.value, [0.5, math.nan, -math.inf])


def test_bad_line_is_noted(store: Path) -> None:
    """A line that is no point is left out and counted."""
    put(store, loss="1700000000000 0.5 1\nhello world 2\n1700000000001 0.25 3\n")
    found = only(store)
    assert found.tracks["loss"].step.tolist() == [1, 3]
    assert any("1 lines" in note for note in found.notes)


def test_cut_line_is_left_out(store: Path) -> None:
    """A last line without its end may lack digits, so it does not count."""
    put(store, loss="1700000000000 0.5 1\n1700000000001 0.25 1")
    found = only(store)
    assert (found.tracks["loss"].step.tolist(), any("cut off" in note for note in found.notes)) == ([1], True)


def test_time_is_in_seconds(store: Path) -> None:
    """Milliseconds become seconds, and what was seconds already stays."""
    put(store, loss="1700000000000 1 1\n1700000001 2 2\n")
    assert only(store).tracks["loss"].wall is not None
    np.testing.assert_allclose(only(store).tracks["loss"].wall, [1.7e9, 1700000001.0])


@pytest.mark.parametrize(
    ("status", "state"),
    [("1", RunState.RUNNING), ("3", RunState.FINISHED), ("FAILED", RunState.FAILED), ("5", RunState.KILLED)],
)
def test_states(store: Path, status: str, state: RunState) -> None:
    """Numbers and words for the state are both known."""
    put(store, status=status)
    assert only(store).info.state is state


def test_deleted_runs_are_not_listed(store: Path) -> None:
    """A run in the bin is not there."""
    put(store, stage="deleted")
    assert not list(open_source(f"mlflow-local:{store}").list_runs())


def test_run_deleted_since_is_not_found(store: Path) -> None:
    """A run that was deleted after listing is a typed error."""
    folder = put(store)
    source = open_source(f"mlflow-local:{store}")
    (info,) = source.list_runs()
    (folder / "meta.yaml").write_text(META.format(id="a1", status=3, stage="deleted"))
    with pytest.raises(RunNotFoundError):
        source.read(info)


def test_deleted_experiments_are_not_listed(store: Path) -> None:
    """Experiments in ``.trash`` are not there."""
    put(store)
    (store / ".trash").mkdir()
    (store / "7").rename(store / ".trash" / "7")
    assert not list(open_source(f"mlflow-local:{store}").list_runs())


def test_params_become_what_they_were(store: Path) -> None:
    """Parameters are numbers and lists again."""
    folder = put(store)
    (folder / "params").mkdir()
    (folder / "params" / "lr").write_text("0.1")
    assert only(store).info.config == {"lr": 0.1}


def test_broken_meta_keeps_the_curves(store: Path) -> None:
    """A run with a broken meta.yaml can be read, under the name of its folder."""
    folder = put(store, loss="1700000000000 0.5 3\n")
    (folder / "meta.yaml").write_text("{{{")
    assert (only(store).info.id, list(only(store).tracks)) == ("a1", ["loss"])


@pytest.mark.parametrize("below", ["", "mlruns", "mlruns/7"])
def test_any_level_will_do(store: Path, below: str) -> None:
    """The address may name the store, its parent or one experiment."""
    put(store)
    assert [info.id for info in open_source(f"mlflow-local:{store.parent / below}").list_runs()] == ["a1"]


def test_hostile_yaml_runs_no_code(store: Path, tmp_path: Path) -> None:
    """A meta.yaml that asks for Python objects gets none."""
    folder = put(store)
    (folder / "metrics").mkdir()
    mark = tmp_path / "mark"
    (folder / "meta.yaml").write_text(f"!!python/object/apply:pathlib.Path.touch [{mark}]")
    assert (only(store).info.state, mark.exists()) == (RunState.UNKNOWN, False)


def test_address_of_a_run_is_split(store: Path) -> None:
    """``mlflow-local:DIR/RUN`` names a run by id although its folder lies deeper."""
    put(store)
    assert split_run(f"mlflow-local:{store}/a1") == (f"mlflow-local:{store}", "a1")

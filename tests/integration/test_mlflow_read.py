"""Listing and reading runs of a real MLflow server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest
from mlflow_server.real import T0, RealServer
from mlflow_server.world import World, line

from runtriage.errors import RunNotFoundError, SourceError, UsageError
from runtriage.model.history import RunInfo
from runtriage.model.marks import WritePlan
from runtriage.model.vocab import RunState
from runtriage.registry import open_source, split_run

pytestmark = pytest.mark.integration
HOSTILE = ["<b>x</b> & \"q\" 'a'", "a\\b", "`tick` [x](y) | ~", "\u202eabc \u00e9 \U0001f600"]


@pytest.fixture
def world(mlflow_server: RealServer) -> Iterator[World]:
    made = World(mlflow_server)
    yield made
    made.close()


def test_listing_is_newest_first(world: World) -> None:
    """Runs come in the order of their start, the last one first."""
    for name, start in (("b", 2), ("a", 1), ("c", 3)):
        world.server.run(world.experiment, name, start=T0 + start)
    assert [info.name for info in world.source().list_runs()] == ["c", "b", "a"]


def test_listing_follows_pages(world: World) -> None:
    """Runs beyond the first page are listed, each once."""
    ids = {world.server.run(world.experiment, str(i), start=T0 + i) for i in range(7)}
    listed = [info.id for info in world.source(runs_per_page=3).list_runs()]
    assert (len(listed), set(listed)) == (7, ids)


def test_a_run_started_between_pages_repeats_none(world: World) -> None:
    """A new run pushes others onto the next page again; they are not listed again."""
    for i in range(4):
        world.server.run(world.experiment, str(i), start=T0 + i)
    late = world.interrupted(lambda: world.server.run(world.experiment, "new", start=T0 + 9), runs_per_page=2)
    assert [info.name for info in late.list_runs()] == ["3", "2", "1", "0"]


def test_deleted_runs_are_not_listed(world: World) -> None:
    """A run in the bin does not exist."""
    keep, gone = (world.server.run(world.experiment, name) for name in ("keep", "gone"))
    world.server.call("POST", "runs/delete", {"run_id": gone})
    assert [info.id for info in world.source().list_runs()] == [keep]


def test_a_deleted_run_is_not_found(world: World) -> None:
    """The id of a run in the bin is a typed error."""
    gone = world.server.run(world.experiment, "gone")
    world.server.call("POST", "runs/delete", {"run_id": gone})
    with pytest.raises(RunNotFoundError, match="deleted"):
        world.source().find_run(gone)


def test_a_run_deleted_after_listing_is_a_typed_error(world: World) -> None:
    """A run that went between listing and reading is not found."""
    world.server.run(world.experiment, "gone")
    source = world.source()
    info = next(source.list_runs())
    world.server.call("POST", "runs/delete", {"run_id": info.id})
    with pytest.raises(RunNotFoundError, match="deleted"):
        source.read(info)


def test_a_run_of_another_experiment_is_not_found(world: World) -> None:
    """A source holds the runs of its own experiment only."""
    other = world.server.run(world.server.experiment(), "other")
    with pytest.raises(RunNotFoundError, match="another experiment"):
        world.source().find_run(other)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_finds_its_run(world: World, name: str) -> None:
    """A name with quotes, backslashes or markup finds its run."""
    run = world.server.run(world.experiment, name)
    world.server.run(world.experiment, "another")
    assert world.source().find_run(name).id == run


def test_a_name_of_several_runs_is_refused_with_ids(world: World) -> None:
    """An ambiguous name is a typed error that offers ids."""
    ids = [world.server.run(world.experiment, "twin") for _ in range(2)]
    with pytest.raises(RunNotFoundError, match="2 runs") as caught:
        world.source().find_run("twin")
    assert all(run in caught.value.hint for run in ids)


def test_states_are_folded(world: World) -> None:
    """MLflow's words for states become ours."""
    wanted = {"RUNNING": RunState.RUNNING, "FINISHED": RunState.FINISHED, "FAILED": RunState.FAILED}
    for word in (*wanted, "KILLED"):
        world.server.run(world.experiment, word, status=word)
    found = {info.name: info.state for info in world.source().list_runs()}
    assert found == {**wanted, "KILLED": RunState.KILLED}


def test_facts_of_a_run_arrive(world: World) -> None:
    """Parameters are parsed, tags complete, and the start is in seconds."""
    run = world.server.run(world.experiment, "r")
    world.server.params(run, {"lr": "0.1", "layers": "[1, 2]", "seed": "007"})
    world.server.set_tag(run, "owner", "<alice>")
    info = world.source().find_run(run)
    assert (info.config, info.tags["owner"], info.started) == (
        {"lr": 0.1, "layers": [1, 2], "seed": "007"},
        "<alice>",
        T0 / 1000,
    )


def test_more_points_than_any_limit_of_the_server(world: World) -> None:
    """A history of 25,500 points is read whole: neither sampled at 2,500 nor cut at 25,000."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(1))
    world.server.insert(run, "loss", line(25_499, start=1, stamp=T0 + 1))
    track = world.source().read(world.source().find_run(run)).tracks["loss"]
    assert np.array_equal(track.step, np.arange(25_500))


@pytest.mark.parametrize("size", [1, 2, 11, 30, 60, 61])
def test_pages_join_to_the_whole(world: World, size: int) -> None:
    """Whatever the size of a page, each point is read once, in order."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(60))
    track = world.source(points_per_page=size).read(RunInfo(source=world.address, id=run)).tracks["loss"]
    assert track.step.tolist() == list(range(60))


def test_late_points_between_pages_are_neither_lost_nor_doubled(world: World) -> None:
    """Points with old time stamps that come in between two pages move all rows after them; nothing is lost."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(60))

    def late() -> None:
        world.server.log(run, "loss", [(1000 + i, 0.5, T0 - 10 + i) for i in range(5)])

    history = world.interrupted(late, points_per_page=25).read(RunInfo(source=world.address, id=run))
    assert (sorted(history.tracks["loss"].step.tolist()), history.notes) == ([*range(60), *range(1000, 1005)], ())


def test_a_resumed_run_keeps_its_order(world: World) -> None:
    """Steps that go back after a restart stay behind those logged before."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", [*line(10), *line(5, start=5, stamp=T0 + 100)])
    track = world.source().read(RunInfo(source=world.address, id=run)).tracks["loss"]
    assert track.step.tolist() == [*range(10), *range(5, 10)]


def test_time_stamps_in_seconds_are_seconds(world: World) -> None:
    """A client that logged seconds instead of milliseconds has the same clock."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", [(0, 1.0, T0 // 1000), (1, 1.0, T0 + 1000)])
    track = world.source().read(RunInfo(source=world.address, id=run)).tracks["loss"]
    assert track.wall is not None
    assert track.wall.tolist() == [T0 / 1000, T0 / 1000 + 1]


def test_an_unknown_metric_is_no_point(world: World) -> None:
    """A metric that was never logged has an empty track and no error."""
    run = world.server.run(world.experiment)
    track, note = world.source()._metrics.read(run, "no such metric")
    assert (len(track.step), note) == (0, None)


def test_a_finished_run_has_a_steady_cursor(world: World) -> None:
    """Nothing new, and marks of ours, leave the cursor as it is."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(3))
    world.server.end(run)
    source = world.source()
    before = source.find_run(run)
    source.apply(before, WritePlan(set_tags={"runtriage.status": "healthy"}, set_note="x"))
    assert before.cursor
    assert source.find_run(run).cursor == before.cursor == next(source.list_runs()).cursor


@pytest.mark.parametrize("change", ["points", "state", "config"])
def test_a_changed_run_has_another_cursor(world: World, change: str) -> None:
    """More history, another state or another parameter change the cursor."""
    server, run = world.server, world.server.run(world.experiment, status="FINISHED")
    before = world.source().find_run(run).cursor
    if change == "points":
        server.log(run, "loss", line(1))
    elif change == "state":
        server.end(run, "FAILED")
    else:
        server.params(run, {"lr": "1"})
    assert world.source().find_run(run).cursor not in ("", before)


def test_a_running_run_has_no_cursor(world: World) -> None:
    """A run resumed below its highest step looks unchanged in a listing, so a running one always has to be read."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(3))
    assert not world.source().find_run(run).cursor


def test_reading_never_writes(world: World) -> None:
    """The database has the same bytes after listing, reading and looking at marks."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(100))
    before = hashlib.sha256(world.server.database.read_bytes()).digest()
    source = world.source()
    for info in source.list_runs():
        source.read(info)
        source.read_marks(info)
    source.read_project_marks()
    assert hashlib.sha256(world.server.database.read_bytes()).digest() == before


@pytest.mark.parametrize("name", ["plain", "with space/and slash", "12345678901234567", "a?b#c&d=e%20"])
def test_an_experiment_is_found_by_name(mlflow_server: RealServer, name: str) -> None:
    """Any name, digits and URL characters too, addresses its experiment."""
    mlflow_server.run(mlflow_server.experiment(name), "r")
    source = open_source(mlflow_server.address(name))
    assert [info.name for info in source.list_runs()] == ["r"]
    source.close()


def test_an_unknown_experiment_offers_the_known_ones(mlflow_server: RealServer) -> None:
    """A typo in the experiment is one line that names experiments that do exist."""
    source = open_source(mlflow_server.address("typo"))
    with pytest.raises(SourceError, match="no such experiment") as caught:
        list(source.list_runs())
    assert caught.value.hint.startswith("the server has '")
    source.close()


def test_a_deleted_experiment_says_so(world: World) -> None:
    """An experiment in the bin cannot be listed."""
    world.server.call("POST", "experiments/delete", {"experiment_id": world.experiment})
    with pytest.raises(SourceError, match="deleted"):
        list(world.source().list_runs())


def test_the_environment_names_the_server(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """``mlflow:EXPERIMENT`` asks the server of MLFLOW_TRACKING_URI, and is called by its full address."""
    world.server.run(world.experiment, "r")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", world.server.base + "/")
    source = open_source(f"mlflow:{world.experiment}")
    assert ([info.name for info in source.list_runs()], source.address) == (["r"], world.address)
    source.close()


def test_the_environment_must_name_a_server() -> None:
    """``mlflow:`` without MLFLOW_TRACKING_URI says which variable is missing."""
    with pytest.raises(UsageError, match="MLFLOW_TRACKING_URI is not set"):
        open_source("mlflow:exp")


def test_a_run_at_the_end_of_an_address_is_split_off(world: World) -> None:
    """``SOURCE/RUN`` is a source and a run."""
    assert split_run(f"{world.address}/abc") == (world.address, "abc")


def test_a_run_has_the_address_of_its_page(world: World) -> None:
    """A person can open the run in MLflow's pages."""
    run = world.server.run(world.experiment)
    info = world.source().find_run(run)
    assert info.url == f"{world.server.base}/#/experiments/{world.experiment}/runs/{run}"

"""wandb:// through the real client against the stand-in server."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

wandb = pytest.importorskip("wandb")

from wandb_server import Behaviour, StandIn  # noqa: E402
from wandb_server.samples import QUICK, ROWS, put  # noqa: E402

from runtriage.errors import RunNotFoundError, SourceError  # noqa: E402
from runtriage.model.marks import WritePlan  # noqa: E402
from runtriage.model.vocab import RunState  # noqa: E402
from runtriage.registry import open_source, split_run  # noqa: E402
from runtriage.trackers.base import HistorySource, MarkTarget  # noqa: E402
from runtriage.trackers.wandb.source import WandbSource  # noqa: E402

pytestmark = pytest.mark.integration
NAN, INF = math.nan, math.inf


def test_registered() -> None:
    """The scheme opens a source that can be read and marked, and a run at the end is split off."""
    opened = open_source("wandb://team/p")
    assert isinstance(opened, HistorySource)
    assert isinstance(opened, MarkTarget)
    assert split_run("wandb://team/p/r1") == ("wandb://team/p", "r1")


def test_listing(server: StandIn, source: WandbSource) -> None:
    """A listing has config, tags and state of each run once, newest first, for one request a page."""
    for i in range(250):
        put(server, f"r{i}", rows=ROWS[:1], config={"lr": 0.1, "n": {"d": 1}}, tags=["a"], state="crashed")
    runs = list(source.list_runs())
    assert [run.id for run in runs] == [f"r{i}" for i in reversed(range(250))]
    assert (runs[0].config, dict(runs[0].tags), runs[0].state) == (
        {"lr": 0.1, "n": {"d": 1}},
        {"a": ""},
        RunState.FAILED,
    )
    assert server.counts == {"Runs": 3}


@pytest.mark.parametrize("nan", ["string", "bare"])
@pytest.mark.parametrize("nested", ["dotted", "struct"])
@pytest.mark.parametrize(("upto", "pages"), [(0, "all"), (7, "all"), (7, "live"), (12, "all")])
def test_same_tracks_on_every_path(
    server: StandIn, source: WandbSource, nan: str, nested: str, upto: int, pages: str
) -> None:
    """Live, mixed and exported histories give the same tracks, however NaN and nested keys are written."""
    server.world.behaviour = Behaviour(nan=nan, nested=nested, pages=pages)
    server.world.export(put(server), upto)
    history = source.read(source.find_run("r1"))
    loss, spare = history.tracks["loss"], history.tracks["x.y"]
    assert loss.step.tolist() == list(range(12))
    assert np.flatnonzero(np.isnan(loss.value)).tolist() == [3]
    assert history.tracks["n.b"].value[4] == INF
    assert history.tracks["n.a"].value.tolist() == list(range(12))
    assert spare.step.tolist() == [1, 3, 5, 7, 9, 11]
    assert loss.wall is not None
    assert loss.wall[0] == 1.796e9


def test_dropped_rows_trap(server: StandIn, source: WandbSource) -> None:
    """Metrics logged at different steps all arrive, where scan_history(keys=both) gives nothing."""
    put(server, rows=[{"loss": 1.0} if i % 2 else {"lr": 0.1} for i in range(20)], state="running")
    run = source.client.run("r1")
    assert list(run.scan_history(keys=["loss", "lr"], use_cache=False)) == []
    history = source.read(source.find_run("r1"))
    assert {name: len(track.step) for name, track in history.tracks.items()} == {"loss": 10, "lr": 10}


def test_stale_cache_trap(server: StandIn, source: WandbSource) -> None:
    """A run that grew after its export was cached is read whole, where the client's cache gives the old rows."""
    run = put(server, "stale", exported=True)
    assert len(list(source.client.run("stale").scan_history())) == 12
    run.rows += [{"_step": i, "_timestamp": 1.8e9, "loss": 1.0} for i in range(12, 20)]
    server.world.export(run)
    assert len(list(source.client.run("stale").scan_history())) == 12
    assert len(source.read(source.find_run("stale")).tracks["loss"].step) == 20


def test_poisoned_cache_trap(server: StandIn, source: WandbSource) -> None:
    """An error page that the client took for an export does not reach us."""
    put(server, "poisoned", exported=True)
    server.fail("export", 403, body="<Error>expired</Error>")
    with pytest.raises(Exception, match=r"(?i)parquet|403"):
        list(source.client.run("poisoned").scan_history())
    with pytest.raises(Exception, match=r"(?i)parquet"):
        list(source.client.run("poisoned").scan_history())
    assert len(source.read(source.find_run("poisoned")).tracks["loss"].step) == 12


def test_steps_far_apart(server: StandIn, source: WandbSource) -> None:
    """A run logged every thousandth step does not cost a request for every few rows."""
    put(server, rows=[{"_step": 1000 * i, "loss": 1.0} for i in range(2000)], state="running")
    history = source.read(source.find_run("r1"))
    assert history.tracks["loss"].step[-1] == 1_999_000
    assert server.counts["RuntriagePage"] <= 64


def test_started_again_without_resume(server: StandIn, source: WandbSource) -> None:
    """Rows appended from step 0 under the same id are read, and so are the rows before them."""
    put(server, rows=[*({"_step": i, "loss": 1.0} for i in range(24)), {"_step": 0, "loss": 5.0}], state="running")
    history = source.read(source.find_run("r1"))
    assert history.tracks["loss"].step.tolist() == [*range(24), 0]


def test_rewound(server: StandIn, source: WandbSource) -> None:
    """After a rewind by the real client only the rows that stand are read."""
    run = put(server, config={"lr": 0.1})
    del run.rows[5:]
    run.rows += [{"_step": i, "loss": 9.0} for i in range(5, 8)]
    assert source.read(source.find_run("r1")).tracks["loss"].value[-3:].tolist() == [9.0] * 3


def test_fork_is_said(server: StandIn, source: WandbSource) -> None:
    """A fork says so, because its first rows may live with its parent."""
    run = put(server, rows=[{"_step": i, "loss": 1.0} for i in range(5, 9)])
    run.config = '{"_wandb": {"value": {"branch_point": {"run_id": "r0", "step": 4}}}}'
    history = source.read(source.find_run("r1"))
    assert history.notes == ("the run was forked from 'r0' at step 4",)
    assert "_wandb" not in history.info.config


def test_true_step_axis_is_kept(server: StandIn, source: WandbSource) -> None:
    """A logged step counter is a metric like others, whole numbers and all."""
    put(server, rows=[{"loss": 1.0, "train/global_step": 50 * i} for i in range(9)], state="running")
    track = source.read(source.find_run("r1")).tracks["train/global_step"]
    assert (track.step[-1], track.value[-1]) == (8, 400.0)


def test_logged_by_the_real_client(server: StandIn, source: WandbSource) -> None:
    """What a real training process logged comes back as logged, its summary dictionary included."""
    settings = wandb.Settings(silent=True, base_url=server.url)  # the client remembers its first server otherwise
    run = wandb.init(entity="team", project="p", id="real", config={"lr": 1}, settings=settings)
    run.define_metric("loss", summary="min")
    for value in (1.0, NAN, 3.5):
        run.log({"loss": value, "group": {"inner": 2}})
    run.finish()
    history = source.read(source.find_run("real"))
    np.testing.assert_array_equal(history.tracks["loss"].value, [1.0, NAN, 3.5])
    assert history.tracks["group.inner"].value.tolist() == [2.0] * 3
    assert dict(history.info.config) == {"lr": 1}
    assert server.world.runs["team", "p", "real"].state == "finished"


def test_cursor(server: StandIn, source: WandbSource) -> None:
    """The cursor changes with history, state and config, and neither with our marks nor with foreign tags."""
    run = put(server, config={"lr": 1}, summary={"a": 1})
    seen = [source.find_run("r1").cursor]
    source.apply(source.find_run("r1"), WritePlan(set_tags={"runtriage.status": "broken"}, set_note="lost at step 3"))
    run.tags.append("theirs")
    assert source.find_run("r1").cursor == seen[0]
    run.rows.append({"_step": 12})
    seen.append(source.find_run("r1").cursor)
    run.state = "failed"
    seen.append(source.find_run("r1").cursor)
    run.config = '{"lr": {"value": 2}}'
    seen.append(source.find_run("r1").cursor)
    assert all(a != b for a, b in pairwise(seen))


def test_unchanged_project_costs_listing_pages_only(server: StandIn, source: WandbSource) -> None:
    """Deciding that 500 runs are unchanged takes five requests."""
    for i in range(500):
        put(server, f"r{i}", rows=ROWS[:2])
    before = {run.id: run.cursor for run in source.list_runs()}
    server.counts.clear()
    assert {run.id: run.cursor for run in source.list_runs()} == before
    assert server.counts == {"Runs": 5}


def test_deleted_while_listing(server: StandIn, source: WandbSource) -> None:
    """A run deleted after it was listed is a typed error of that run alone."""
    put(server, "a")
    put(server, "b")
    runs = {run.id: run for run in source.list_runs()}
    del server.world.runs["team", "p", "a"]
    with pytest.raises(RunNotFoundError, match="no such run"):
        source.read(runs["a"])
    assert source.read(runs["b"]).tracks


def test_found_by_name(server: StandIn, source: WandbSource) -> None:
    """A run is found by its display name if one run has it, and not if two have."""
    put(server, "a", display_name="one")
    assert source.find_run("one").id == "a"
    put(server, "b", display_name="one")
    with pytest.raises(RunNotFoundError, match="2 runs"):
        source.find_run("one")


def test_unknown_project(server: StandIn) -> None:
    """A project that is not there is an error of the source."""
    with pytest.raises(SourceError, match="no such project"):
        list(WandbSource("wandb://team/none", limits=QUICK).list_runs())


@pytest.mark.parametrize("state", ["running", "finished"])
def test_requests_of_a_history_without_exports(server: StandIn, source: WandbSource, state: str) -> None:
    """A running run comes with one request, one that ended with two."""
    put(server, state=state)
    info = next(source.list_runs())
    server.counts.clear()
    source.read(info)
    assert server.total == {"running": 1, "finished": 2}[state]


@pytest.mark.parametrize("state", ["running", "finished"])
def test_cursor_is_the_same_wherever_it_comes_from(server: StandIn, source: WandbSource, state: str) -> None:
    """Listing, finding and reading a run give equal facts, the cursor among them."""
    run = put(server, state=state, config={"lr": 1e-3, "n": {"a": [1, 2]}}, summary={"runtriage.status": "watch"})
    run.config = run.config[:-1] + ', "_wandb": {"value": {"t": 1}}, "plain": 3, "wandb_version": 1}'
    listed = next(source.list_runs())
    assert listed == source.find_run("r1") == source.read(listed).info
    assert listed.config == {"lr": 1e-3, "n": {"a": [1, 2]}, "plain": 3}


def test_nothing_left_behind(
    server: StandIn, source: WandbSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Downloads leave no file behind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    put(server, exported=True)
    source.read(source.find_run("r1"))
    assert list(tmp_path.glob("runtriage-*")) == []

"""Continuing histories from a real MLflow server: always what reading whole gives, for a few points."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mlflow_server.faults import Answer, FaultServer
from mlflow_server.real import T0, RealServer
from mlflow_server.world import World, line

from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.registry import open_source
from runtriage.trackers.base import TailSource
from runtriage.trackers.mlflow import histories
from runtriage.trackers.mlflow.source import MlflowSource

pytestmark = pytest.mark.integration


@pytest.fixture
def world(mlflow_server: RealServer) -> Iterator[World]:
    made = World(mlflow_server)
    yield made
    made.close()


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many rows came with each page of history."""
    seen: list[int] = []
    page = histories.MetricReader._page

    def counted(self: Any, run_id: str, key: str, token: str) -> Any:
        found = page(self, run_id, key, token)
        seen.append(len(found.rows))
        return found

    monkeypatch.setattr(histories.MetricReader, "_page", counted)
    return seen


def bits(track: Track) -> tuple[bytes, bytes, bytes | None]:
    """Return a track as bytes."""
    return track.step.tobytes(), track.value.tobytes(), None if track.wall is None else track.wall.tobytes()


def equal(one: RunHistory, other: RunHistory) -> bool:
    """Tell whether two histories are the same to the last bit."""
    mine, theirs = ([(name, bits(track)) for name, track in run.tracks.items()] for run in (one, other))
    return (one.info, one.notes, mine) == (other.info, other.notes, theirs)


def continued(source: MlflowSource, info: RunInfo, cached: RunHistory, pages: list[int]) -> list[int]:
    """Continue a run, see that it is what reading gives, and return how many rows each page of the tail held."""
    pages.clear()
    found = source.read_tail(info, cached)
    taken = list(pages)
    assert found is not None
    assert equal(found, source.read(info))
    return taken


def test_only_the_end_is_pulled(world: World, pages: list[int]) -> None:
    """Of a metric that grew come its new points and ten before them, of one that did not, ten."""
    run = world.server.run(world.experiment)
    for key in ("loss", "lr"):
        world.server.log(run, key, line(3000))
    source = world.source()
    info = source.find_run(run)
    cached = source.read(info)
    world.server.log(run, "loss", line(25, start=3000, stamp=T0 + 3000))
    assert sorted(continued(source, info, cached, pages)) == [10, 35]


def test_what_has_nothing_new_is_handed_over(world: World) -> None:
    """Tracks that did not grow are those that were given."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(20))
    source = world.source()
    cached = source.read(source.find_run(run))
    found = source.read_tail(cached.info, cached)
    assert found is not None
    assert found.tracks["loss"] is cached.tracks["loss"]


def test_resumed_below_its_highest_step(world: World, pages: list[int]) -> None:
    """Points at lower steps are pulled although the latest point, and so the listing, is the same as before."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(500))
    source = world.source()
    cached = source.read(source.find_run(run))
    before = world.server.call("GET", "runs/get", run_id=run)["run"]["data"]["metrics"]
    world.server.log(run, "loss", [(200 + i, 9.0, T0 + 10_000 + i) for i in range(10)])
    assert world.server.call("GET", "runs/get", run_id=run)["run"]["data"]["metrics"] == before
    assert continued(source, cached.info, cached, pages) == [20]


@pytest.mark.parametrize("late", [T0 - 5, T0 + 250])
def test_a_point_that_came_late(world: World, pages: list[int], late: int) -> None:
    """A point with an old time stamp moves the others, so that its metric is read whole, and no other."""
    run = world.server.run(world.experiment)
    for key in ("loss", "lr"):
        world.server.log(run, key, line(500))
    source = world.source()
    cached = source.read(source.find_run(run))
    world.server.log(run, "loss", [(250, 7.0, late)])
    assert sorted(continued(source, cached.info, cached, pages)) == [10, 11, 501]


def test_as_many_points_as_before_but_others(world: World, pages: list[int]) -> None:
    """A metric whose points somebody replaced in the database is read whole."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(100))
    source = world.source()
    cached = source.read(source.find_run(run))
    with contextlib.closing(sqlite3.connect(world.server.database, timeout=30)) as connection, connection:
        connection.execute("delete from metrics where run_uuid = ?", (run,))
    world.server.log(run, "loss", [(step, value + 1, stamp) for step, value, stamp in line(100)])
    assert continued(source, cached.info, cached, pages) == [10, 100]


def test_fewer_points_than_before(world: World, pages: list[int]) -> None:
    """A metric that lost points is read whole."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(100))
    source = world.source()
    cached = source.read(source.find_run(run))
    with contextlib.closing(sqlite3.connect(world.server.database, timeout=30)) as connection, connection:
        connection.execute("delete from metrics where run_uuid = ? and step > 50", (run,))
    assert continued(source, cached.info, cached, pages) == [0, 51]


def test_metrics_that_came_and_went(world: World, pages: list[int]) -> None:
    """A new metric is read, one that is gone is gone."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(30))
    source = world.source()
    cached = source.read(source.find_run(run))
    world.server.log(run, "acc", line(40))
    gone = RunHistory(info=cached.info, tracks={**cached.tracks, "gone": cached.tracks["loss"]})
    assert sorted(continued(source, cached.info, gone, pages)) == [10, 40]


def test_hard_values_at_the_joint(world: World, pages: list[int]) -> None:
    """NaN, infinities and zeros of either sign stand again where they stood."""
    values = [math.nan, math.inf, -math.inf, -0.0, 1e300, 5e-324, math.nan]
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", [(i, value, T0 + i) for i, value in enumerate(values)])
    source = world.source()
    cached = source.read(source.find_run(run))
    world.server.log(run, "loss", [(9, math.nan, T0 + 9)])
    assert continued(source, cached.info, cached, pages) == [8]


@pytest.mark.parametrize("stamps", [(0, 0), (5, 5), (1_600_000_000, T0), (T0, 1_600_000_000)])
def test_clocks_that_are_none(world: World, pages: list[int], stamps: tuple[int, int]) -> None:
    """Without time stamps, with one for all points, or with seconds and milliseconds, all is read."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", [(i, 1.0 + i, stamps[0]) for i in range(40)])
    source = world.source()
    cached = source.read(source.find_run(run))
    world.server.log(run, "loss", [(40 + i, 2.0 + i, stamps[1]) for i in range(40)])
    continued(source, cached.info, cached, pages)


def test_tails_of_several_pages(world: World, pages: list[int]) -> None:
    """A tail longer than a page comes in overlapping pages."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(50))
    source = world.source(points_per_page=20)
    cached = source.read(source.find_run(run))
    world.server.log(run, "loss", line(50, start=50, stamp=T0 + 50))
    assert continued(source, cached.info, cached, pages)[0] == 20


def test_a_point_that_comes_between_two_pages(world: World, pages: list[int]) -> None:
    """Where rows move while a tail is read, the metric is read whole."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", line(50))
    cached = world.source().read(world.source().find_run(run))
    world.server.log(run, "loss", line(50, start=50, stamp=T0 + 50))
    source = world.interrupted(lambda: world.server.log(run, "loss", [(7, 7.0, T0 - 7)]), points_per_page=20)
    found = source.read_tail(cached.info, cached)
    assert found is not None
    assert equal(found, source.read(cached.info))


def test_a_note_means_reading_again(world: World) -> None:
    """What could not be read in full is no past to continue."""
    run = world.server.run(world.experiment)
    source = world.source()
    info = source.find_run(run)
    assert source.read_tail(info, RunHistory(info=info, tracks={}, notes=("something was missing",))) is None


def drawn(rng: np.random.Generator, stamp: int) -> list[tuple[int, float, int]]:
    """Return points around a moment: sometimes in order, sometimes late, sometimes all at once."""
    count = int(rng.integers(1, 12))
    stamps = stamp + int(rng.choice([0, 5, -30])) + np.arange(count) * int(rng.integers(0, 3))
    steps = rng.integers(-3, 60, count)
    values = rng.choice([1.0, math.nan, math.inf, -0.0, 0.5], count)
    return list(zip(steps.tolist(), values.tolist(), stamps.tolist(), strict=True))


def test_any_way_to_log(world: World) -> None:
    """Whatever is logged in whatever order, continuing again and again gives what reading whole gives."""
    rng = np.random.default_rng(7)
    run = world.server.run(world.experiment)
    source = world.source(points_per_page=15)
    info = source.find_run(run)
    known = source.read(info)
    for turn in range(25):
        key = str(rng.choice(["loss", "lr"]))
        world.server.log(run, key, drawn(rng, T0 + 20 * turn))
        found = source.read_tail(info, known)
        assert found is not None
        assert equal(found, source.read(info))
        known = found


def test_a_server_with_other_page_tokens(faults: FaultServer) -> None:
    """Where a made-up page token is refused, as servers of another make may, the metric is read whole."""
    latest = [{"key": "loss", "value": 2.0, "timestamp": T0 + 1, "step": 1}]
    body = {"info": {"run_id": "r1", "experiment_id": "1", "status": "RUNNING"}, "data": {"metrics": latest}}
    points = [{"value": 1.0 + i, "timestamp": T0 + i, "step": i} for i in range(12)]
    faults.script("runs/get", Answer(body={"run": body}))
    refused = Answer(status=400, body={"error_code": "INVALID_PARAMETER_VALUE", "message": "bad token"})
    faults.script("metrics/get-history", Answer(body={"metrics": points}), refused, Answer(body={"metrics": points}))
    source = open_source(f"mlflow://{faults.host}/1")
    assert isinstance(source, TailSource)
    info = RunInfo(source=source.address, id="r1")
    cached = source.read(info)
    found = source.read_tail(info, cached)
    assert found is not None
    assert equal(found, cached)
    assert faults.count("get-history") == 3
    source.close()

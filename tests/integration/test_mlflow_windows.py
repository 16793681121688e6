"""Reading by windows of steps from a real MLflow server: just what its pages hold, or pages after all."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from mlflow_server.real import T0, RealServer
from mlflow_server.world import World

from runtriage.model.history import Track
from runtriage.trackers.mlflow.histories import MetricReader
from runtriage.trackers.mlflow.windows import STEPS_PER_WINDOW, read_windows

pytestmark = pytest.mark.integration
STEPS = 2 * STEPS_PER_WINDOW + 50
Points = list[tuple[int, float, int]]


@pytest.fixture
def world(mlflow_server: RealServer) -> Iterator[World]:
    made = World(mlflow_server)
    yield made
    made.close()


def logged(world: World, points: Points) -> str:
    """Return a run that is over, with these points of its loss; the highest step is what a listing shows."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", [max(points)])
    world.server.insert(run, "loss", [point for point in points if point != max(points)])
    world.server.end(run)
    return run


def read(world: World, run: str) -> tuple[bool, bool]:
    """Tell whether a run can be read by windows, and whether reading it gives what its pages hold, to the last bit."""
    source = world.source()
    client = source._client
    found = source.read(source.find_run(run)).tracks["loss"]
    last = int(found.step.max())
    paged, _ = MetricReader(client).read(run, "loss")
    return read_windows(client, run, "loss", last) is not None, bits(found) == bits(paged)


def bits(track: Track) -> tuple[bytes, bytes, bytes | None]:
    """Return a track as bytes."""
    return track.step.tobytes(), track.value.tobytes(), None if track.wall is None else track.wall.tobytes()


def line(stop: int, *, start: int = 0, every: int = 1) -> Points:
    """Return one point a step."""
    return [(step, step / 7, T0 + step) for step in range(start, stop, every)]


def test_a_dense_metric(world: World) -> None:
    """A long metric with a point at each step comes by windows."""
    assert read(world, logged(world, line(STEPS))) == (True, True)


@pytest.mark.parametrize("seed", range(2))
def test_any_order(world: World, seed: int) -> None:
    """Points logged in any order, some steps left out, some logged twice, NaN and infinities: as pages hold them."""
    rng = np.random.default_rng(seed)
    steps = np.flatnonzero(rng.random(STEPS) < 0.9)
    again = rng.choice(steps, 60, replace=False)
    stamps = T0 + np.concatenate([rng.integers(0, 1000, len(steps)), rng.integers(0, 5, len(again))])
    both = np.concatenate([steps, again])
    run = logged(world, list(zip(both.tolist(), (both / 3).tolist(), stamps.tolist(), strict=True)))
    hard = [(int(step), value, T0 + 7) for step in again[:9] for value in (math.nan, math.inf, -math.inf)]
    world.server.log(run, "loss", hard)
    assert read(world, run) == (True, True)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(line(STEPS) + [(s, 0.5, t + 9) for s, _, t in line(STEPS)], id="more rows than are given at once"),
        pytest.param(line(STEPS, start=-5), id="steps below zero"),
        pytest.param(line(STEPS, every=10), id="few rows to a window"),
        pytest.param(line(900) + line(STEPS, start=STEPS - 5), id="a gap"),
        pytest.param(line(800), id="short"),
    ],
)
def test_what_is_read_by_pages(world: World, points: Points) -> None:
    """Where windows would leave something out, or need more requests, pages are read."""
    assert read(world, logged(world, points)) == (False, True)


def test_a_running_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is not over is read by pages, whose joints show rows that moved."""
    run = world.server.run(world.experiment)
    world.server.log(run, "loss", [line(STEPS)[-1]])
    asked: list[str] = []
    source = world.source()
    get = source._client.get
    monkeypatch.setattr(source._client, "get", lambda path, *rest: asked.append(path) or get(path, *rest))
    source.read(source.find_run(run))
    assert "metrics/get-history-bulk-interval" not in asked

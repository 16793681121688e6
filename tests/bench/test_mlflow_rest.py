"""How fast histories come out of an MLflow server over REST, against MLflow's own client on the same server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
from mlflow_server.real import T0, RealServer, real_server

from runtriage.model.history import Track
from runtriage.registry import open_source

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]
RUNS, STEPS, KEYS = 4, 10_000, ("train/loss", "grad_norm", "lr", "val/loss")
POINTS = RUNS * STEPS * len(KEYS)
GOAL, LEAST_TIMES = 30_000, 1.5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    """Run a server of our own."""
    with real_server(tmp_path) as running:
        yield running


def test_points_per_cpu_second(server: RealServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole runs cost two thirds of what MLflow's client costs or less, the server included, and each point is equal.

    30,000 points a CPU second is the goal; nearly all of it is the server's, so it holds on a quiet machine only.
    """
    experiment = server.experiment()
    runs = [filled(server, experiment, i) for i in range(RUNS)]
    source, client = open_source(server.address(experiment)), mlflow.MlflowClient(server.base)
    infos = {info.id: info for info in source.list_runs()}
    client.search_runs([experiment])
    histories, ours = timed(server, lambda: {run: source.read(infos[run]).tracks for run in runs})
    wanted, theirs = timed(
        server, lambda: {(run, key): client.get_metric_history(run, key) for run in runs for key in KEYS}
    )
    source.close()
    for (run, key), points in wanted.items():
        assert_equal(histories[run][key], points)
    with capsys.disabled():
        print(  # noqa: T201
            f"\nREST: {POINTS / ours:,.0f} points per CPU second (goal {GOAL:,}), MlflowClient on the same server "
            f"{POINTS / theirs:,.0f}: {theirs / ours:.2f}x"
        )
    assert theirs / ours >= LEAST_TIMES


def filled(server: RealServer, experiment: str, seed: int) -> str:
    """Return a run with points as a training loop logs them."""
    run = server.run(experiment)
    values = np.random.default_rng(seed).normal(size=(len(KEYS), STEPS)).tolist()
    for key, curve in zip(KEYS, values, strict=True):
        server.log(run, key, [(STEPS - 1, curve[-1], T0 + (STEPS - 1) * 100)])  # what a listing shows as the latest
        server.insert(run, key, [(step, value, T0 + step * 100) for step, value in enumerate(curve[:-1])])
    server.end(run)
    return run


def assert_equal(track: Track, points: list[Any]) -> None:
    """Fail unless a track holds just these points, in this order."""
    assert track.wall is not None
    assert track.step.tolist() == [point.step for point in points]
    np.testing.assert_array_equal(track.value, [point.value for point in points])
    np.testing.assert_array_equal(track.wall, [point.timestamp / 1000 for point in points])


def timed(server: RealServer, work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the work returns, and the CPU seconds it took here and in the server."""
    before = time.process_time() + server.cpu_seconds()
    found = work()
    return found, time.process_time() + server.cpu_seconds() - before

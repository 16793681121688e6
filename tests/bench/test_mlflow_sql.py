"""How fast histories come out of MLflow's database, against MLflow's own client on the same database."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from mlflow_store.postgres import INSTALL, cluster, programs
from mlflow_store.store import T0, Store

from runtriage.registry import open_source

pytestmark = pytest.mark.bench
RUNS, STEPS, KEYS = 8, 10_000, ("train/loss", "grad_norm", "lr", "val/loss")
THEIRS = 2  # runs read with the other client: it is that much slower
GOAL = 250_000
Rows = list[tuple[Any, ...]]


@pytest.fixture(params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, str, list[str]]]:
    """Yield a store with runs of 40,000 points in it."""
    if request.param == "postgresql" and programs() is None:
        pytest.skip(f"no PostgreSQL server that can be run here: {INSTALL}")
    with _url(request.param, tmp_path) as url, Store(url).closing() as store:
        experiment = store.experiment()
        runs = [store.run(experiment, f"run{i}") for i in range(RUNS)]
        _fill(store, runs)
        yield store, experiment, runs


def test_points_per_cpu_second(filled: tuple[Store, str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Whole runs come at 250,000 points a CPU second or more, the server's included, and each point is MLflow's."""
    store, experiment, runs = filled
    source = open_source(store.address(experiment))
    infos = [info for info in source.list_runs() if info.id in runs]
    source.read(infos[0])
    histories, ours = _timed(lambda: {info.id: source.read(info).tracks for info in infos})
    store.client.get_metric_history(runs[0], KEYS[0])
    asked = runs[:THEIRS]
    wanted, theirs = _timed(
        lambda: {(run, key): store.client.get_metric_history(run, key) for run in asked for key in KEYS}
    )
    source.close()
    for (run, key), points in wanted.items():
        track = histories[run][key]
        assert track.step.tolist() == [point.step for point in points]
        np.testing.assert_array_equal(track.value, [point.value for point in points])
        assert track.wall is not None
        np.testing.assert_array_equal(track.wall, [point.timestamp / 1000 for point in points])
    per_run = STEPS * len(KEYS)
    rate, reference = RUNS * per_run / ours, THEIRS * per_run / theirs
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{store.url.partition(':')[0]}: {rate:,.0f} points per CPU second, MlflowClient on the same database "
            f"{reference:,.0f}: {rate / reference:.1f}x"
        )
    assert rate >= GOAL


def _fill(store: Store, runs: list[str]) -> None:
    noise = np.random.default_rng(1).normal(size=(len(runs), len(KEYS), STEPS))
    engine = store.client._tracking_client.store.engine
    columns = "key, value, timestamp, run_uuid, step, is_nan"
    insert = sa.text(f"insert into metrics ({columns}) values (:k, :v, :t, :r, :s, :n)")  # noqa: S608  our own words
    with engine.begin() as connection:
        for run, curves in zip(runs, noise.tolist(), strict=True):
            # In the order in which a training loop logs: all metrics of a step, then the next.
            rows = [
                {"k": key, "v": curves[i][step], "t": T0 + step * 100, "r": run, "s": step, "n": False}
                for step in range(STEPS)
                for i, key in enumerate(KEYS)
            ]
            connection.execute(insert, rows)
        connection.execute(sa.text("analyze"))


@contextmanager
def _url(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder}/mlflow.db"
        return
    with cluster(folder) as url:
        yield url


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the work returns and the CPU seconds it took, those of PostgreSQL's sessions included."""
    before = time.process_time() + _sessions()
    found = work()
    return found, time.process_time() + _sessions() - before


def _sessions() -> float:
    """Return the CPU seconds of the sessions of our own PostgreSQL so far (Linux)."""
    total = 0.0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = entry.read_text().rpartition(")")
            named = "postgres" in head and b"mlflow" in (entry.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if named:
            fields = rest.split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total

"""What a sweep of an experiment of 1,000 runs costs when nothing is new, or little, on a real MLflow server."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from mlflow_server.real import T0, RealServer, real_server

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1200)]
RUNS, SIBLINGS, STEPS, KEYS = 1000, 10, 200, ("train/loss", "grad_norm", "lr")
MOST_REQUESTS, MOST_SECONDS, MOST_TIMES = 5, 2.0, 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a sweep took: requests, our CPU seconds and the server's."""

    requests: int
    ours: float
    theirs: float

    def __str__(self) -> str:
        return f"{self.requests} requests, {self.ours:.2f} CPU seconds, {self.theirs:.2f} of the server"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    """Run a server of our own."""
    with real_server(tmp_path) as running:
        yield running


def test_what_is_new(server: RealServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing new among 1,000 runs: 5 requests, 2 CPU seconds; ten changed among them cost 1.5 times ten alone.

    Once the ten are a cohort, once one of each of ten cohorts: these are then judged anew as a whole, alone too.
    """
    many, few, spread = (server.experiment(name) for name in ("many", "few", "spread"))
    runs = {name: fill(server, name, size) for name, size in ((many, RUNS), (few, SIBLINGS), (spread, SIBLINGS**2))}
    first = sweep(server, many, tmp_path)
    sweep(server, few, tmp_path)
    sweep(server, spread, tmp_path)
    nothing = sweep(server, many, tmp_path)
    told = [f"1,000 runs never seen: {first}", f"1,000 with nothing new: {nothing}"]
    pairs: list[tuple[Cost, Cost]] = []
    for turn, (small, stride) in enumerate(((few, 1), (spread, SIBLINGS))):
        for experiment in (small, many):
            go_on(server, runs[experiment][: stride * SIBLINGS : stride], turn)
        alone, among = sweep(server, small, tmp_path), sweep(server, many, tmp_path)
        pairs.append((alone, among))
        told.append(
            f"ten changed of {'ten cohorts' if stride > 1 else 'one cohort'}, alone: {alone}; among 1,000: {among}: "
            f"{among.ours / alone.ours:.2f}x, "
            f"with the server {(among.ours + among.theirs) / (alone.ours + alone.theirs):.2f}x"
        )
    with capsys.disabled():
        print("\n".join(["", *told]))  # noqa: T201  a bench
    assert nothing.requests <= MOST_REQUESTS
    assert nothing.ours <= MOST_SECONDS
    for alone, among in pairs:
        assert among.requests <= MOST_TIMES * alone.requests
        assert among.ours <= MOST_TIMES * alone.ours


def go_on(server: RealServer, runs: list[str], turn: int) -> None:
    """Log ten more points of each metric of runs."""
    for run in runs:
        for key in KEYS:
            points = range(10 * turn, 10 * turn + 10)
            server.log(run, key, [(STEPS + i, 2.0, T0 + 10**6 + i) for i in points])


def sweep(server: RealServer, experiment: str, folder: Path) -> Cost:
    """Sweep as a schedule does: a process of its own, verdicts as tags, histories cached."""
    command = [sys.executable, "-m", "runtriage", "sweep", server.address(experiment), "--write", "tags"]
    command += ["--cache", str(folder / "cache")]
    requests, theirs = server.requests(), server.cpu_seconds()
    with (folder / "sweep.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (folder / "sweep.log").read_text(errors="replace")[-3000:]
    ours = usage.ru_utime + usage.ru_stime
    return Cost(requests=server.requests() - requests, ours=ours, theirs=server.cpu_seconds() - theirs)


def fill(server: RealServer, experiment: str, count: int) -> list[str]:
    """Write finished runs in cohorts of ten into the database, as MLflow would; return their ids."""
    ids = [f"{int(experiment):016x}{i:016x}" for i in range(count)]
    rng = np.random.default_rng(1)
    loss = 3.0 * np.exp(-np.arange(STEPS) / 60) + 1.0
    with contextlib.closing(sqlite3.connect(server.database, timeout=60)) as connection, connection:
        for i, run in enumerate(ids):
            folder = f"mlflow-artifacts:/{experiment}/{run}/artifacts"
            row = (run, f"run {i}", "UNKNOWN", "", "", "", "FINISHED", T0 + i, T0 + 10**6, "", "active", folder)
            connection.execute(f"insert into runs values ({'?,' * 12} ?, null)", (*row, int(experiment)))  # noqa: S608
            params = {"lr": 1e-3 * (1 + i // SIBLINGS), "seed": i, "model": "gpt", "batch_size": 64}
            connection.executemany(
                "insert into params values (?, ?, ?)", [(key, str(value), run) for key, value in params.items()]
            )
            noise = rng.normal(scale=0.02, size=(2, STEPS))
            curves = (loss + noise[0], 1.0 + 5 * np.abs(noise[1]), np.full(STEPS, params["lr"]))
            for key, values in zip(KEYS, curves, strict=True):
                rows = [(key, value, T0 + step * 100, run, step, 0) for step, value in enumerate(values.tolist())]
                connection.executemany("insert into metrics values (?, ?, ?, ?, ?, ?)", rows)
                last = (key, rows[-1][1], rows[-1][2], STEPS - 1, run)
                connection.execute("insert into latest_metrics values (?, ?, ?, ?, 0, ?)", last)
        connection.execute("analyze")
    return ids

"""What a sweep costs as a project grows: ``RUNTRIAGE_SCALE=100,1000,10000 make bench ARGS="-k scale -s"``."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlflow_server.real import T0, RealServer, real_server

from runtriage.testing.synth import healthy

pytestmark = pytest.mark.bench
SIZES = [int(size) for size in os.environ.get("RUNTRIAGE_SCALE", "100,400").split(",")]
STEPS, COHORT, SHAPES = 200, 10, 50
TICKS = os.sysconf("SC_CLK_TCK")

MOST_GROWTH = 2.0
"""Cost of a run in the largest project over that in the smallest, at most."""

_TABLES = {
    "runs": "insert into runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time,"
    " end_time, source_version, lifecycle_stage, artifact_uri, experiment_id)"
    " values (?, ?, 'UNKNOWN', '', '', '', 'FINISHED', ?, ?, '', 'active', ?, ?)",
    "params": "insert into params (key, value, run_uuid) values (?, ?, ?)",
    "tags": "insert into tags (key, value, run_uuid) values ('mlflow.runName', ?, ?)",
    "metrics": "insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, ?, ?, 0)",
    "latest": "insert into latest_metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, ?, ?, 0)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a command cost: seconds of wall time, CPU here and in the server, MB at most, requests."""

    wall: float
    cpu: float
    server: float
    memory: float
    requests: int


def seed(server: RealServer, experiment: str, count: int) -> None:
    """Write runs of three metrics, ten a config, straight into the tables of a server."""
    number = server.experiment(experiment)
    shapes = [
        {key: track.value.tolist() for key, track in list(healthy(index, steps=STEPS).tracks.items())[:3]}
        for index in range(SHAPES)
    ]
    with contextlib.closing(sqlite3.connect(server.database, timeout=60)) as connection, connection:
        for index in range(count):
            run = f"{index:032x}"
            start = T0 + index * 1000
            where = f"mlflow-artifacts:/{number}/{run}/artifacts"
            connection.execute(_TABLES["runs"], (run, f"r{index}", start, start + 900, where, number))
            connection.execute(_TABLES["tags"], (f"r{index}", run))
            config = {"lr": "0.001", "group": str(index // COHORT), "seed": str(index)}
            connection.executemany(_TABLES["params"], [(key, value, run) for key, value in config.items()])
            for key, values in shapes[index % SHAPES].items():
                scale = 1.0 + 1e-9 * index  # no two runs alike to the bit
                rows = [(key, value * scale, start + step, run, step) for step, value in enumerate(values)]
                connection.executemany(_TABLES["metrics"], rows)
                connection.execute(_TABLES["latest"], rows[-1])


def swept(address: str, server: RealServer, *words: str) -> Cost:
    """Sweep as a command of its own and return what that cost."""
    folder = server.database.parent
    requests, busy, began = _requests(folder), _busy(folder), time.monotonic()
    command = [sys.executable, "-m", "runtriage", "sweep", address, "--cache", "off", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr as said:
        told = said.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), told[-2000:]
    return Cost(
        wall=time.monotonic() - began, cpu=usage.ru_utime + usage.ru_stime, server=_busy(folder) - busy,
        memory=usage.ru_maxrss / 1024, requests=_requests(folder) - requests,
    )


def costs(size: int, folder: Path) -> Iterator[tuple[str, Cost]]:
    """Yield what sweeps of a project of this many runs cost."""
    with real_server(folder) as server:
        seed(server, "scale", size)
        rest, sql = server.address("scale"), f"mlflow-sql:sqlite:///{server.database}#scale"
        yield "SQL, cold", swept(sql, server)
        yield "REST, cold, marks written", swept(rest, server, "--write", "tags")
        yield "REST, unchanged", swept(rest, server, "--write", "tags")


def test_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run costs about as much CPU in a large project as in a small one."""
    per_run: dict[str, list[float]] = {}
    for size in SIZES:
        (tmp_path / str(size)).mkdir()
        for what, cost in costs(size, tmp_path / str(size)):
            per_run.setdefault(what, []).append(cost.cpu / size)
            with capsys.disabled():
                print(  # noqa: T201  a bench
                    f"| {size:,} | {what} | {cost.wall:.1f} s | {cost.cpu:.1f} s | {cost.server:.1f} s "
                    f"| {cost.memory:.0f} MB | {cost.requests:,} |",
                    flush=True,
                )
    assert {what: costs for what, costs in per_run.items() if costs[-1] > MOST_GROWTH * costs[0]} == {}


def _requests(folder: Path) -> int:
    return (folder / "server.log").read_bytes().count(b' HTTP/1.1" ')


def _busy(folder: Path) -> float:
    """Return the CPU seconds of the server and its children: the session that its command began."""
    words = {int(entry.name): _words(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    (leader,) = {_stat(pid)[3] for pid, line in words.items() if f"sqlite:///{folder}/mlflow.db".encode() in line}
    mine = [stat for pid in words if (stat := _stat(pid)) and stat[3] == leader]
    return sum(int(stat[11]) + int(stat[12]) for stat in mine) / TICKS


def _words(entry: Path) -> bytes:
    with contextlib.suppress(OSError):
        return (entry / "cmdline").read_bytes()
    return b""


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the state on; none for a process that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return []

"""Sweeps of a real server by Dask workers that do not see the end of it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_cluster import Cluster, cluster
from mlflow_server.gate import Gate, gated
from mlflow_server.real import RealServer

from runtriage.testing.synth import cohort

# The servers that a test starts first are part of its time: on a busy machine they take a minute or two of it.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
COHORTS, RUNS = 10, 30
SWEEP = (sys.executable, "-m", "runtriage", "sweep")
HASTY = (
    "import faulthandler, sys; faulthandler.dump_traceback_later(240, exit=True);"
    "import runtriage.sweep.executors.dask as dask; from runtriage.cli.app import main;"
    "dask.DaskExecutor.__init__.__kwdefaults__['patience'] = 3.0; main(sys.argv[1:])"
)
"""The command line, with less patience with a cluster without workers; should it hang, it says where and ends."""


def filled(server: RealServer, experiment: str) -> str:
    """Log thirty short runs in ten cohorts and return the name of their experiment as it stands in an address."""
    number = server.experiment(experiment)
    for index in range(COHORTS):
        for history in cohort(3, first_seed=10 * index, steps=60, config={"lr": 1e-3, "width": index + 1}):
            server.put(number, dataclasses.replace(history))
    return experiment.replace(" ", "%20")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cluster]:
    """Run a cluster of two workers, to be killed."""
    with cluster(tmp_path / "dask", 2) as made:
        yield made


def killing(made: Cluster, workers: int, gate: Gate) -> None:
    """Have the gate kill workers when a third of the histories was asked for."""
    asked = iter(range(1, 1_000_000))

    def look(_began: list[float], _refused: list[float]) -> None:
        if "get-history" in (gate.asked[-1][1] if gate.asked else "") and next(asked) == RUNS:
            for process in made.workers[:workers]:
                process.kill()

    gate.refuses = look


def read_after(gate: Gate, count: int) -> int:
    """Return how many histories were asked for after the first so many."""
    return sum("get-history" in path for _, path, _ in gate.asked) - count


def reports(file: Path, host: str) -> list[str]:
    """Return the reports of a file, without the address of the server."""
    return sorted(line.replace(host, "HOST") for line in file.read_text().splitlines())


def test_a_worker_killed_in_the_middle_doubles_no_mark(
    mlflow_server: RealServer, two: Cluster, tmp_path: Path
) -> None:
    """Kill -9 while histories are read: all runs are marked, each in one request, and reports are those of no Dask."""
    experiment, file = filled(mlflow_server, "dask death"), tmp_path / "there.json"
    with gated(Gate(mlflow_server.host, lambda *_: None)) as gate:
        killing(two, 1, gate)
        words = [*SWEEP, f"mlflow://{gate.host}/{experiment}", "--write", "tags", "--json", str(file)]
        there = subprocess.run(
            [*words, "--executor", f"dask:{two.file}"], capture_output=True, text=True, timeout=300, check=False
        )
        assert there.returncode == 0, there.stderr
    marked = Counter(json.loads(body)["run_id"] for _, path, body in gate.asked if path.endswith("runs/log-batch"))
    assert (two.workers[0].wait(30), read_after(gate, RUNS) > RUNS) == (-signal.SIGKILL, True)
    assert (len(marked), set(marked.values())) == (RUNS, {1})
    alone, file_alone = f"mlflow://{mlflow_server.host}/{experiment}", tmp_path / "here.json"
    words = [*SWEEP, alone, "--write", "tags", "--json", str(file_alone)]
    here = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert "0 runs changed, 30 already right" in here.stdout
    assert reports(file, gate.host) == reports(file_alone, mlflow_server.host)


@pytest.mark.statistical
def test_all_workers_dead_is_a_partly_failed_sweep(mlflow_server: RealServer, two: Cluster) -> None:
    """Where all workers were killed, what is done is kept, what is not says why, and the command leaves with 4."""
    experiment = filled(mlflow_server, "dask deaths")
    with gated(Gate(mlflow_server.host, lambda *_: None)) as gate:
        killing(two, 2, gate)
        words = [f"mlflow://{gate.host}/{experiment}", "--executor", f"dask:{two.file}"]
        done = subprocess.run(
            [sys.executable, "-c", HASTY, "sweep", *words], capture_output=True, text=True, timeout=300, check=False
        )
    said = "not tried: the cluster had no worker for 3 s" in done.stdout + done.stderr
    assert (done.returncode, said, "Traceback" in done.stderr) == (4, True, False), done.stdout + done.stderr


@pytest.mark.statistical
def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    """A port where nobody listens is one line, and the exit code of a server that cannot be reached."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [*SWEEP, f"files:{tmp_path}", "--executor", f"dask:tcp://127.0.0.1:{port}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    found = re.fullmatch(r"runtriage: no Dask scheduler answers @ .*\n", done.stderr)
    assert (found is not None, done.returncode) == (True, 3), done.stderr


@pytest.mark.statistical
@pytest.mark.parametrize("after", ["start", "read"])
def test_ctrl_c_ends_a_cluster_of_our_own_without_a_word(mlflow_server: RealServer, after: str) -> None:
    """A terminal's Ctrl-C, which workers get too, while they start or in the middle: one line, and nothing is left."""
    experiment = filled(mlflow_server, f"dask stop {after}")
    reached = threading.Event()

    def look(began: list[float], _refused: list[float]) -> None:
        if after == "start" or len(began) > RUNS:
            reached.set()

    with gated(Gate(mlflow_server.host, look)) as gate:
        process = subprocess.Popen(
            [*SWEEP, f"mlflow://{gate.host}/{experiment}", "--executor", "dask"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        if after == "start":
            started(process.pid)
        else:
            assert reached.wait(120)
        os.killpg(process.pid, signal.SIGINT)
        told, _ = process.communicate(timeout=120)
    assert (told.splitlines()[-1], "Traceback" in told) == ("runtriage: interrupted", False), told
    assert not children(process.pid)


def started(pid: int) -> None:
    """Wait until a process has begun to start another one."""
    end = time.monotonic() + 120
    while not children(pid):
        assert time.monotonic() < end, "no worker was started"
        time.sleep(0.02)


def children(session: int) -> list[str]:
    """Return the command lines of the processes of a session but its first."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            line = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if int(stat[3]) == session and stat[0] != "Z" and entry.name != str(session) and line:
            found.append(line)
    return found

"""One server, many workers: what one of them is told holds for all."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_cluster import Cluster, cluster
from mlflow_server.gate import Gate, gated
from mlflow_server.real import RealServer

from runtriage.errors import SourceUnreachableError
from runtriage.sweep.executors.dask import DaskExecutor
from runtriage.sweep.executors.dask_shared import ClusterPace
from runtriage.testing.synth import cohort
from runtriage.trackers.pace import pace_of

pytestmark = pytest.mark.integration
RUNS, READERS, PAUSE = 40, 3, 3.0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster of two workers."""
    with cluster(tmp_path_factory.mktemp("dask"), 2) as made:
        yield made


@pytest.fixture(scope="module")
def filled(mlflow_server: RealServer) -> str:
    """Log forty short runs in twenty cohorts and return the name of their experiment."""
    number = mlflow_server.experiment("dask pace")
    for index in range(RUNS // 2):
        for history in cohort(2, first_seed=10 * index, steps=40, config={"lr": 1e-3, "width": index + 1}):
            mlflow_server.put(number, dataclasses.replace(history))
    return "dask%20pace"


def swept(host: str, experiment: str, file: Path, *words: str) -> list[str]:
    """Sweep and return the reports, without the address of the server."""
    command = [sys.executable, "-m", "runtriage", "sweep", f"mlflow://{host}/{experiment}", "--json", str(file), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr
    return sorted(line.replace(host, "HOST") for line in file.read_text().splitlines())


def test_what_one_worker_is_told_holds_back_all(
    mlflow_server: RealServer, both: Cluster, filled: str, tmp_path: Path
) -> None:
    """After one refusal nobody asks for as long as was asked for; then all goes on, never more at once than bidden."""
    gate = Gate(mlflow_server.host, lambda began, refused: PAUSE if len(began) > 20 and not refused else None)
    with gated(gate):
        words = ("--executor", f"dask:{both.address}", "--readers", str(READERS))
        reports = swept(gate.host, filled, tmp_path / "there.json", *words)
    (told,) = gate.refused[:1]
    early = [at - told for at in gate.began if told + PAUSE / 3 < at < told + PAUSE]
    later = [at for at in gate.began if at > told + PAUSE]
    assert (early, bool(later), gate.most <= READERS) == ([], True, True)
    assert reports == swept(mlflow_server.host, filled, tmp_path / "here.json")


def test_the_scheduler_keeps_the_pace_of_a_server_for_all_who_come(both: Cluster) -> None:
    """A refusal told to one client of the cluster is what another hears, in words and with the patience of one."""
    executors = [DaskExecutor(both.address) for _ in range(2)]
    try:
        with executors[0].in_step():
            pace_of("http://one").acquire()
            pace_of("http://one").feedback(429, 0.1, 3600.0)
            assert isinstance(pace_of("http://one"), ClusterPace)
        with executors[1].in_step(), pytest.raises(SourceUnreachableError, match=r"another may begin in 3[56]"):
            keep_asking("http://one")
    finally:
        for executor in executors:
            executor.close()


def keep_asking(server: str) -> None:
    """Ask for some seconds: what one tells is on its way while another asks."""
    for _ in range(100):
        pace_of(server).acquire()
        time.sleep(0.1)


@pytest.mark.statistical
def test_a_pace_outlives_its_scheduler(tmp_path: Path) -> None:
    """Where the scheduler is gone, a request goes out at a pace of this process."""
    with cluster(tmp_path / "dask", 1) as made:
        executor = DaskExecutor(made.address)
        with executor.in_step():
            pace = pace_of("http://two")
            pace.acquire()
            made.scheduler.kill()
            made.scheduler.wait(30)
            assert pace.acquire() == 0.0
            pace.feedback(200, 0.1)
        executor.close()

"""`runtriage watch` on a real MLflow server: who else writes there, and what a signal does not break off."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from background import background
from mlflow_server.real import RealServer

from runtriage.outputs import tags
from runtriage.testing.synth import cohort

pytestmark = pytest.mark.integration
# The program itself, which lingers in the middle of marking its first run.
LINGERING = """
import sys, time
from runtriage.cli.app import main
from runtriage.trackers.mlflow.source import MlflowSource
apply, lingers = MlflowSource.apply, [4.0]
def lingering(self, info, plan):
    print("begins", info.id, flush=True)
    time.sleep(lingers.pop() if lingers else 0)
    apply(self, info, plan)
    print("has written", info.id, flush=True)
MlflowSource.apply = lingering
main(sys.argv[1:])
"""


@pytest.fixture
def name(mlflow_server: RealServer, request: pytest.FixtureRequest) -> str:
    """Make an experiment of four healthy runs."""
    name = f"watch {request.node.name}"
    experiment = mlflow_server.experiment(name)
    for history in cohort(4):
        mlflow_server.put(experiment, history)
    return name


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtriage", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_rounds_write_once_and_a_second_watch_is_refused(
    mlflow_server: RealServer, name: str, tmp_path: Path
) -> None:
    """The first round marks, later ones find all in place; another watch leaves with 2, a sweep in between works."""
    address = mlflow_server.address(name)
    with background(tmp_path, ["-m", "runtriage", "watch", address, "--every", "2s", "--write", "tags"]) as watch:
        watch.said("marks: 4 runs changed")
        watch.said("marks: 0 runs changed, 4 already right", times=2)
        second = run(tmp_path, "watch", address, "--write", "tags")
        reading = run(tmp_path, "sweep", address)
        assert watch.ended(signal.SIGTERM) == 0
    assert (second.returncode, f"process {watch.process.pid} on" in second.stderr) == (2, True)
    assert (reading.returncode, watch.out.count("4 runs changed")) == (0, 1)


def test_a_round_during_a_sweep_is_left_out(mlflow_server: RealServer, name: str, tmp_path: Path) -> None:
    """Where a sweep writes to the source, the rounds meanwhile say so, and the one after it writes."""
    address = mlflow_server.address(name)
    watching = ["-m", "runtriage", "watch", address, "--every", "1s", "--write", "tags"]
    with background(tmp_path, ["-c", LINGERING, "sweep", address, "--write", "tags"], "sweep") as sweep:
        sweep.said("begins")
        with background(tmp_path, watching, "watch") as watch:
            watch.said("another process is at work on this source: runtriage sweep")
            assert sweep.process.wait(120) == 0
            watch.said("marks: 0 runs changed, 4 already right")
            assert watch.ended(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_current_write_be_finished(
    mlflow_server: RealServer, name: str, tmp_path: Path, number: int
) -> None:
    """In the middle of marking a run, that run is marked and no other is begun."""
    command = ["-c", LINGERING, "watch", mlflow_server.address(name), "--write", "tags"]
    with background(tmp_path, command) as watch:
        watch.said("begins")
        assert watch.ended(number) == 0
    begun = [line.split()[-1] for line in watch.out.splitlines() if line.startswith("begins")]
    written = [line.split()[-1] for line in watch.out.splitlines() if line.startswith("has written")]
    assert (len(begun), begun, "Traceback" in watch.err) == (1, written, False)
    assert tags.STATUS in mlflow_server.tags(written[0])

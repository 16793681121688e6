"""Servers that refuse, fail, or are not there: one line and an exit code, and never a secret."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from mlflow_server.faults import Answer, FaultServer

from runtriage.testing.synth import healthy

pytestmark = pytest.mark.integration
Cli = Callable[..., "subprocess.CompletedProcess[str]"]
SECRET = "hunter2-secret"
DENIED = Answer(status=403, body={"error_code": "PERMISSION_DENIED", "message": "no"})
LOSS = healthy(1).tracks["train/loss"].value.tolist()


def run_body(name: str) -> dict[str, object]:
    """Return a run as the server tells it."""
    info = {"run_id": name, "run_name": name, "experiment_id": "7", "status": "FINISHED", "start_time": 1}
    metric = {"key": "train/loss", "value": LOSS[-1], "timestamp": 1, "step": len(LOSS) - 1}
    return {"info": {**info, "artifact_uri": f"mlflow-artifacts:/7/{name}/artifacts"}, "data": {"metrics": [metric]}}


HISTORY = {"metrics": [{"key": "train/loss", "value": x, "timestamp": 1, "step": i} for i, x in enumerate(LOSS)]}


@pytest.fixture
def faults() -> Iterator[FaultServer]:
    """Run a server with one experiment of one run, whose answers the test changes."""
    with FaultServer().running() as server:
        server.script("experiments/get", Answer(body={"experiment": {"experiment_id": "7", "name": "e"}}))
        server.script("runs/search", Answer(body={"runs": [run_body("a")]}))
        server.script("runs/get", Answer(body={"run": run_body("a")}))
        server.script("metrics/get-history", Answer(body=HISTORY))
        server.script("artifacts/list", Answer())
        yield server


def address(faults: FaultServer) -> str:
    """Return the address of the experiment, with a secret in it."""
    return f"mlflow://me:{SECRET}@{faults.host}/7"


def test_the_scripted_server_serves(cli: Cli, faults: FaultServer) -> None:
    """Without a fault the run is judged: the tests below change one answer each."""
    done = cli("sweep", address(faults), "--json", "-")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "healthy")


REFUSALS = {
    "401": (Answer(status=401, body={}), "other credentials"),
    "403": (DENIED, "may not do this"),
    "500": (Answer(status=500, body={"error_code": "INTERNAL_ERROR"}), "500 INTERNAL_ERROR"),
    "400": (Answer(status=400, body={"error_code": "INVALID_PARAMETER_VALUE"}), "400 INVALID_PARAMETER_VALUE"),
    "JSON cut short": (Answer(body=b'{"runs": [{"inf'), "cut short or damaged"),
    "a login page": (Answer(body=b"<html>", headers={"Content-Type": "text/html"}), "not an answer of MLflow"),
}


@pytest.mark.parametrize(("answer", "what"), REFUSALS.values(), ids=REFUSALS)
def test_a_source_that_cannot_be_listed_ends_with_3(cli: Cli, faults: FaultServer, answer: Answer, what: str) -> None:
    """One line says what the server answered, without the credentials of the address."""
    faults.script("runs/search", answer)
    done = cli("sweep", address(faults))
    assert (done.returncode, what in done.stderr, done.stdout, SECRET in done.stderr) == (3, True, "", False)


def test_a_server_that_is_down_ends_with_3(cli: Cli) -> None:
    """Nobody listens: one line, after a bounded number of tries."""
    done = cli("sweep", f"mlflow://me:{SECRET}@127.0.0.1:1/7")
    assert (done.returncode, "cannot be reached" in done.stderr, SECRET in done.stderr) == (3, True, False)


def test_a_run_deleted_between_listing_and_reading_ends_with_4(cli: Cli, faults: FaultServer) -> None:
    """The run is told as failed, with the reason."""
    faults.script("runs/get", Answer(status=404, body={"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "gone"}))
    done = cli("sweep", address(faults))
    told = "failed: a: the run does not exist" in done.stderr
    assert (done.returncode, told, done.stdout.splitlines()[-1]) == (4, True, "1 run: 1 failed")


def test_a_run_the_server_fails_on_ends_with_4(cli: Cli, faults: FaultServer) -> None:
    """An error on one history costs that run."""
    faults.script("metrics/get-history", Answer(status=400, body={"error_code": "BAD_REQUEST"}))
    done = cli("sweep", address(faults), "--json", "-")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (4, "withheld")


def test_read_only_rights_still_report(cli: Cli, faults: FaultServer) -> None:
    """403 on writing: the verdict is there, one line says that nothing could be written, the exit code is 4."""
    faults.script("runs/log-batch", DENIED)
    done = cli("sweep", address(faults), "--write", "tags", "--json", "-")
    told = [line for line in done.stderr.splitlines() if "nothing could be written" in line]
    assert (done.returncode, json.loads(done.stdout)["verdict"], len(told)) == (4, "healthy", 1)


def test_clearing_without_the_right_to_ends_with_3(cli: Cli, faults: FaultServer) -> None:
    """403 on removing is said in one line."""
    marked = run_body("a")
    marked["data"] = {"tags": [{"key": "runtriage.status", "value": "broken"}]}
    faults.script("runs/get", Answer(body={"run": marked}))
    faults.script("runs/delete-tag", DENIED)
    done = cli("marks", "clear", address(faults))
    assert (done.returncode, "may not do this" in done.stderr) == (3, True)


def test_an_interrupt_ends_a_waiting_sweep_in_one_line(faults: FaultServer) -> None:
    """Ctrl-C while a slow server makes it wait: one line, exit code 130, no traceback."""
    faults.script("runs/search", Answer(delay=20))
    command = [sys.executable, "-m", "runtriage", "sweep", address(faults)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not faults.count("runs/search"):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert (process.returncode, out, err.strip()) == (130, "", "runtriage: interrupted")

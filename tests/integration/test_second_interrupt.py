"""Ctrl-C twice: a sweep that waits for a server that does not answer ends at once, by one exit code."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from mlflow_server.faults import Answer, FaultServer

pytestmark = pytest.mark.integration
RUN = {"info": {"run_id": "r", "experiment_id": "7", "status": "FINISHED"}, "data": {}}
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from runtriage.cli.app import main
main()
"""


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_the_second_ends_it_at_once(faults: FaultServer, executor: str) -> None:
    """The first waits for the answer that a thread waits for; the second does not. One line, no traceback, 130."""
    faults.script("experiments/get", Answer(body={"experiment": {"experiment_id": "7"}}))
    faults.script("runs/search", Answer(body={"runs": [RUN]}))
    faults.script("runs/get", Answer(delay=25.0))
    command = [sys.executable, "-c", PROGRAM, "sweep", f"mlflow://{faults.host}/7", "--executor", executor]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--cache", "off"], text=True, **streams) as process:  # type: ignore[call-overload]
        try:
            until = time.monotonic() + 60
            while not faults.count("runs/get") and time.monotonic() < until:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            lines = [process.stderr.readline() for _ in range(2)]
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            rest = process.stderr.read()
            code = process.wait(60)
        finally:
            process.kill()
    assert (lines, rest, code) == (["\n", "runtriage: interrupted\n"], "", 130)
    assert time.monotonic() - began < 15

"""Ctrl-C at a terminal reaches all processes of a program at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

PROGRAM = """
import signal, time
from runtriage.sweep.executors import ProcessExecutor
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    executor = ProcessExecutor(2)
    try:
        for _ in executor.map(time.sleep, [0.3] * 1000):
            print("one", flush=True)
    except KeyboardInterrupt:
        executor.close()
"""


def test_workers_say_nothing_of_an_interrupt() -> None:
    """The parent alone takes it; nothing is on stderr, and all processes end."""
    command = [sys.executable, "-c", PROGRAM]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, text=True, **streams) as process:  # type: ignore[call-overload]
        try:
            lines = [process.stdout.readline() for _ in range(16)]  # by now both workers are at work
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert (lines[0], process.returncode, err) == ("one\n", 0, "")

"""Ctrl-C at a terminal reaches all processes of a program at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future

import pytest

from runtriage.sweep.executors.pool import _PoolExecutor

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


class _Interrupted(Future[int]):
    """Fails as CPython's condition does when a signal comes between two of its steps."""

    def result(self, timeout: float | None = None) -> int:
        error = RuntimeError("cannot release un-acquired lock")
        error.__context__ = KeyboardInterrupt()
        raise error


class _Pool(Executor):
    def submit(self, *_: object, **__: object) -> _Interrupted:  # type: ignore[override]
        return _Interrupted()


def test_an_interrupt_inside_a_lock_is_an_interrupt() -> None:
    """What CPython raises instead of it is no error of the work."""
    with pytest.raises(KeyboardInterrupt):
        list(_PoolExecutor(_Pool(), 1).map(str, [1]))

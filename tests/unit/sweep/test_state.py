"""Locks: one process at a time does what only one may do with a source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtriage.sweep.state import InUseError, held, identity

ADDRESS = "mlflow://127.0.0.1:5000/x"
HOLD = """
import time
from runtriage.sweep.state import held
with held("sweep", "mlflow://127.0.0.1:5000/x", "runtriage sweep"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_second_is_told_who_holds_it() -> None:
    """The message names the program, the process and the host."""
    with held("sweep", ADDRESS, "runtriage sweep"), pytest.raises(InUseError) as caught, held("sweep", ADDRESS, "me"):
        pass
    assert f"runtriage sweep, process {os.getpid()} on " in caught.value.message
    assert (caught.value.where, caught.value.exit_code) == (ADDRESS, 2)


def test_other_sources_and_other_work_are_free() -> None:
    """A lock is for one kind of work on one source."""
    with held("sweep", ADDRESS, "a"), held("watch", ADDRESS, "b"), held("sweep", f"{ADDRESS}y", "c"):
        assert True


def test_it_is_free_again_afterwards() -> None:
    """Leaving the block lets the next one in."""
    for _ in range(2):
        with held("sweep", ADDRESS, "a"):
            pass
    assert True


def test_a_killed_process_does_not_block() -> None:
    """The lock of a process that was killed is gone with it."""
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InUseError, match=f"process {process.pid} on"), held("sweep", ADDRESS, "me"):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    with held("sweep", ADDRESS, "me"):
        assert True


def test_a_folder_is_the_same_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways to name a folder are one source."""
    monkeypatch.chdir(tmp_path)
    assert identity("files:runs") == identity(f"files:{tmp_path}/x/../runs")
    assert identity(ADDRESS) == ADDRESS

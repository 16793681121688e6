"""The command line in this process, or in one of its own that may be killed."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from runtriage.cli.app import main


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def command(*words: str) -> Done:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as left:
            code = left.code
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())


def begun(*words: str) -> subprocess.Popen[bytes]:
    """Start a command as a process of its own."""
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", "runtriage", *words], **silent)  # type: ignore[call-overload,no-any-return]


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, without a word to it; nothing if it has ended."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)

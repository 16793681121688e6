"""A command in a process of its own that goes on while a test looks at what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120.0
"""Seconds until something must have happened, on however busy a machine."""


class Background:
    """A process and its streams, which are files.

    Attributes
    ----------
    process
        It.
    """

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process, self._out, self._err = process, out, err

    @property
    def out(self) -> str:
        """What it has written to stdout so far."""
        return self._out.read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        """What it has written to stderr so far."""
        return self._err.read_text(encoding="utf-8")

    def said(self, text: str, times: int = 1) -> None:
        """Wait until a text stands in what it wrote so many times."""
        end = time.monotonic() + PATIENCE
        while (self.out + self.err).count(text) < times:
            assert self.process.poll() is None, f"it has ended with {self.process.returncode}: {self.out}{self.err}"
            assert time.monotonic() < end, f"it never said {text!r}: {self.out}{self.err}"
            time.sleep(0.05)

    def ended(self, number: int) -> int:
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def background(folder: Path, command: Sequence[str], name: str = "it") -> Iterator[Background]:
    """Run a Python command in a folder until the block ends."""
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        out.open("wb") as stdout,
        err.open("wb") as stderr,
        subprocess.Popen([sys.executable, *command], cwd=folder, env=environ, stdout=stdout, stderr=stderr) as process,
    ):
        try:
            yield Background(process, out, err)
        finally:
            if process.poll() is None:
                process.kill()

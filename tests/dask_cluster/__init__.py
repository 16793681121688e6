"""A scheduler and workers of Dask as programs of their own, on the loopback interface, ended by their own pid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_LIMIT = 120.0
_BOUND = ("--host", "127.0.0.1", "--no-dashboard")


class Cluster:
    """A scheduler and its workers.

    Attributes
    ----------
    file
        Scheduler file.
    scheduler, workers
        Processes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        end = time.monotonic() + START_LIMIT
        while not self.file.is_file():
            assert self.scheduler.poll() is None, (folder / "dask.log").read_text(errors="replace")
            assert time.monotonic() < end, "the scheduler did not start"
            time.sleep(0.05)
        facts: dict[str, Any] = json.loads(self.file.read_bytes())
        self.address = str(facts["address"])

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of one thread without a nanny: once killed, it stays dead."""
        name = f"w{len(self.workers)}"
        self.workers.append(self._start("worker", "--nthreads", "1", "--no-nanny", "--name", name))
        return self.workers[-1]

    def end(self) -> None:
        """Kill what still runs."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(30)

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file), *_BOUND, *options]
        with (self.folder / "dask.log").open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
            return subprocess.Popen(words, cwd=self.folder, env=environment, stdout=log, stderr=log)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Run a cluster in a folder until the block ends."""
    folder.mkdir(exist_ok=True)
    made = Cluster(folder)
    try:
        for _ in range(workers):
            made.add_worker()
        yield made
    finally:
        made.end()

"""A real tracking server on a free port, and requests to it that bypass the code under test."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runtriage.model.history import RunHistory

START_LIMIT = 120.0
POINTS_PER_REQUEST = 1000
_NEW = itertools.count()
T0 = 1_700_000_000_000


class Rest:
    """MLflow's REST API, word for word."""

    def __init__(self, base: str) -> None:
        self.base = base

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, /, **params: Any) -> Any:
        """Send one request below ``/api/2.0/mlflow/`` and return the JSON answered."""
        query = f"?{urllib.parse.urlencode(params, doseq=True)}" if params else ""
        return json.loads(self.raw(method, f"/api/2.0/mlflow/{path}{query}", body) or b"{}")

    def raw(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """Send one request and return the bytes answered."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=method)  # noqa: S310  loopback
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310  loopback
            found: bytes = response.read()
        return found

    def experiment(self, name: str | None = None) -> str:
        """Create an experiment and return its id."""
        made = self.call("POST", "experiments/create", {"name": name or f"exp {next(_NEW)}"})
        return str(made["experiment_id"])

    def run(self, experiment: str, name: str = "run", *, start: int = T0, status: str | None = None) -> str:
        """Create a run and return its id."""
        body = {"experiment_id": experiment, "run_name": name, "start_time": start}
        run = str(self.call("POST", "runs/create", body)["run"]["info"]["run_id"])
        if status is not None:
            self.end(run, status)
        return run

    def end(self, run: str, status: str = "FINISHED", at: int = T0 + 1000) -> None:
        """Set the state of a run."""
        self.call("POST", "runs/update", {"run_id": run, "status": status, "end_time": at})

    def log(self, run: str, key: str, points: Iterable[tuple[int, float, int]]) -> None:
        """Log points (step, value, time stamp) of one metric."""
        rows = [{"key": key, "value": _word(v), "timestamp": t, "step": s} for s, v, t in points]
        for start in range(0, len(rows), POINTS_PER_REQUEST):
            self.call("POST", "runs/log-batch", {"run_id": run, "metrics": rows[start : start + POINTS_PER_REQUEST]})

    def params(self, run: str, params: Mapping[str, str]) -> None:
        """Log parameters."""
        body = [{"key": key, "value": value} for key, value in params.items()]
        self.call("POST", "runs/log-batch", {"run_id": run, "params": body})

    def set_tag(self, run: str, key: str, value: str) -> None:
        """Set a tag of a run."""
        self.call("POST", "runs/set-tag", {"run_id": run, "key": key, "value": value})

    def tags(self, run: str) -> dict[str, str]:
        """Return all tags of a run."""
        data = self.call("GET", "runs/get", run_id=run)["run"]["data"]
        return {tag["key"]: tag["value"] for tag in data.get("tags", [])}

    def experiment_tags(self, experiment: str) -> dict[str, str]:
        """Return all tags of an experiment."""
        found = self.call("GET", "experiments/get", experiment_id=experiment)["experiment"]
        return {tag["key"]: tag["value"] for tag in found.get("tags", [])}

    def set_experiment_tag(self, experiment: str, key: str, value: str) -> None:
        """Set a tag of an experiment."""
        body = {"experiment_id": experiment, "key": key, "value": value}
        self.call("POST", "experiments/set-experiment-tag", body)

    def files(self, run: str, path: str = "") -> list[str]:
        """Return the paths in one folder of a run's artifacts."""
        found = self.call("GET", "artifacts/list", run_id=run, path=path)
        return sorted(entry["path"] for entry in found.get("files", []))

    def file(self, run: str, path: str) -> bytes:
        """Return the content of an artifact, as the pages of MLflow load it."""
        return self.raw("GET", "/get-artifact?" + urllib.parse.urlencode({"path": path, "run_uuid": run}))

    def put(self, experiment: str, history: RunHistory) -> str:
        """Log a history in its own order and return the id of the run."""
        run = self.run(experiment, history.info.name or history.info.id)
        self.params(run, {key: str(value) for key, value in history.info.config.items()})
        for key, track in history.tracks.items():
            pairs = zip(track.step.tolist(), track.value.tolist(), strict=True)
            self.log(run, key, [(step, value, T0 + i) for i, (step, value) in enumerate(pairs)])
        self.end(run)
        return run


class RealServer(Rest):
    """A tracking server of our own.

    Attributes
    ----------
    host
        ``127.0.0.1:PORT``, as it stands in an address.
    database
        Its SQLite file.
    pid
        Of its group of processes.
    """

    def __init__(self, port: int, folder: Path, *options: str) -> None:
        super().__init__(f"http://127.0.0.1:{port}")
        self.host = f"127.0.0.1:{port}"
        self.database = folder / "mlflow.db"
        self.pid = 0
        self._folder, self._log = folder, folder / "server.log"
        self._command = [
            *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
            *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db"),
            *("--artifacts-destination", f"{folder}/artifacts"), *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it, again if it was killed, and wait until it answers."""
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.pid = self._process.pid
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError, urllib.error.URLError):
                if self.raw("GET", "/health") == b"OK":
                    return
            time.sleep(0.2)
        raise RuntimeError(f"mlflow server did not start:\n{self._log.read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """End it without a word, as the machine or its supervisor may."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """End it politely; at once if that takes too long."""
        try:
            self._signal(signal.SIGTERM)
        except subprocess.TimeoutExpired:
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)  # its own group: uvicorn's workers are children of the child
            self._process.wait(10)

    def requests(self) -> int:
        """Return how many requests to the API were answered so far, as the server's log has it."""
        return self._log.read_bytes().count(b" /api/2.0/")

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that its processes have used so far (Linux)."""
        ticks = 0
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = entry.read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12]) if int(fields[2]) == self.pid else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    def insert(self, run: str, key: str, points: Iterable[tuple[int, float, int]]) -> None:
        """Write points (step, value, time stamp) of one metric into the database: thousands in no time."""
        rows = [(key, value, stamp, run, step) for step, value, stamp in points]
        with contextlib.closing(sqlite3.connect(self.database, timeout=30)) as connection, connection:
            connection.executemany(
                "insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, ?, ?, 0)", rows
            )

    def address(self, experiment: str) -> str:
        """Return the address of an experiment."""
        return f"mlflow://{self.host}/{urllib.parse.quote(experiment, safe='')}"


@contextmanager
def real_server(folder: Path, *options: str) -> Iterator[RealServer]:
    """Run ``mlflow server`` over SQLite in a folder until the block ends."""
    server = RealServer(_free_port(), folder, *options)
    try:
        server.begin()
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _word(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")

"""A real MLflow server for the demo: SQLite and artifacts in a folder, on loopback, ended by its own process group."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from runtriage.cli.console import note
from runtriage.errors import MissingExtraError, SourceUnreachableError

START_SECONDS = 120.0
STOP_SECONDS = 10.0
_RUNNING = re.compile(rb"running on http://127\.0\.0\.1:(\d+)")
_ALIEN = ("MLFLOW_", "_MLFLOW_", "UVICORN_", "GUNICORN_")


@contextmanager
def served(folder: Path, port: int) -> Iterator[Server]:
    """Start a server, wait until it answers, and end it.

    Parameters
    ----------
    folder
        Where its database, artifacts and log go.
    port
        Port to listen on; 0 lets the system choose a free one.

    Raises
    ------
    MissingExtraError
        MLflow is not installed.
    SourceUnreachableError
        It does not start.
    """
    try:
        version("mlflow")
    except PackageNotFoundError:
        raise MissingExtraError("the demo needs MLflow itself", hint="pip install 'runtriage[demo]'") from None
    note(f"runtriage: starting an MLflow server in {folder}")
    log = folder / "server.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603  our own interpreter, no word of a user
            _command(folder, port), cwd=folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=stream,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
    try:
        yield Server(process, _await_port(process, log))
    finally:
        _end(process)


class Server:
    """A server that answers.

    Parameters
    ----------
    process
        Its process, the leader of a group of its own.
    port
        Port it listens on.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.place = f"127.0.0.1:{port}"

    def wait(self) -> None:
        """Return when the server has ended by itself."""
        while self._process.poll() is None:
            time.sleep(0.2)


def _command(folder: Path, port: int) -> list[str]:
    return [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}",
        "--artifacts-destination", str(folder / "artifacts"),
    ]


def _environment() -> dict[str, str]:
    """Return the environment without anything that would point the server, or its telemetry, elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_ALIEN)}
    return kept | {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


def _await_port(process: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if match := _RUNNING.search(log.read_bytes()):
            return int(match[1])
        if process.poll() is not None:
            raise SourceUnreachableError("the MLflow server ended at once", where=_last_line(log))
        time.sleep(0.1)
    raise SourceUnreachableError(f"the MLflow server did not start within {START_SECONDS:.0f} s", where=_last_line(log))


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if "rror" in line]
    return (telling or lines or ["its log is empty"])[-1][-200:]


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.wait()

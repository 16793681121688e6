"""A PostgreSQL cluster of our own: in a folder, on a free loopback port, ended by its pid."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSTALL = "apt-get install -y postgresql"
USER = "postgres"  # Debian's package makes it; servers refuse to run as root
START_LIMIT = 60.0


def programs() -> Path | None:
    """Return the folder of the newest server's programs, None where there is none or it may not be run."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    found = debian[-1] if debian else shutil.which("initdb")
    if found is None or (os.geteuid() == 0 and shutil.which("setpriv") is None):
        return None
    return Path(found).parent


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Run a cluster in a folder until the block ends; yields the URL of an empty database."""
    tools = programs()
    assert tools is not None
    as_user, data = _as_user(folder), folder / "data"
    made = [str(tools / "initdb"), "-D", str(data), "-U", "mlflow", "-A", "trust", "--no-sync", "-E", "UTF8"]
    subprocess.run([*as_user, *made], check=True, capture_output=True, cwd=folder)
    port = _free_port()
    command = [str(tools / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", "", "-F"]
    with (folder / "postgres.log").open("wb") as log:
        process = subprocess.Popen([*as_user, *command], cwd=folder, stdout=log, stderr=log)
    try:
        _wait(process, tools, port, folder / "postgres.log")
        yield f"postgresql://mlflow@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)  # fast shutdown: open sessions are ended
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _as_user(folder: Path) -> list[str]:
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, USER, USER)
    for parent in folder.parents:  # pytest's folders are for their owner only
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


def _wait(process: subprocess.Popen[bytes], tools: Path, port: int, log: Path) -> None:
    ready = [str(tools / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end and process.poll() is None:
        if subprocess.run(ready, check=False).returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(f"postgres did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

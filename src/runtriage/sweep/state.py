"""What stays on this machine between sweeps: locks and journals, in the platform's folder for state.

Nothing there is needed: the trackers are the database. A folder that cannot be written costs the lock and the journal,
never the sweep.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from runtriage.errors import UsageError
from runtriage.model.refs import LOCAL_SCHEMES, parse_address

if sys.platform != "win32":  # there is none there: sweeps of one source are then not kept apart
    import fcntl


class InUseError(UsageError):
    """Another process is doing this; the message says which."""


def state_folder() -> Path:
    """Return the folder for state of this user; it need not exist."""
    from platformdirs import user_state_path  # noqa: PLC0415  most commands keep nothing

    return user_state_path("runtriage", appauthor=False)


def identity(address: str) -> str:
    """Return the same text for the same source, from whatever working folder it is named.

    Parameters
    ----------
    address
        Canonical address.
    """
    parsed = parse_address(address)
    if parsed.scheme in LOCAL_SCHEMES:
        return f"{parsed.scheme}:{Path(parsed.location).expanduser().resolve()}"
    return address


def name_of(*facts: object) -> str:
    """Return a file name that stands for facts."""
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()[:24]


@contextmanager
def held(kind: str, address: str, who: str) -> Iterator[None]:
    """Hold what only one process may do with a source at a time.

    The lock is the kernel's: it ends with the process, however that ends.

    Parameters
    ----------
    kind
        What is held, such as ``sweep``.
    address
        Canonical address of the source.
    who
        How the holder calls itself, for whoever comes second.

    Raises
    ------
    InUseError
        Another process holds it.
    OSError
        The folder for state cannot be written.
    """
    path = state_folder() / "locks" / f"{kind}-{name_of(identity(address))}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        take(file, address)
        file.truncate(0)
        file.write(json.dumps(signature(who)).encode())
        file.flush()
        yield
        file.truncate(0)


def take(file: IO[bytes], where: str) -> None:
    """Lock an open file for this process until it is closed.

    Raises
    ------
    InUseError
        Another process has it locked; ``where`` is the place that the message names.
    """
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        what = f"another process is at work on this source: {_holder(file.readline())}"
        raise InUseError(what, where=where, hint="wait for it, or end it") from None


def signature(who: str) -> dict[str, str | int]:
    """Return who this process is, for the first line of a file that it holds."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return {"who": who, "pid": os.getpid(), "host": platform.node(), "since": since}


def _holder(line: bytes) -> str:
    try:
        said: Any = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, Mapping):
        return "it does not say which"
    return f"{said.get('who')}, process {said.get('pid')} on {said.get('host')}, since {said.get('since')}"


"""Where entries lie: any address that fsspec opens; a folder of the user's own by default.

Contract
--------
* **A cache never fails a sweep.** What its file system raises counts as "not there"; after a few failures in a row it
  is not asked any more, and :attr:`HistoryStore.trouble` says why.
* **Readers never see half a file**: an entry is written under a name of its own and then renamed, or, in an object
  store, put whole. Of two writers the last one wins; both have written something true.
* **Names are digests.** Nothing that a tracker says becomes part of a path.
* **The size is bounded.** Entries used least recently go first; who else removes the same ones does no harm. Only a
  local folder knows when an entry was used; elsewhere the time of writing counts.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import fsspec
import platformdirs
from fsspec.implementations.local import LocalFileSystem

from runtriage.errors import MissingExtraError, UsageError
from runtriage.model.refs import redacted
from runtriage.trackers.cache.entry import Entry, Key, decode_entry, encode_entry

GIVE_UP_AFTER = 3
"""Failures in a row of the file system, after which it is left alone."""
ABANDONED_SECONDS = 3600.0
"""Age at which an unfinished file is one whose writer has died."""

_FOLDER = "histories-1"
_UNFINISHED = "unfinished"
_PUT_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "memory"})
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")
_SLACK = 20

_log = logging.getLogger(__name__)
T = TypeVar("T")


class HistoryStore:
    """Entries at one address. Safe in several threads and beside other processes.

    Parameters
    ----------
    address
        As fsspec understands it: a folder, ``s3://…``, ``memory://…``. Empty: the platform's folder for caches, which
        is made for its owner only.
    max_bytes
        Size that is kept to, up to a twentieth.

    Raises
    ------
    UsageError
        fsspec knows no such address.
    MissingExtraError
        Its driver is not installed.
    """

    def __init__(self, address: str = "", *, max_bytes: int) -> None:
        self._private = not address
        where = address or str(platformdirs.user_cache_path("runtriage"))
        self.shown = redacted(where)
        self._fs, root = _opened(where, self.shown)
        self._base = f"{root.rstrip('/')}/{_FOLDER}"
        self._local = isinstance(self._fs, LocalFileSystem)
        self._max = max_bytes
        self._lock = threading.Lock()
        self._failed = 0
        self._written = 0
        self._made: set[str] = set()
        self.trouble: str | None = None

    def get(self, key: Key) -> Entry | None:
        """Return the entry of a run, None if there is none that is whole."""
        path = self._path(key)
        content = self._tried("read", lambda: self._fs.cat_file(path))
        entry = decode_entry(content, key) if content is not None else None
        if entry is not None and self._local:
            self._tried("touch", lambda: self._fs.touch(path, truncate=False))
        return entry

    def put(self, key: Key, entry: Entry) -> None:
        """Keep an entry in place of what was there."""
        try:
            content = encode_entry(key, entry)
        except (ValueError, TypeError):
            return  # not a history that can be kept
        if len(content) > self._max:
            return
        self._tried("write", lambda: self._write(self._path(key), content))
        with self._lock:
            self._written += len(content)
            full = self._written * _SLACK > self._max
        if full:
            self.trim()

    def trim(self) -> None:
        """Remove what was used least recently, until the size is kept to, and what dead writers left behind."""
        with self._lock:
            self._written = 0
        self._fs.invalidate_cache()
        found = self._tried("list", lambda: self._fs.find(self._base, detail=True)) or {}
        now = time.time()
        entries = []
        for path, info in found.items():
            if f"/{_UNFINISHED}/" not in path:
                entries.append((_moment(info), path, int(info.get("size") or 0)))
            elif now - _moment(info) > ABANDONED_SECONDS:
                self._remove(path)
        size = sum(each for _, _, each in entries)
        for _, path, each in sorted(entries):
            if size <= self._max:
                return
            self._remove(path)
            size -= each

    def close(self) -> None:
        """Keep to the size, if anything was written. May be called twice."""
        if self._written:
            self.trim()

    def _path(self, key: Key) -> str:
        return f"{self._base}/{key.digest[:2]}/{key.digest}.parquet"

    def _write(self, path: str, content: bytes) -> None:
        self._make_folder(path.rpartition("/")[0])
        kinds = {self._fs.protocol} if isinstance(self._fs.protocol, str) else set(self._fs.protocol)
        if kinds & _PUT_WHOLE:
            self._fs.pipe_file(path, content)
            return
        beside = f"{self._base}/{_UNFINISHED}/{uuid.uuid4().hex}"
        self._make_folder(beside.rpartition("/")[0])
        try:
            self._fs.pipe_file(beside, content)
            self._fs.mv(beside, path)
        except BaseException:
            with contextlib.suppress(Exception):
                self._fs.rm_file(beside)
            raise

    def _make_folder(self, folder: str) -> None:
        if folder in self._made:
            return
        if self._private:
            for place in _new_parents(Path(folder)):
                place.mkdir(mode=0o700, exist_ok=True)
        self._fs.makedirs(folder, exist_ok=True)
        self._made.add(folder)

    def _remove(self, path: str) -> None:
        self._tried("remove", lambda: self._fs.rm_file(path))

    def _tried(self, what: str, action: Callable[[], T]) -> T | None:
        if self._failed >= GIVE_UP_AFTER:
            return None
        try:
            found = action()
        except FileNotFoundError:
            self._made.clear()  # somebody may have removed the folders
            found = None
        except Exception as error:  # noqa: BLE001  drivers raise what they like, and a cache only saves time
            _log.debug("cannot %s in %s", what, self.shown, exc_info=True)
            with self._lock:
                self._failed += 1
                self.trouble = self.trouble or f"cannot {what}: {type(error).__name__}: {_one_line(error)}"
            return None
        self._failed = 0
        return found


def _opened(where: str, shown: str) -> tuple[Any, str]:
    try:
        fs, root = fsspec.core.url_to_fs(where)
    except ImportError as error:
        raise MissingExtraError(f"this address needs a package: {_one_line(error)}", where=shown) from None
    except (ValueError, TypeError, OSError) as error:
        hint = "give a folder, an address such as s3://BUCKET/FOLDER, or off"
        raise UsageError(f"histories cannot be kept there: {_one_line(error)}", where=shown, hint=hint) from None
    return fs, str(root)


def _new_parents(folder: Path) -> Iterator[Path]:
    """Yield the folders to make, outermost first, down to and including the one asked for."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    yield from reversed(missing)


def _moment(info: dict[str, Any]) -> float:
    """Return when a file was last used or written, seconds since the epoch; 0 where its file system does not say."""
    found = next((info[name] for name in _TIMES if info.get(name) is not None), 0.0)
    if isinstance(found, str):
        with contextlib.suppress(ValueError):
            found = datetime.fromisoformat(found)
    if isinstance(found, datetime):
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return float(found) if isinstance(found, int | float) else 0.0


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]

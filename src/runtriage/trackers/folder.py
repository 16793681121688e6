"""What every source that reads a folder shares: finding runs again, by id, by name, or by where they lie."""

from __future__ import annotations

import abc
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from runtriage.errors import RunNotFoundError, SourceError
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.marks import content_digest
from runtriage.model.refs import parse_address

Place = TypeVar("Place")
"""Where a run lies; what it is, only the source knows."""


def cursor_of(paths: Iterable[Path]) -> str:
    """Return a text that differs once one of the files has changed, or files came or went."""
    stamps = []
    for path in sorted(paths):
        try:
            found = path.stat()
        except OSError:
            continue
        stamps.append(f"{path.name}:{found.st_size}:{found.st_mtime_ns}")
    return content_digest("\n".join(stamps).encode())


class FolderSource(abc.ABC, Generic[Place]):
    """The runs of a folder. Nothing is opened before the first call that needs it.

    Parameters
    ----------
    address
        ``SCHEME:DIR``.

    Raises
    ------
    UsageError
        Not an address.
    """

    scheme: ClassVar[str]

    def __init__(self, address: str) -> None:
        parsed = parse_address(address)
        self._address = parsed.canonical
        self._root = Path(parsed.location).expanduser()
        self._places: dict[str, Place] = {}
        self._lock = threading.Lock()

    @classmethod
    def split_run(cls, address: str) -> tuple[str, str | None]:
        """Split ``SCHEME:DIR/RUN`` if ``DIR/RUN`` is a run, or if ``DIR`` has runs and nothing lies at ``DIR/RUN``."""
        shown = Path(parse_address(address).location)
        here = shown.expanduser()
        parent = f"{cls.scheme}:{shown.parent}"
        run_id = cls._run_at(here)
        if run_id is not None:
            return parent, run_id
        if not here.exists() and here.parent.is_dir() and next(cls._scan("", here.parent), None) is not None:
            return parent, shown.name
        return address, None

    @property
    def address(self) -> str:
        """Canonical address."""
        return self._address

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs.

        Raises
        ------
        SourceError
            There is no such folder, or it may not be read.
        """
        for info, _ in self._list():
            yield info

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run by id, or by its name or the name of its folder where that is unique.

        Raises
        ------
        RunNotFoundError
            No such run, or several.
        SourceError
            As :meth:`list_runs`.
        """
        named: list[RunInfo] = []
        for info, place in self._list():
            if info.id == run_id:
                return info
            if run_id in (info.name, self._folder_name(place)):
                named.append(info)
        if len(named) != 1:
            what = f"{len(named)} runs are called" if named else "there is no run"
            raise RunNotFoundError(f"{what} {run_id}", where=self._address)
        return named[0]

    @abc.abstractmethod
    def read(self, info: RunInfo) -> RunHistory:
        """Return the full history of a run."""

    def close(self) -> None:
        """Do nothing: no file stays open."""

    @classmethod
    @abc.abstractmethod
    def _scan(cls, address: str, root: Path) -> Iterator[tuple[RunInfo, Place]]:
        """Yield every run below a folder, and where it lies."""

    @classmethod
    @abc.abstractmethod
    def _run_at(cls, path: Path) -> str | None:
        """Return the id of the run if the path is itself one run."""

    @staticmethod
    @abc.abstractmethod
    def _folder_name(place: Place) -> str:
        """Return the name a person sees on disk."""

    def _place(self, info: RunInfo) -> Place:
        """Return where a run lies, looking again if it is not known.

        Raises
        ------
        RunNotFoundError
            There is no such run.
        """
        with self._lock:
            place = self._places.get(info.id)
        if place is not None:
            return place
        if self._root.exists():
            for found, place in self._list():
                if found.id == info.id:
                    return place
        raise RunNotFoundError(f"the run {info.id} is not there", where=self._address)

    def _list(self) -> Iterator[tuple[RunInfo, Place]]:
        if not self._root.exists():
            raise SourceError("there is no such folder", where=self._address)
        seen: set[str] = set()
        try:
            for found, place in self._scan(self._address, self._root):
                info = found
                if info.id in seen:  # two folders claim one id: the later one goes by its place
                    info = replace(info, id=f"{info.id}@{self._folder_name(place)}")
                seen.add(info.id)
                with self._lock:
                    self._places[info.id] = place
                yield info, place
        except PermissionError as error:
            raise SourceError("the folder may not be read", where=self._address) from error

"""What came of each run of a sweep, on disk instead of in memory; a sweep that was cut short goes on from it.

One JSON line an outcome, only ever appended, so that a process may be killed at any moment: a last line that is torn is
cut off when the journal is opened again. In memory is only where each line stands. A journal is removed when all runs
are done.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from runtriage.codec import decode_report, encode_report
from runtriage.errors import CodecError
from runtriage.model.history import RunInfo
from runtriage.model.report import Report
from runtriage.sweep.state import signature, take
from runtriage.sweep.unchanged import Basis

SCHEMA = "runtriage.journal/1"
_WHO = "runtriage sweep"
_OLD = 30 * 86400.0
"""Seconds after which the journal of a sweep that nobody went on with is removed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One run of a sweep, without its curves.

    Attributes
    ----------
    report
        What is said of it.
    made_of
        Digest of what the verdict was made of.
    done
        Nothing is left to do for this run: it was read, judged and, where asked for, marked.
    failure, write_failure, kept
        As in :class:`~runtriage.sweep.outcome.Outcome`.
    plan
        The changes of marks in words; None if nothing was to be written.
    pictures
        The small and the large picture of the page, as markup of our own; empty without a page.
    """

    report: Report
    made_of: str = ""
    done: bool = True
    failure: str | None = None
    write_failure: str | None = None
    kept: bool = False
    plan: tuple[str, ...] | None = None
    pictures: tuple[str, str] = ("", "")

    @property
    def changes(self) -> bool | None:
        """Whether marks were changed; None if nothing was to be written."""
        return None if self.plan is None else bool(self.plan)


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    run: str
    made_of: str
    done: bool
    report: msgspec.Raw
    failure: str | None = None
    write_failure: str | None = None
    kept: bool = False
    plan: tuple[str, ...] | None = None
    pictures: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    start: int
    size: int
    made_of: str
    done: bool
    kept: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Journal:
    """The outcomes of one sweep, by run. Made by :func:`open_journal` or :func:`open_spool`.

    Attributes
    ----------
    head
        What the first line says: schema, who writes it, and facts that the sweep gave.
    resumed
        Outcomes of an earlier sweep were found.
    """

    head: dict[str, Any]
    resumed: bool = False
    _file: IO[bytes]
    _path: Path | None = None
    _end: int = 0
    _places: dict[str, _Place] = field(default_factory=dict)

    @property
    def is_lasting(self) -> bool:
        """Whether a later sweep can go on with it."""
        return self._path is not None

    def is_done(self, run_id: str, made_of: str) -> bool:
        """Tell whether a run is done, and its verdict was made of just this."""
        place = self._places.get(run_id)
        return place is not None and place.done and place.made_of == made_of

    def was_kept(self, run_id: str) -> bool:
        """Tell whether a run was not read, since nothing had changed."""
        place = self._places.get(run_id)
        return place is not None and place.kept

    def find(self, run_id: str) -> Entry | None:
        """Return the newest entry of a run, or None."""
        place = self._places.get(run_id)
        if place is None:
            return None
        self._file.seek(place.start)
        return _entry(self._file.read(place.size))

    def entries(self, run_ids: Iterable[str]) -> Iterator[Entry]:
        """Yield the entries of runs in the order asked for; at most one is in memory."""
        for run_id in run_ids:
            entry = self.find(run_id)
            if entry is not None:
                yield entry

    def add(self, run_id: str, entry: Entry) -> None:
        """Append an entry; it is with the system before this returns.

        Raises
        ------
        OSError
            The disk is full.
        """
        line = _Line(
            run=run_id, made_of=entry.made_of, done=entry.done, report=msgspec.Raw(encode_report(entry.report)),
            failure=entry.failure, write_failure=entry.write_failure, kept=entry.kept, plan=entry.plan,
            pictures=entry.pictures,
        )
        content = msgspec.json.encode(line)
        self._file.seek(self._end)
        self._file.write(content + b"\n")
        self._file.flush()
        self._places[run_id] = _Place(
            start=self._end, size=len(content), made_of=entry.made_of, done=entry.done, kept=entry.kept
        )
        self._end += len(content) + 1

    def close(self, *, complete: bool) -> None:
        """Close the file, and remove it if nothing is left to do. May be called twice."""
        if complete and self._path is not None and not self._file.closed:
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _begin(self) -> None:
        self._file.truncate(0)
        self._file.seek(0)
        self._end = self._file.write(msgspec.json.encode(self.head) + b"\n")
        self._file.flush()
        self._places.clear()

    def _load(self) -> bool:
        """Read what is there, up to a line that is torn; tell whether it is a journal."""
        self._file.seek(0)
        first = self._file.readline()
        head = _head(first)
        if head is None:
            return False
        self.head, self._end = {**head, **signature(_WHO)}, len(first)
        for line in self._file:
            found = _line(line)
            if found is None:
                break
            self._places[found.run] = _Place(
                start=self._end, size=len(line) - 1, made_of=found.made_of, done=found.done, kept=found.kept
            )
            self._end += len(line)
        self._file.truncate(self._end)
        self.resumed = bool(self._places)
        return True


def open_journal(path: Path, facts: dict[str, Any], *, resume: bool) -> Journal:
    """Open the journal of a sweep, for this process alone.

    Parameters
    ----------
    path
        Where it lies.
    facts
        What a new journal says in its first line; one that is resumed keeps its own.
    resume
        Go on with what is there; otherwise it is begun anew.

    Raises
    ------
    InUseError
        Another process is writing it.
    OSError
        It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _tidy(path.parent)
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    try:
        take(file, str(path))
        journal = Journal(head={"schema": SCHEMA, **facts, **signature(_WHO)}, _file=file, _path=path)
        if not (resume and journal._load()):  # noqa: SLF001  its own maker
            journal._begin()  # noqa: SLF001
    except BaseException:
        file.close()
        raise
    return journal


def open_spool(facts: dict[str, Any]) -> Journal:
    """Return a journal that nobody can go on with: it has no name and ends with the process."""
    journal = Journal(head={"schema": SCHEMA, **facts}, _file=tempfile.TemporaryFile())  # noqa: SIM115
    journal._begin()  # noqa: SLF001  its own maker
    return journal


def _tidy(folder: Path) -> None:
    for old in folder.glob("*.jsonl"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _OLD:
                old.unlink()


def _head(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA and line.endswith(b"\n") else None


def _line(content: bytes) -> _Line | None:
    if not content.endswith(b"\n"):
        return None
    try:
        return msgspec.json.decode(content, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _entry(content: bytes) -> Entry | None:
    line = _line(content + b"\n")
    if line is None:
        return None
    with suppress(CodecError):
        return Entry(
            report=decode_report(bytes(line.report)), made_of=line.made_of, done=line.done, failure=line.failure,
            write_failure=line.write_failure, kept=line.kept, plan=line.plan, pictures=line.pictures,
        )
    return None


def not_done(groups: Sequence[Sequence[RunInfo]], journal: Journal, basis: Basis) -> list[list[RunInfo]]:
    """Return the groups, without what is done and has not changed since.

    Runs that are judged together are all done or all to be read, since each of them is part of what the others'
    verdicts are made of.
    """
    made_of = basis.for_journal(groups)
    rest = []
    for infos in groups:
        left = [
            info
            for unit in basis.judged_together([infos])
            if not all(journal.is_done(one.id, made_of[one.id]) for one in unit)
            for info in unit
        ]
        if left:
            rest.append(left)
    return rest

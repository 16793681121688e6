"""Runs and marks held in memory: the reference tracker, assumed perfect.

Sweeps, plans and contracts are tested against it, so it does nothing that a real tracker would not do, and does it in
the plainest way. It can be read and be marked; the right to write can be taken away, as on a real server.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from runtriage.errors import AccessRefusedError, MarkWriteError, RunNotFoundError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.marks import OWN_PREFIX, USER_KEYS, Marks, WritePlan, content_digest


@dataclass(slots=True)
class _Hung:
    """What hangs on one run, ours and others'."""

    tags: dict[str, str] = field(default_factory=dict)
    note: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)


class MemorySource:
    """A list of histories as a source that can be marked.

    Parameters
    ----------
    histories
        The runs, oldest first. Their ``info.source`` is replaced by ``address``.
    address
        Canonical address to go by.
    writable
        False makes every write raise :class:`~runtriage.errors.AccessRefusedError`, as read-only credentials do.
    """

    def __init__(
        self, histories: Iterable[RunHistory] = (), *, address: str = "memory:", writable: bool = True
    ) -> None:
        self._address = address
        self._lock = threading.RLock()
        self._runs: dict[str, RunHistory] = {}
        self._hung: dict[str, _Hung] = {}
        self._project = _Hung()
        self.writable = writable
        self.writes = 0
        for history in histories:
            self.put(history)

    @property
    def address(self) -> str:
        """Canonical address."""
        return self._address

    def put(self, history: RunHistory) -> None:
        """Add a run, or replace its history; the tags given are added to those that hang on it."""
        with self._lock:
            info = replace(history.info, source=self._address)
            self._hung.setdefault(info.id, _Hung()).tags.update(info.tags)
            self._runs[info.id] = replace(_copy(history), info=info)

    def delete(self, run_id: str) -> None:
        """Delete a run with all that hangs on it, as a person would in the tracker's own pages."""
        with self._lock:
            del self._runs[run_id]
            del self._hung[run_id]

    def set_tag(self, run_id: str, key: str, value: str) -> None:
        """Set a tag of someone else's on a run."""
        with self._lock:
            self._hung[run_id].tags[key] = value

    def tags_of(self, run_id: str) -> dict[str, str]:
        """Return all tags of a run, ours and others'."""
        with self._lock:
            return dict(self._hung[run_id].tags)

    def file_of(self, run_id: str, path: str) -> bytes:
        """Return the content of a file that was put on a run."""
        with self._lock:
            return self._hung[run_id].files[path]

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs, the last one put first."""
        with self._lock:
            infos = [self._info(run) for run in reversed(self._runs.values())]
        yield from infos

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run by id, or by its name when that is unique.

        Raises
        ------
        RunNotFoundError
            No such run, or several.
        """
        with self._lock:
            if run_id in self._runs:
                return self._info(self._runs[run_id])
            named = [run for run in self._runs.values() if run.info.name == run_id]
            if len(named) != 1:
                what = f"{len(named)} runs are called" if named else "there is no run"
                raise RunNotFoundError(f"{what} {run_id}", where=self._address)
            return self._info(named[0])

    def read(self, info: RunInfo) -> RunHistory:
        """Return a copy of the history of a run.

        Raises
        ------
        RunNotFoundError
            No such run.
        """
        with self._lock:
            run = self._run(info)
            return replace(_copy(run), info=self._info(run))

    def close(self) -> None:
        """Do nothing."""

    def read_marks(self, info: RunInfo) -> Marks:
        """Return our marks on a run.

        Raises
        ------
        RunNotFoundError
            No such run.
        """
        with self._lock:
            self._run(info)
            return _marks(self._hung[info.id])

    def apply(self, info: RunInfo, plan: WritePlan) -> None:
        """Carry out a plan on a run.

        Raises
        ------
        RunNotFoundError
            No such run.
        AccessRefusedError
            The source is not writable.
        MarkWriteError
            The plan touches what is not ours.
        """
        with self._lock:
            self._run(info)
            self._carry_out(self._hung[info.id], plan, info.id)

    def read_project_marks(self) -> Marks:
        """Return our marks on the whole."""
        with self._lock:
            return _marks(self._project)

    def apply_project(self, plan: WritePlan) -> None:
        """Carry out a plan on the whole; raises as :meth:`apply`."""
        with self._lock:
            self._carry_out(self._project, plan, "")

    def _run(self, info: RunInfo) -> RunHistory:
        if info.id not in self._runs:
            raise RunNotFoundError(f"the run {info.id} is not there any more", where=self._address)
        return self._runs[info.id]

    def _info(self, run: RunHistory) -> RunInfo:
        return replace(run.info, tags=dict(self._hung[run.info.id].tags), config=copy.deepcopy(run.info.config))

    def _carry_out(self, hung: _Hung, plan: WritePlan, run_id: str) -> None:
        if not self.writable:
            raise AccessRefusedError("these credentials may not write", where=self._address)
        foreign = [key for key in (*plan.set_tags, *plan.delete_tags) if not _ours(key)]
        if foreign:
            raise MarkWriteError(f"the plan touches tags that are not ours: {', '.join(foreign[:3])}", where=run_id)
        self.writes += 1
        for key in plan.delete_tags:
            hung.tags.pop(key, None)
        hung.tags.update(plan.set_tags)
        if plan.delete_note:
            hung.note = None
        if plan.set_note is not None:
            hung.note = plan.set_note
        for path in plan.delete_files:
            hung.files.pop(path, None)
        hung.files.update(plan.put_files)


def _ours(key: str) -> bool:
    return key.startswith(OWN_PREFIX) and key not in USER_KEYS


def _marks(hung: _Hung) -> Marks:
    return Marks(
        tags={key: value for key, value in hung.tags.items() if _ours(key)},
        note=hung.note,
        files={path: content_digest(content) for path, content in hung.files.items()},
    )


def _copy(history: RunHistory) -> RunHistory:
    tracks = {
        name: Track(
            step=track.step.copy(), value=track.value.copy(), wall=None if track.wall is None else track.wall.copy()
        )
        for name, track in history.tracks.items()
    }
    return replace(history, tracks=tracks)

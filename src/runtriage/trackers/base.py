"""What a source of runs promises.

Contract
--------
* **Reading never writes.** No schema migration, no cache in the tracker, no touched time stamps.
* **Listing** yields each run once, deleted runs not at all; paging, retries and rate limits are the source's business
  and bounded in time. Listing is lazy: nothing is fetched before the first item is asked for.
* **Reading one run** returns every logged point, in logged order, unsampled, or raises
  :class:`~runtriage.errors.RunReadError`; what could be read only in part says so in ``notes``. An unknown metric is
  no error, an unknown run is :class:`~runtriage.errors.RunNotFoundError`.
* **Sources are safe to use from several threads**; returned objects belong to the caller and are never changed by the
  source again.
* **A source that cannot be used at all** raises :class:`~runtriage.errors.SourceError` from the first call that needs
  it, with what was tried; credentials never appear in messages.
* **Marks**: ``read_marks`` returns only ours; ``apply`` is idempotent, carries out exactly the plan, re-reads what it
  must merge with (the note) just before writing, and leaves foreign tags and text byte for byte. Rights are not probed
  by writing.
* **Alerts**: ``read_alerts`` shows all that the project has, ours and others'; what is not ours is never changed, also
  if it became somebody else's between a look and a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from runtriage.model.alert import Alert, Channel, Placed
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.marks import Marks, WritePlan


@runtime_checkable
class HistorySource(Protocol):
    """A source whose runs can be listed and read."""

    @property
    def address(self) -> str:
        """Canonical address, without credentials."""
        ...

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs of the source, newest first where the tracker knows an order."""
        ...

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run by id, or by its name when that is unique."""
        ...

    def read(self, info: RunInfo) -> RunHistory:
        """Return the full history of a run."""
        ...

    def close(self) -> None:
        """Release connections and files. May be called twice."""
        ...


@runtime_checkable
class TailSource(Protocol):
    """A source that can continue a history that was read before, for less than reading all of it.

    The promise is that of ``read``, to the last bit: the past is proved to be the same as it was, or the answer is
    None. A run that was resumed below its highest step, rewound, or rewritten in any way the tracker allows is no tail.
    """

    def read_tail(self, info: RunInfo, cached: RunHistory) -> RunHistory | None:
        """Return the full history of a run, or None if it must be read whole; raises as ``read``.

        Parameters
        ----------
        info
            The run as listed now.
        cached
            What was read before; ``cached.info.cursor`` is the cursor of that time. It is not changed, and tracks with
            nothing new are handed over as they are.
        """
        ...


@runtime_checkable
class MarkTarget(Protocol):
    """A source on which our marks can hang: per run, and on the experiment or project as a whole."""

    def read_marks(self, info: RunInfo) -> Marks:
        """Return our marks on a run as they are now."""
        ...

    def apply(self, info: RunInfo, plan: WritePlan) -> None:
        """Carry out a plan on a run."""
        ...

    def read_project_marks(self) -> Marks:
        """Return our marks on the experiment or project (views as tags, the digest as note)."""
        ...

    def apply_project(self, plan: WritePlan) -> None:
        """Carry out a plan on the experiment or project."""
        ...


@runtime_checkable
class RuleTarget(Protocol):
    """A source whose tracker watches metrics by itself, so that compiled alert rules can be put there."""

    def channels(self) -> tuple[Channel, ...]:
        """Return where the tracker can send alerts to."""
        ...

    def read_alerts(self) -> tuple[Placed, ...]:
        """Return all alerts of the project, ours and others'."""
        ...

    def put_alert(self, alert: Alert, before: Placed | None = None) -> None:
        """Make an alert, or change one of ours that was found before; putting the same twice makes one."""
        ...

    def remove_alert(self, placed: Placed) -> None:
        """Remove one of ours; one that is gone, or not ours any more, is left as it is."""
        ...

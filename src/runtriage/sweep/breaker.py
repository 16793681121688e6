"""When to stop asking a source that fails for run after run."""

from __future__ import annotations

import threading

from runtriage.errors import SourceUnreachableError

SILENT = 3
"""Runs in a row for which the source did not answer, after which the others are not tried any more."""

FAILING = 10
"""Runs in a row for which it did not answer, or failed with an error of its own; some of these are of one run only."""


class Breaker:
    """Counts failures in a row. Safe in several threads.

    What a source takes long to fail at (every request is repeated until patience is lost) would otherwise be waited for
    once a run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silent = self._failing = 0

    @property
    def reason(self) -> str | None:
        """Why nothing more should be tried, or None."""
        if self._silent >= SILENT:
            return "not tried: the source stopped answering"
        if self._failing >= FAILING:
            return f"not tried: the source failed for {FAILING} runs in a row"
        return None

    def count(self, error: Exception | None = None) -> None:
        """Count how it went with one run: an error, or None if it went well or was no business of the source."""
        silent = isinstance(error, SourceUnreachableError)
        failing = silent or (error is not None and _is_at_server(error))
        with self._lock:
            self._silent = self._silent + 1 if silent else 0
            self._failing = self._failing + 1 if failing else 0


def _is_at_server(error: BaseException) -> bool:
    each: BaseException | None = error
    while each is not None:
        if getattr(each, "at_server", False):
            return True
        each = each.__cause__
    return False

"""Our writes to a tracking server: counted, and the moments before and after one at which something can happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from runtriage.trackers.mlflow.client import MlflowClient

_WRITES = ("send", "put_file", "delete_file")


class Killed(BaseException):
    """The process is gone: nothing of the product may catch this."""


class Writes:
    """What our clients write while the block of :func:`watched` lasts.

    Attributes
    ----------
    count
        Writes begun since the last :meth:`reset`.
    """

    def __init__(self) -> None:
        self.count = 0
        self._at = -1
        self._late = False
        self._happen: Callable[[], None] | None = None

    def reset(self) -> None:
        """Count from nothing; nothing will happen."""
        self.count, self._happen = 0, None

    def plan(self, at: int, happen: Callable[[], None], *, late: bool = False) -> None:
        """Have something happen before, or after, the write of this number from now on."""
        self.count, self._at, self._happen, self._late = 0, at, happen, late

    def kill(self, at: int, *, late: bool) -> None:
        """End the process before, or after, the write of this number."""
        self.plan(at, _die, late=late)

    def around(self, write: Callable[..., None]) -> Callable[..., None]:
        """Return a method of a client that is watched."""

        def watched(client: MlflowClient, *args: Any) -> None:
            now, self.count = self.count, self.count + 1
            due = self._happen if now == self._at else None
            if due is not None and not self._late:
                due()
            write(client, *args)
            if due is not None and self._late:
                due()

        return watched


@contextmanager
def watched() -> Iterator[Writes]:
    """Watch the writes of all clients of this process until the block ends."""
    writes = Writes()
    changed = {name: writes.around(getattr(MlflowClient, name)) for name in _WRITES}
    with mock.patch.multiple(MlflowClient, **changed):
        yield writes


def _die() -> None:
    raise Killed

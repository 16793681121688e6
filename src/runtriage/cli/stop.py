"""Being asked to end: a signal, and what must not be broken off by it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A signal asked to end; raised where the program is, or at the end of what must not be broken off."""


class Stop:
    """What came of signals. For the main thread."""

    def __init__(self) -> None:
        self._asked = False
        self._shields = 0

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Keep signals off a block; one that came meanwhile is raised at its end.

        Raises
        ------
        Stopped
            Asked to end.
        """
        self.check()
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if not self._shields:
            self.check()

    def check(self) -> None:
        """Raise if asked to end.

        Raises
        ------
        Stopped
            Asked to end.
        """
        if self._asked:
            raise Stopped

    def take(self, _number: int, _frame: FrameType | None) -> None:
        """Take a signal; the next one ends the process at once."""
        self._asked = True
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        if not self._shields:
            raise Stopped


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Take SIGINT and SIGTERM in a block, as :class:`Stopped`."""
    stop = Stop()
    before = {number: signal.signal(number, stop.take) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

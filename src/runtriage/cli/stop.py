"""Being asked to end: a signal, and what must not be broken off by it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def take_second(code: int) -> None:
    """Have the first Ctrl-C raise ``KeyboardInterrupt``, as it does, and the second end the process at once.

    A sweep that is interrupted still waits for the answers its threads are waiting for. What Python itself makes of a
    second Ctrl-C then depends on where it is: tracebacks out of its own shutdown, with any exit code.

    Parameters
    ----------
    code
        Exit code after the second.
    """
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else Ctrl-C is none of our business
    if not is_usual or threading.current_thread() is not threading.main_thread():
        return

    def second(_number: int, _frame: FrameType | None) -> None:
        if (processes := sys.modules.get("multiprocessing.process")) is not None:
            for child in processes.active_children():  # workers that nobody would end any more
                child.kill()
        os._exit(code)

    def first(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, second)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, first)


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

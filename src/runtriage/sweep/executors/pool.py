"""Threads and processes behind one bounded, ordered map."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor as Pool
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class _PoolExecutor:
    """Keeps at most ``ahead`` pieces begun whose results were not yet taken."""

    def __init__(self, pool: Pool, ahead: int) -> None:
        self._pool = pool
        self._ahead = ahead

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of each item, in order."""
        begun: deque[Future[R]] = deque()
        for item in items:
            begun.append(self._pool.submit(work, item))
            if len(begun) > self._ahead:
                yield _result(begun.popleft())
        while begun:
            yield _result(begun.popleft())

    def close(self) -> None:
        """Stop: what has not begun will not begin."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class ThreadExecutor(_PoolExecutor):
    """Threads, for work that waits.

    Parameters
    ----------
    workers
        Threads.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(ThreadPoolExecutor(workers, thread_name_prefix="runtriage"), 2 * workers)


class ProcessExecutor(_PoolExecutor):
    """Processes, for work that computes; the function and its items must pickle.

    Parameters
    ----------
    workers
        Processes. They are started fresh: a fork of a process with threads can hang.
    """

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        super().__init__(ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_signals), workers)


def _result(future: Future[R]) -> R:
    """Wait for a result; an interrupt that CPython's lock turns into an error of its own is an interrupt again."""
    try:
        return future.result()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def _leave_signals() -> None:
    """Ignore Ctrl-C in a worker: a terminal sends it to all, and the parent ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

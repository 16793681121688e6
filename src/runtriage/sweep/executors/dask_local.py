"""A Dask cluster of our own on this machine, which a Ctrl-C at any time ends without a word."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from distributed import LocalCluster

from runtriage.errors import ClusterError

_LATER = (signal.SIGINT, signal.SIGTERM)
_CLOSE_SECONDS = 20


def own_cluster(workers: int) -> LocalCluster:
    """Start workers that listen on the loopback interface only.

    Parameters
    ----------
    workers
        Processes, of one thread each.

    Raises
    ------
    ClusterError
        They did not start.
    """
    made: list[LocalCluster] = []
    try:
        with _undisturbed():
            made.append(_started(workers))
    except BaseException:
        for cluster in made:
            cluster.close(timeout=_CLOSE_SECONDS)
        raise
    return made[0]


def _started(workers: int) -> LocalCluster:
    try:
        return LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
            silence_logs=logging.WARNING if os.environ.get("RUNTRIAGE_DEBUG") else logging.CRITICAL,
        )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise ClusterError(f"no Dask cluster could be started here: {error}") from error


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep signals off a block; what came meanwhile is handled at its end.

    A terminal sends Ctrl-C to workers too. Those are children of threads made in this block and inherit that it is
    blocked: how they end is said by who started them. A cluster half started would end with a traceback of Dask.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    take: Callable[..., Any] = lambda number, _frame: came.append(number)  # noqa: E731
    before = {number: signal.signal(number, take) for number in _LATER}
    resource_tracker.ensure_running()  # or the thread that starts it lets the signal in again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    for one in came:
        signal.raise_signal(one)

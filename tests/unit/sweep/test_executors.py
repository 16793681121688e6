"""Executors: order, laziness, bounds and errors are the same everywhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from runtriage.sweep.executors import Executor, ProcessExecutor, SerialExecutor, ThreadExecutor
from runtriage.sweep.executors.dask import DaskExecutor

MAKERS = {
    "serial": SerialExecutor,
    "threads": lambda: ThreadExecutor(2),
    "processes": lambda: ProcessExecutor(2),
    "dask": lambda: DaskExecutor(workers=1),
}


@pytest.fixture(params=MAKERS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Return each executor in turn."""
    with closing(MAKERS[request.param]()) as made:
        yield made


def test_results_come_in_the_order_of_the_items(executor: Executor) -> None:
    """The first result belongs to the first item, whoever was done first."""
    assert list(executor.map(abs, range(-20, 0))) == list(range(20, 0, -1))


def test_an_error_reaches_the_caller(executor: Executor) -> None:
    """What the work raises is raised where its result is taken."""
    with pytest.raises(ZeroDivisionError):
        list(executor.map(divmod_by, [1, 0]))


def test_nothing_is_no_work(executor: Executor) -> None:
    """No items give no results."""
    assert list(executor.map(abs, [])) == []


def test_closing_twice_is_allowed(executor: Executor) -> None:
    """A second close does nothing."""
    assert [executor.close() for _ in range(2)] == [None, None]


def test_items_are_taken_lazily() -> None:
    """Only a bounded number of items is taken before the first result is."""
    taken: list[int] = []

    def items() -> Iterator[int]:
        for i in range(1000):
            taken.append(i)
            yield i

    with closing(ThreadExecutor(2)) as threads:
        next(threads.map(abs, items()))
    assert len(taken) <= 6


def test_threads_work_at_the_same_time() -> None:
    """Two pieces of work can wait for each other."""
    both = threading.Barrier(2, timeout=20)
    with closing(ThreadExecutor(2)) as threads:
        assert sorted(threads.map(lambda _: both.wait(), range(2))) == [0, 1]


def divmod_by(number: int) -> int:
    """Return 1 // number; at the top of a module, so that it can be sent to a process."""
    return 1 // number

"""A sweep: choose, group, read ahead, judge cohort by cohort, write back. Outcomes, not exceptions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from runtriage.model.baseline import BaselineSet
from runtriage.model.history import RunHistory, RunInfo
from runtriage.pipeline import Params
from runtriage.sweep.executors import Executor, ThreadExecutor
from runtriage.sweep.job import Judge, Read, Reader
from runtriage.sweep.outcome import Outcome
from runtriage.trackers.base import HistorySource

if TYPE_CHECKING:
    from runtriage.sweep.write import Writer

J = TypeVar("J")


def sweep(
    source: HistorySource,
    groups: Sequence[Sequence[RunInfo]],
    *,
    analysis: Executor,
    params: Params,
    baselines: BaselineSet | None = None,
    writer: Writer | None = None,
    readers: int = 4,
) -> Iterator[Outcome]:
    """Judge runs and write back what is found; yield each outcome when it is there.

    Parameters
    ----------
    source
        Where the runs are.
    groups
        Cohorts, as :func:`runtriage.sweep.select.group` makes them.
    analysis
        Where cohorts are judged.
    params
        Settings of the analysis.
    baselines
        Learned baselines, or None to compare siblings.
    writer
        Writes marks; None to only read.
    readers
        Runs read at the same time.

    Notes
    -----
    Histories of one cohort, and of those read ahead, are in memory; nothing is kept after its outcome was taken.
    """
    with closing(ThreadExecutor(readers)) as threads:
        reads = threads.map(Reader(source), chain.from_iterable(groups))
        cohorts = _regroup(reads, groups)
        judged = analysis.map(Judge(baselines=baselines, params=params), cohorts)
        yield from _written(groups, judged, writer)


def sweep_elsewhere(
    jobs: Iterable[J],
    groups: Sequence[Sequence[RunInfo]],
    *,
    executor: Executor,
    do: Callable[[J], list[Outcome]],
    writer: Writer | None = None,
) -> Iterator[Outcome]:
    """Have cohorts read and judged where the executor is, and write back from here; yield each outcome in order.

    Parameters
    ----------
    jobs, groups
        One job a cohort, and the runs of the cohorts.
    executor
        Where jobs are done.
    do
        Does a job; histories never come here.
    writer
        As :func:`sweep` takes it. There is no other: a job that is done twice writes nothing twice.
    """
    yield from _written(groups, executor.map(do, jobs), writer)


def read_all(source: HistorySource, infos: Iterable[RunInfo], *, readers: int = 4) -> Iterator[Read]:
    """Read runs with several threads; yield them in order, failures included."""
    with closing(ThreadExecutor(readers)) as threads:
        yield from threads.map(Reader(source), infos)


def histories(reads: Iterable[Read]) -> list[RunHistory]:
    """Return the histories that could be read."""
    return [read.history for read in reads if read.history is not None]


def _written(
    groups: Sequence[Sequence[RunInfo]], judged: Iterable[list[Outcome]], writer: Writer | None
) -> Iterator[Outcome]:
    results = iter(judged)
    for infos in groups:
        outcomes = deque(next(results))
        for info in infos:  # an outcome holds the curves of its run: none is kept while the next cohort is read
            yield writer.run(info, outcomes.popleft()) if writer is not None else outcomes.popleft()


def _regroup(reads: Iterator[Read], groups: Sequence[Sequence[RunInfo]]) -> Iterator[list[Read]]:
    for infos in groups:
        yield list(islice(reads, len(infos)))

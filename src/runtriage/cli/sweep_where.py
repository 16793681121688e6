"""Where the cohorts of a sweep are judged: here, in processes, or on a cluster that reads them too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from runtriage.cli import door
from runtriage.model.baseline import BaselineSet
from runtriage.model.history import RunInfo
from runtriage.settings import Settings
from runtriage.sweep.executors import Executor, ProcessExecutor, SerialExecutor
from runtriage.sweep.outcome import Outcome
from runtriage.sweep.run import sweep, sweep_elsewhere
from runtriage.trackers.base import HistorySource

if TYPE_CHECKING:
    from runtriage.sweep.executors.dask import DaskExecutor
    from runtriage.sweep.write import Writer


def executor(address: str, settings: Settings) -> Executor:
    """Return the executor of a sweep of a source.

    Raises
    ------
    UsageError
        The source cannot be opened elsewhere as it is addressed, or this is not the address of a cluster.
    ClusterError
        The cluster cannot be used.
    MissingExtraError
        Dask is not installed.
    """
    name, _, where = settings.sweep.executor.partition(":")
    if name == "dask":
        from runtriage.sweep.elsewhere import lost, portable
        from runtriage.sweep.executors.dask import DaskExecutor

        portable(address)
        return DaskExecutor(where, workers=settings.sweep.workers, lost=lost)
    return ProcessExecutor(settings.sweep.workers) if name == "processes" else SerialExecutor()


def outcomes_of(
    groups: Sequence[Sequence[RunInfo]],
    source: HistorySource,
    analysis: Executor,
    *,
    address: str,
    settings: Settings,
    baselines: BaselineSet | None,
    writer: Writer | None,
    curves: bool,
) -> Iterator[Outcome]:
    """Yield the outcomes of a sweep of these runs.

    Parameters
    ----------
    groups, source, analysis, baselines, writer
        As :func:`runtriage.sweep.run.sweep` takes them.
    address, settings
        As they were given.
    curves
        Whether the caller draws curves; what the writer needs is known here.
    """
    params, readers = door.params(settings), settings.sweep.readers
    if not settings.sweep.executor.startswith("dask"):
        yield from sweep(
            source, groups, analysis=analysis, params=params, baselines=baselines, writer=writer, readers=readers
        )
        return
    from runtriage.outputs.plan import PANEL
    from runtriage.sweep.elsewhere import CohortJob, do, portable

    draws = writer is not None and PANEL in writer.what and writer.without_files is None
    cluster, name = cast("DaskExecutor", analysis), f"runtriage-{uuid4().hex}"
    job = CohortJob(
        sweep=name, address=portable(address), params=params, baselines=baselines, readers=readers,
        turn=cluster.shared_turn(name, readers), paces=cluster.shared_paces(), curves=curves or draws,
    )
    with cluster.in_step():
        yield from sweep_elsewhere(map(job.of, groups), groups, executor=analysis, do=do, writer=writer)

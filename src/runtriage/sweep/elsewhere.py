"""Reading and judging a cohort where the executor is: histories stay there, outcomes come back.

What is sent is an address without credentials and the facts of a listing; the process that does the work opens the
source itself, with what its own environment lets it in with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from runtriage import __version__
from runtriage.errors import RuntriageError, SourceError, UsageError
from runtriage.model.baseline import BaselineSet
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.model.refs import LOCAL_SCHEMES, parse_address, redacted
from runtriage.pipeline import Params, fingerprint
from runtriage.registry import open_source
from runtriage.sweep.executors.pool import ThreadExecutor
from runtriage.sweep.job import Judge, Read, Reader
from runtriage.sweep.outcome import Outcome, not_read
from runtriage.trackers.pace import Pace, share

_SQLITE = "mlflow-sql:sqlite:///"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CohortJob:
    """A cohort to read and judge; a value that can be sent to another machine.

    Attributes
    ----------
    sweep
        Name of the sweep, its own each time: a source stays open in a process for the cohorts of one sweep.
    address
        Where the runs are, from :func:`portable`.
    params, baselines
        As a sweep takes them.
    readers
        Runs of a cohort read at the same time.
    turn
        Makes, once in a process, what is held while a run is read: all processes share it, to spare the tracker.
    paces
        Makes, once in a process, what makes the pace of a server: all processes share it. None: each has its own.
    curves
        Whether curves come back with the reports.
    infos
        The cohort.
    version
        Of the sender.
    """

    sweep: str
    address: str
    params: Params
    baselines: BaselineSet | None = None
    readers: int = 4
    turn: Callable[[], AbstractContextManager[object]] = nullcontext
    paces: Callable[[], Callable[[str], Pace]] | None = None
    curves: bool = False
    infos: tuple[RunInfo, ...] = ()
    version: str = __version__

    def of(self, infos: Sequence[RunInfo]) -> CohortJob:
        """Return the job of a cohort, with no more baselines than its runs are judged against."""
        baselines = self.baselines
        if baselines is not None:
            names = {fingerprint(info.config, self.params.ignore_keys) for info in infos}
            cohorts = {name: baseline for name, baseline in baselines.cohorts.items() if name in names}
            baselines = replace(baselines, cohorts=cohorts)
        return replace(self, infos=tuple(infos), baselines=baselines)


def do(job: CohortJob) -> list[Outcome]:
    """Read and judge a cohort; return one outcome a run, in order. Whatever goes wrong is in them."""
    if job.version != __version__:
        return lost(job, f"the worker has runtriage {__version__}, the sweep {job.version}")
    try:
        read = _opened(job.sweep, job.address, job.infos[0].source, job.turn, job.paces)
    except RuntriageError as error:
        return lost(job, str(error))
    except Exception as error:  # noqa: BLE001  the job boundary: one cohort never stops the others
        return lost(job, f"unexpected {type(error).__name__} while opening the source: {error}")
    with closing(ThreadExecutor(min(job.readers, len(job.infos)))) as threads:
        reads = [_as_listed(found) for found in threads.map(read, job.infos)]
    outcomes = Judge(baselines=job.baselines, params=job.params)(reads)
    return outcomes if job.curves else [_light(outcome) for outcome in outcomes]


def lost(job: CohortJob, why: str) -> list[Outcome]:
    """Return the outcomes of a cohort of which nothing came back."""
    return [not_read(info, why, job.params.lang) for info in job.infos]


@dataclass(frozen=True, slots=True)
class _InTurn:
    reader: Reader
    turn: AbstractContextManager[object]

    def __call__(self, info: RunInfo) -> Read:
        with self.turn:
            return self.reader(info)


def portable(address: str) -> str:
    """Return an address as other processes can use it: whole paths, nothing secret.

    Parameters
    ----------
    address
        Of a source, as typed.

    Raises
    ------
    UsageError
        It holds credentials or options that are not sent.
    """
    text = address.strip()
    if redacted(text) != text:
        raise UsageError(
            "credentials and options of an address are not sent to workers", where=redacted(text),
            hint="set them in the workers' environment, such as MLFLOW_TRACKING_USERNAME and _PASSWORD, or PGPASSWORD",
        )
    parsed = parse_address(text)
    if parsed.scheme in LOCAL_SCHEMES:
        return f"{parsed.scheme}:{Path(parsed.location).expanduser().resolve()}"
    if text.lower().startswith(_SQLITE):
        rest = text[len(_SQLITE) :]
        return text if rest.startswith("/") else f"{_SQLITE}{quote(str(Path.cwd()))}/{rest}"
    return text


@lru_cache(maxsize=4)
def _opened(
    sweep: str,  # noqa: ARG001  one sweep, one reader
    address: str,
    listed: str,
    turn: Callable[[], AbstractContextManager[object]],
    paces: Callable[[], Callable[[str], Pace]] | None,
) -> _InTurn:
    """Open the source once in a process, so that it is scanned, connected and given up once.

    Parameters
    ----------
    sweep, address, turn, paces
        Of the job.
    listed
        Address of the source that listed the runs, as it calls itself.
    """
    if paces is not None:
        share(paces())
    source = open_source(address)
    if parse_address(address).scheme not in {*LOCAL_SCHEMES, "mlflow-sql"} and source.address != listed:
        source.close()
        raise SourceError("the worker's environment leads to another server", where=source.address)
    return _InTurn(Reader(source), turn())


def _as_listed(read: Read) -> Read:
    """Return what was read under the address that the sweep knows the source by."""
    if read.history is None or read.history.info.source == read.info.source:
        return read
    info = replace(read.history.info, source=read.info.source)
    return replace(read, history=replace(read.history, info=info))


def _light(outcome: Outcome) -> Outcome:
    return replace(outcome, triage=Triage(report=outcome.report))

"""The two pieces of work of a sweep: reading one run, judging one cohort. Failures become data here."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from runtriage.errors import RuntriageError
from runtriage.model.baseline import BaselineSet
from runtriage.model.history import RunHistory, RunInfo
from runtriage.pipeline import Params, triage_cohort
from runtriage.sweep.breaker import Breaker
from runtriage.sweep.outcome import Outcome, not_read
from runtriage.trackers.base import HistorySource

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Read:
    """A run as read, or why it could not be."""

    info: RunInfo
    history: RunHistory | None = None
    failure: str = ""


class Reader:
    """Reads runs of one source and stops asking a server that does not answer. Safe in several threads."""

    def __init__(self, source: HistorySource) -> None:
        self._source = source
        self._breaker = Breaker()

    def __call__(self, info: RunInfo) -> Read:
        """Read one run; whatever goes wrong is in the result."""
        if (why := self._breaker.reason) is not None:
            return Read(info=info, failure=why)
        try:
            history = self._source.read(info)
        except RuntriageError as error:
            self._breaker.count(error)
            return Read(info=info, failure=str(error))
        except Exception as error:  # noqa: BLE001  the job boundary: one run never stops the others
            _log.debug("reading %s failed", info.id, exc_info=True)
            return Read(info=info, failure=f"unexpected {type(error).__name__} while reading: {error}")
        self._breaker.count()
        return Read(info=info, history=history)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judge:
    """Judges cohorts; a value that can be sent to another process.

    Attributes
    ----------
    baselines
        Learned baselines to judge against, or None to compare siblings.
    params
        Settings of the analysis.
    """

    baselines: BaselineSet | None
    params: Params

    def __call__(self, reads: Sequence[Read]) -> list[Outcome]:
        """Return one outcome a run, in order."""
        histories = [read.history for read in reads if read.history is not None]
        judged = iter(self._judged(histories))
        lang = self.params.lang
        return [next(judged) if read.history is not None else not_read(read.info, read.failure, lang) for read in reads]

    def _judged(self, histories: list[RunHistory]) -> list[Outcome]:
        try:
            return [Outcome(triage=t) for t in triage_cohort(histories, baselines=self.baselines, params=self.params)]
        except Exception as error:  # noqa: BLE001  the job boundary: one cohort never stops the others
            _log.debug("analysing %d runs failed", len(histories), exc_info=True)
            if len(histories) > 1:  # find the one at fault; the others are judged without their siblings
                return [outcome for history in histories for outcome in self._judged([history])]
            why = f"unexpected {type(error).__name__} in the analysis: {error}"
            return [not_read(history.info, why, self.params.lang) for history in histories]

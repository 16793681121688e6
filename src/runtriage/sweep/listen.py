"""Alerts within a sweep: rules are replayed on each run as it is read, so that none is read twice or kept.

Of a run stays what is new on it, until the sweep has judged all; then it is told with the verdict, as ``rules notify``
tells it, and remembered in the same mark of the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from runtriage.errors import RuntriageError
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.report import Report
from runtriage.model.rule import AlertRule
from runtriage.notify.message import Bulletin, messages
from runtriage.notify.news import Round
from runtriage.pipeline import Params
from runtriage.sweep.alerts import Memory, Sends, Summary, due, remember, round_of
from runtriage.trackers.base import HistorySource


class Listener:
    """A source that is read through, with rules replayed on what comes. Safe in several threads.

    Parameters
    ----------
    source
        Where runs are read.
    rules
        To replay.
    params
        Settings of the analysis.
    memory
        What people know.
    """

    def __init__(self, source: HistorySource, rules: Sequence[AlertRule], params: Params, memory: Memory) -> None:
        self._source, self._rules, self._params, self._memory = source, rules, params, memory
        self._lock = threading.Lock()
        self._rounds: dict[str, tuple[RunInfo, Round]] = {}
        self.summary = Summary()

    @property
    def address(self) -> str:
        """The source's own."""
        return self._source.address

    def list_runs(self) -> Iterator[RunInfo]:
        """List as the source does."""
        return iter(self._source.list_runs())

    def find_run(self, name: str) -> RunInfo:
        """Find as the source does."""
        return self._source.find_run(name)

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def read(self, info: RunInfo) -> RunHistory:
        """Read a run and replay the rules on it; what goes wrong with the rules is no failure of the reading."""
        history = self._source.read(info)
        try:
            if due(info, self._memory):
                found = round_of(history, self._rules, self._params, self._memory.told(info))
                with self._lock:
                    self._rounds[info.id] = (history.info, found)
        except RuntriageError as error:
            self._failed(info, error)
        return history

    def is_due(self, info: RunInfo) -> bool:
        """Tell whether there can be anything new on a run; one of which that cannot be told is left for next time."""
        try:
            return due(info, self._memory)
        except RuntriageError as error:
            self._failed(info, error)
            return False

    def _failed(self, info: RunInfo, error: RuntriageError) -> None:
        with self._lock:
            self.summary.failures.append(f"{info.id}: {error}")

    def tell(self, reports: Callable[[Sequence[str]], Mapping[str, Report]], sender: Sends | None) -> Summary:
        """Tell what is new, and remember what was told.

        Parameters
        ----------
        reports
            Returns the reports of some runs by their ids.
        sender
            Delivers; None tells nobody and remembers nothing (a dry run).
        """
        summary, rounds = self.summary, dict(sorted(self._rounds.items()))
        summary.looked_at = len(rounds)
        telling = [run_id for run_id, (_, found) in rounds.items() if found.news]
        known = reports(telling)
        bulletins = [
            Bulletin(
                run_id=run_id, name=info.name or run_id, url=info.url, news=found.news, report=known.get(run_id)
            )
            for run_id, (info, found) in rounds.items() if found.news
        ]
        told = rounds.keys() - set(telling)
        for message in messages(bulletins, {rule.id: rule for rule in self._rules}):
            refused = sender.send(message) if sender is not None else ()
            summary.failures += [f"{address} did not take {message.title!r}" for address in refused]
            if sender is None or len(refused) < len(sender):
                summary.sent.append(message)
                told |= set(message.runs)
        if sender is not None:
            infos = [info for run_id, (info, _) in rounds.items() if run_id in told]
            remember(self._memory, infos, {run_id: found for run_id, (_, found) in rounds.items()}, summary)
        return summary

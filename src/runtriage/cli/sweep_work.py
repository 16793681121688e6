"""A sweep while it is done: what is left to read, what is known, and where its outcomes go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from runtriage.cli import door
from runtriage.cli.console import note, progress
from runtriage.cli.sweep_ask import Ask, Swept
from runtriage.cli.sweep_where import outcomes_of
from runtriage.cli.tell import plan_lines
from runtriage.model.baseline import BaselineSet
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.outputs.plan import VIEW
from runtriage.settings import Settings
from runtriage.sweep.executors import Executor
from runtriage.sweep.journal import Entry, Journal, not_done
from runtriage.sweep.outcome import Outcome, Tally
from runtriage.sweep.select import Selection, choose, group
from runtriage.sweep.unchanged import Basis, split
from runtriage.trackers.base import HistorySource

if TYPE_CHECKING:
    from runtriage.cli.sweep_alerts import Alerts
    from runtriage.outputs.report.html import Detailed
    from runtriage.sweep.write import Writer

_Groups = list[list[RunInfo]]


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """One sweep while it is done.

    Attributes
    ----------
    done
        Runs that the sweep which this one goes on with had judged; they are not read, except for alert rules.
    """

    ask: Ask
    settings: Settings
    baselines: BaselineSet | None
    basis: Basis
    writer: Writer | None
    journal: Journal
    tally: Tally = field(default_factory=Tally)
    detailed: Detailed | None = None
    alerts: Alerts | None = None
    shield: Callable[[], AbstractContextManager[None]] = nullcontext
    done: Sequence[RunInfo] = ()

    def through(self, source: HistorySource, analysis: Executor) -> Swept:
        """List, read, judge and write; return what came of it."""
        if self.ask.html is not None:
            from runtriage.outputs.report.html import Detailed

            self.detailed = Detailed()
        selection = Selection(since=self.journal.head["started_after"], limit=self.ask.limit, only=self.ask.only)
        with progress("listing", None) as bar:
            groups = group(choose(bar.over(source.list_runs()), selection), self.settings.analysis.ignore_keys)
        made_of = self.basis.for_journal(groups)
        whole = selection == Selection()
        rest = self._left(groups, made_of, whole=whole)
        alerts = self.alerts
        with (
            door.cached(source, self.settings, fresh=self.ask.fresh) as reading,
            progress("judging", sum(map(len, rest))) as bar,
        ):
            listener = alerts.listening(reading, source) if alerts is not None else None
            results = outcomes_of(
                rest, listener or reading, analysis, settings=self.settings, baselines=self.baselines,
                writer=self.writer, curves=self.detailed is not None, address=self.ask.source,
            )
            for outcome in bar.over(results):
                self._take(outcome, made_of)
            if alerts is not None and listener is not None:
                alerts.catch_up(listener, self.done, self.settings.sweep.readers)
        runs = sorted((info.id for infos in groups for info in infos), key=lambda one: not self.journal.was_kept(one))
        swept = Swept(journal=self.journal, runs=runs, tally=self.tally, writer=self.writer)
        if alerts is not None and listener is not None:
            with self.shield():  # who is told and what is remembered of it belong together
                swept = replace(swept, alerts=alerts.told(listener, self.journal))
        speaks = whole and not self.tally.kept  # a part of the runs does not speak for the experiment
        return self._with_project(swept) if speaks else swept

    def _left(self, groups: _Groups, made_of: Mapping[str, str], *, whole: bool) -> _Groups:
        """Return what is to be read, and take what is known of the others.

        A file of reports needs all reports, and the marks of the experiment speak for all runs: with these, either
        nothing has changed at all or every run is read.
        """
        if self.writer is not None:
            self.writer.made_of = self.basis.of_runs(groups)
        if self.journal.resumed:
            return self._resumed(groups)
        if self.writer is None or self.ask.fresh or self.ask.needs_reports or self.alerts is not None:
            return groups
        kept, rest = split(groups, self.writer.made_of, self.settings.report.lang)
        if rest and VIEW in self.writer.what:
            return groups
        if whole and not rest and not self.writer.is_project_unchanged():
            return groups
        for outcome in kept:
            self._take(outcome, made_of)
        return rest

    def _resumed(self, groups: _Groups) -> _Groups:
        rest = not_done(groups, self.journal, self.basis)
        left = {info.id for infos in rest for info in infos}
        self.done = [info for infos in groups for info in infos if info.id not in left]
        for entry in self.journal.entries(info.id for info in self.done):
            self.tally.add(entry)
            if self.detailed is not None:
                self.detailed.may_have(entry.report)
        note(f"runtriage: going on: {len(self.done)} of {len(self.done) + len(left)} runs were done before")
        return rest

    def _take(self, outcome: Outcome, made_of: Mapping[str, str]) -> None:
        """Count an outcome and put it into the journal; its curves are not needed after that."""
        run_id = outcome.report.run.id
        plan = None if outcome.plan is None else tuple(plan_lines(outcome.plan))
        before = self.journal.find(run_id) if self.journal.resumed and plan == () else None
        if before is not None and before.plan and before.made_of == made_of[run_id]:
            plan = before.plan  # the marks were changed by the sweep that this one goes on with
        refused = self.writer is not None and self.writer.refused is not None
        entry = Entry(
            report=outcome.report, made_of=made_of[run_id], failure=outcome.failure, kept=outcome.kept, plan=plan,
            write_failure=outcome.write_failure, pictures=self._pictures(outcome),
            done=outcome.failure is None and outcome.write_failure is None and not refused,
        )
        self.journal.add(run_id, entry)
        self.tally.add(entry)

    def _pictures(self, outcome: Outcome) -> tuple[str, str]:
        if self.detailed is None:
            return "", ""
        from runtriage.outputs.report.html import picture

        shown = picture(outcome.triage, self.detailed)
        return shown.spark, shown.panel

    def _with_project(self, swept: Swept) -> Swept:
        if self.writer is None or VIEW not in self.writer.what:
            return swept
        judged = [Triage(report=entry.report) for entry in swept.entries() if entry.failure is None]
        plan, failure = self.writer.project(judged, complete=len(judged) == len(swept.runs))
        return replace(swept, project=plan, project_failure=failure)

"""What ``runtriage sweep`` does between reading its settings and telling what came of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtriage.cli import door
from runtriage.cli.console import progress
from runtriage.cli.sweep_where import executor, outcomes_of
from runtriage.model.baseline import BaselineSet
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.model.marks import WritePlan
from runtriage.model.vocab import RunState
from runtriage.pipeline import Params
from runtriage.settings import Settings
from runtriage.settings.schema import MARK_KINDS
from runtriage.sweep.outcome import Outcome, Tally
from runtriage.sweep.select import Selection, choose, group
from runtriage.trackers.base import HistorySource

if TYPE_CHECKING:
    from runtriage.sweep.write import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What was asked for on the command line, besides settings."""

    source: str
    baselines: str | None = None
    dry_run: bool = False
    json: str | None = None
    html: str | None = None
    since: str | None = None
    limit: int | None = None
    only: RunState | None = None
    fresh: bool = False
    show_settings: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """What came of a sweep, kept for the summary."""

    outcomes: list[Outcome]
    tally: Tally
    writer: Writer | None
    project: WritePlan | None = None
    project_failure: str | None = None


def perform(ask: Ask, settings: Settings) -> Swept:
    """Sweep; return what came of it."""
    baselines = door.read_baselines(ask.baselines)
    kinds = frozenset(settings.sweep.write)
    kinds = frozenset(MARK_KINDS) if "all" in kinds else kinds
    params = door.params(settings)
    selection = Selection(since=door.moment(ask.since), limit=ask.limit, only=ask.only)
    tally = Tally()
    outcomes: list[Outcome] = []
    keep_curves = ask.html is not None
    with door.opened(ask.source) as source, closing(executor(ask.source, settings)) as analysis:
        writer = _writer(source, kinds, dry=ask.dry_run) if kinds else None
        with progress("listing", None) as bar:
            groups = group(choose(bar.over(source.list_runs()), selection), params.ignore_keys)
        if writer is not None:
            kept, groups = _unchanged(groups, writer, params, baselines, ask)
            for outcome in kept:
                tally.add(outcome)
            outcomes += kept
        total = sum(map(len, groups))
        with door.cached(source, settings, fresh=ask.fresh) as reading, progress("judging", total) as bar:
            results = outcomes_of(
                groups, reading, analysis, settings=settings, baselines=baselines, writer=writer,
                curves=keep_curves, address=ask.source,
            )
            for outcome in bar.over(results):
                tally.add(outcome)
                outcomes.append(outcome if keep_curves else _light(outcome))
        plan, failure = None, None
        whole = selection == Selection() and not tally.kept  # a part of the runs does not speak for the experiment
        if writer is not None and whole:
            plan, failure = writer.project([outcome.triage for outcome in outcomes if outcome.failure is None])
    return Swept(outcomes=outcomes, tally=tally, writer=writer, project=plan, project_failure=failure)


def _unchanged(
    groups: list[list[RunInfo]], writer: Writer, params: Params, baselines: BaselineSet | None, ask: Ask
) -> tuple[list[Outcome], list[list[RunInfo]]]:
    """Return the outcomes of runs that need not be read again, and the groups of the others.

    A file of reports needs all reports, and the marks of the experiment speak for all runs: with these, either nothing
    has changed at all or every run is read.
    """
    from runtriage.outputs.plan import VIEW
    from runtriage.sweep.unchanged import basis_of, split

    writer.made_of = basis_of(params, baselines, writer.what, files=writer.without_files is None).of_runs(groups)
    if ask.fresh or ask.json is not None or ask.html is not None:
        return [], groups
    kept, rest = split(groups, writer.made_of)
    return ([], groups) if rest and VIEW in writer.what else (kept, rest)


def _writer(source: HistorySource, kinds: frozenset[str], *, dry: bool) -> Writer:
    from runtriage.outputs.plan import PANEL
    from runtriage.sweep.write import Writer

    target = door.markable(source)
    against = getattr(source, "files_note", None) if PANEL in kinds else None
    return Writer(target=target, what=kinds, dry=dry, without_files=against() if against is not None else None)


def _light(outcome: Outcome) -> Outcome:
    from dataclasses import replace

    return replace(outcome, triage=Triage(report=outcome.report))

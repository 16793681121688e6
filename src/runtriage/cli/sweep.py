"""``runtriage sweep``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtriage.cli import door, table
from runtriage.cli.console import clean, note, out, progress
from runtriage.errors import UsageError
from runtriage.model.baseline import BaselineSet
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.model.marks import WritePlan
from runtriage.model.report import Report
from runtriage.model.vocab import RunState
from runtriage.pipeline import Params
from runtriage.settings import Settings
from runtriage.settings.schema import MARK_KINDS
from runtriage.sweep.executors import Executor, ProcessExecutor, SerialExecutor
from runtriage.sweep.outcome import Outcome, Tally
from runtriage.sweep.run import sweep
from runtriage.sweep.select import Selection, choose, group
from runtriage.trackers.base import HistorySource

if TYPE_CHECKING:
    from runtriage.sweep.write import Writer

FAILURES_SHOWN = 10
PARTLY = 4
"""Exit code of a job that reached its end and in which something failed."""


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


def run(ask: Ask, flags: Mapping[str, Any]) -> int:
    """Sweep and return the exit code.

    Raises
    ------
    UsageError
        A dry run of nothing, a file that cannot be written, or marks on a source that cannot carry them.
    SourceError
        The source cannot be used at all.
    """
    loaded = door.settings(flags)
    if ask.show_settings:
        for line in loaded.lines():
            out(line)
        return 0
    door.check_writable(ask.json, ask.html)
    if ask.dry_run and not loaded.settings.sweep.write:
        raise UsageError("there is nothing to plan", where="--dry-run", hint="say what to write, as in --write all")
    swept = perform(ask, loaded.settings)
    reports = [outcome.report for outcome in swept.outcomes]
    if ask.json is not None:
        door.write_file(ask.json, json_lines(reports))
    if ask.html is not None:
        write_html(ask.html, [outcome.triage for outcome in swept.outcomes], ask.source)
    return tell(swept, ask, loaded.settings)


def tell(swept: Swept, ask: Ask, settings: Settings) -> int:
    """Print the table and the summary of a sweep; return the exit code."""
    reports = [outcome.report for outcome in swept.outcomes]
    say = note if ask.json == "-" else out
    if ask.json != "-":
        table.show(reports)
        if reports:
            out()
    say(swept.tally.sentence() if swept.outcomes else "no runs: nothing was judged")
    _tell_rest(swept, ask, say)
    return _code(swept, settings)


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
    with door.opened(ask.source) as source, closing(_executor(settings)) as analysis:
        writer = _writer(source, kinds, dry=ask.dry_run) if kinds else None
        with progress("listing", None) as bar:
            groups = group(choose(bar.over(source.list_runs()), selection), params.ignore_keys)
        if writer is not None:
            kept, groups = _unchanged(groups, writer, params, baselines, ask)
            for outcome in kept:
                tally.add(outcome)
            outcomes += kept
        total = sum(map(len, groups))
        with progress("judging", total) as bar:
            results = sweep(
                source, groups, analysis=analysis, params=params, baselines=baselines, writer=writer,
                readers=settings.sweep.readers,
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


def json_lines(reports: Sequence[Report]) -> bytes:
    """Return one report a line."""
    from runtriage.codec import encode_report

    return b"".join(encode_report(report) + b"\n" for report in reports)


def write_html(path: str, triages: Sequence[Triage], title: str) -> None:
    """Write the self-contained page."""
    from runtriage.model.refs import redacted
    from runtriage.outputs.report.html import render_html

    door.write_file(path, render_html(triages, redacted(title)).encode())


def _executor(settings: Settings) -> Executor:
    return ProcessExecutor(settings.sweep.workers) if settings.sweep.executor == "processes" else SerialExecutor()


def _light(outcome: Outcome) -> Outcome:
    from dataclasses import replace

    return replace(outcome, triage=Triage(report=outcome.report))


def _tell_rest(swept: Swept, ask: Ask, say: Any) -> None:
    tally, writer = swept.tally, swept.writer
    tell_failures("failed", tally.failed)
    tell_failures("not written", tally.unwritten)
    if writer is None:
        return
    if ask.dry_run:
        for outcome in swept.outcomes:
            for line in plan_lines(outcome.plan):
                say(f"{clean(outcome.report.run.name, 60)}: {line}")
        for line in plan_lines(swept.project):
            say(f"experiment: {line}")
    verb = "would change" if ask.dry_run else "changed"
    experiment = f"; experiment {verb}" if swept.project else ""
    say(f"marks: {tally.changed} runs {verb}, {tally.unchanged} already right{experiment}")
    if writer.without_files is not None:
        note(f"runtriage: panels could not be stored: {clean(writer.without_files, 300)}")
    if writer.refused is not None:
        note(f"runtriage: nothing could be written: {clean(writer.refused, 300)}; the reports are complete")
    if swept.project_failure is not None:
        note(f"runtriage: not written: experiment: {clean(swept.project_failure, 300)}")


def tell_failures(title: str, failures: Sequence[tuple[str, str]]) -> None:
    """Say on stderr for which runs something failed, and why."""
    for run_id, why in failures[:FAILURES_SHOWN]:
        note(f"runtriage: {title}: {clean(run_id, 60)}: {clean(why, 300)}")
    if len(failures) > FAILURES_SHOWN:
        note(f"runtriage: {title}: … and {len(failures) - FAILURES_SHOWN} more")


def plan_lines(plan: WritePlan | None) -> list[str]:
    """Return a plan in words, one change a line."""
    if plan is None:
        return []
    lines = [f"set {key} = {clean(value, 80)}" for key, value in sorted(plan.set_tags.items())]
    lines += [f"remove {key}" for key in plan.delete_tags]
    lines += ["write the note block"] if plan.set_note is not None else []
    lines += ["remove the note block"] if plan.delete_note else []
    lines += [f"put {path} ({len(content)} bytes)" for path, content in sorted(plan.put_files.items())]
    return lines + [f"remove {path}" for path in plan.delete_files]


def _code(swept: Swept, settings: Settings) -> int:
    if settings.sweep.fail_on is not None and swept.tally.worst_reaches(settings.sweep.fail_on):
        return 1
    refused = swept.writer is not None and swept.writer.refused is not None
    partly = swept.tally.failed or swept.tally.unwritten or swept.project_failure is not None or refused
    return PARTLY if partly else 0

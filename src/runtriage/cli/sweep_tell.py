"""What ``runtriage sweep`` says at its end, and its exit code."""

from __future__ import annotations

from collections.abc import Callable

from runtriage.cli import table
from runtriage.cli.console import clean, note, out
from runtriage.cli.sweep_perform import Ask, Swept
from runtriage.cli.tell import PARTLY, plan_lines, tell_failures
from runtriage.settings import Settings


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


def _tell_rest(swept: Swept, ask: Ask, say: Callable[[str], None]) -> None:
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


def _code(swept: Swept, settings: Settings) -> int:
    if settings.sweep.fail_on is not None and swept.tally.worst_reaches(settings.sweep.fail_on):
        return 1
    refused = swept.writer is not None and swept.writer.refused is not None
    partly = swept.tally.failed or swept.tally.unwritten or swept.project_failure is not None or refused
    return PARTLY if partly else 0

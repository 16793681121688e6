"""What ``runtriage sweep`` says at its end, and its exit code."""

from __future__ import annotations

from collections.abc import Callable

from runtriage.cli import table
from runtriage.cli.console import clean, note, out
from runtriage.cli.sweep_ask import Ask, Swept
from runtriage.cli.tell import PARTLY, plan_lines, tell_failures
from runtriage.model.phrase import Phrase
from runtriage.model.report import Report
from runtriage.model.texts import say as phrased
from runtriage.model.texts import text
from runtriage.model.vocab import Lang
from runtriage.settings import Settings


def tell(
    swept: Swept, ask: Ask, settings: Settings, *, shows: Callable[[Report], bool] = lambda _report: True
) -> int:
    """Print the table and the summary of a sweep; return the exit code.

    Parameters
    ----------
    swept, ask, settings
        What was done.
    shows
        Which runs are in the table.
    """
    say = note if ask.takes_stdout else out
    lang = settings.report.lang
    if not ask.takes_stdout and table.show(filter(shows, (entry.report for entry in swept.entries()))):
        out()
    say(swept.tally.sentence(lang) if swept.runs else text("tally.none", lang))
    _tell_rest(swept, ask, say, lang)
    _tell_alerts(swept, ask, say, lang)
    return exit_code(swept, settings)


def _tell_alerts(swept: Swept, ask: Ask, say: Callable[[str], None], lang: Lang) -> None:
    if swept.alerts is None:
        return
    from runtriage.cli.rules_notify import show

    for message in swept.alerts.sent:
        show(message, whole=ask.dry_run, say=say)
    for failure in swept.alerts.failures:
        note(f"runtriage: alerts: {clean(failure, 300)}")
    key = "tally.alerts_dry" if ask.dry_run else "tally.alerts"
    looked = swept.alerts.looked_at
    told = phrased(Phrase(key, {"messages": len(swept.alerts.sent), "looked": looked}), lang)
    say(told + (text("tally.ended", lang) if not looked and swept.runs else ""))


def _tell_rest(swept: Swept, ask: Ask, say: Callable[[str], None], lang: Lang) -> None:
    tally, writer = swept.tally, swept.writer
    tell_failures("failed", tally.failed)
    tell_failures("not written", tally.unwritten)
    if writer is None:
        return
    if ask.dry_run:
        for entry in swept.entries():
            for line in entry.plan or ():
                say(f"{clean(entry.report.run.name, 60)}: {line}")
        for line in plan_lines(swept.project):
            say(f"experiment: {line}")
    experiment = text("tally.project_dry" if ask.dry_run else "tally.project", lang) if swept.project else ""
    counts = {"changed": tally.changed, "right": tally.unchanged}
    say(phrased(Phrase("tally.marks_dry" if ask.dry_run else "tally.marks", counts), lang) + experiment)
    if writer.without_files is not None:
        note(f"runtriage: panels could not be stored: {clean(writer.without_files, 300)}")
    if writer.refused is not None:
        note(f"runtriage: nothing could be written: {clean(writer.refused, 300)}; the reports are complete")
    if swept.project_failure is not None:
        note(f"runtriage: not written: experiment: {clean(swept.project_failure, 300)}")


def exit_code(swept: Swept, settings: Settings) -> int:
    """Return the exit code of a sweep."""
    if settings.sweep.fail_on is not None and swept.tally.worst_reaches(settings.sweep.fail_on):
        return 1
    return 0 if swept.is_complete else PARTLY

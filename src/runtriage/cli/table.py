"""The table of a sweep, laid out for a terminal or for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from runtriage.cli.console import clean, width
from runtriage.model.phrase import Phrase
from runtriage.model.report import Finding, Report
from runtriage.model.texts import say, term, text
from runtriage.model.vocab import BaselineKind, Lang, Level

HEALTHY_SHOWN = 40
"""Healthy runs listed before the rest is only counted."""

_ORDER = (Level.BROKEN, Level.SUSPICIOUS, Level.WATCH, Level.WITHHELD, Level.HEALTHY)
_COLOUR = {
    Level.BROKEN: "bold red",
    Level.SUSPICIOUS: "yellow",
    Level.WATCH: "cyan",
    Level.WITHHELD: "dim",
    Level.HEALTHY: "green",
}
_FINDINGS_SHOWN = 3
_Row = tuple[Level, str, str, str]


def show(reports: Iterable[Report]) -> bool:
    """Print reports, worst first, and tell whether there were any; none of them is held."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows: list[_Row] = []
    healthy, lang = 0, Lang.EN
    for report in reports:
        lang = report.language
        healthy += report.verdict == Level.HEALTHY
        if report.verdict != Level.HEALTHY or healthy <= HEALTHY_SHOWN:
            rows.append((report.verdict, clean(report.run.name, 80), what(report), compared(report)))
    if not rows:
        return False
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="bold" if sys.stdout.isatty() else "")
    table.add_column(text("table.verdict", lang), no_wrap=True)
    table.add_column(text("table.run", lang), overflow="fold", max_width=40)
    table.add_column(text("table.what", lang), overflow="fold")
    table.add_column(text("table.compared", lang), no_wrap=True)
    for verdict, *texts in sorted(rows, key=lambda row: _ORDER.index(row[0])):
        table.add_row(Text(term("level", verdict, lang), style=_COLOUR[verdict]), *map(Text, texts))
    console = Console(file=sys.stdout, width=width(), highlight=False, soft_wrap=False)
    console.print(table)
    if healthy > HEALTHY_SHOWN:
        console.print(Text(_said("table.healthy", lang, count=healthy - HEALTHY_SHOWN)))
    return True


def what(report: Report) -> str:
    """Return the findings in a few words, or the reason where there are none."""
    if not report.findings:
        return clean(report.reason, 160)
    telling = sorted(report.findings, key=lambda finding: finding.explained_by is not None)
    lang = report.language
    parts = [_few_words(finding, lang) for finding in telling[:_FINDINGS_SHOWN]]
    more = len(telling) - _FINDINGS_SHOWN
    return text("word.semicolon", lang).join(parts) + (_said("table.more", lang, count=more) if more > 0 else "")


def compared(report: Report) -> str:
    """Return what the run was compared with."""
    base, lang = report.baseline, report.language
    if base.kind == BaselineKind.COHORT:
        return _said("table.sibling" if base.runs == 1 else "table.siblings", lang, count=base.runs)
    return text("table.itself" if base.kind == BaselineKind.SELF else "table.nothing", lang)


def _few_words(finding: Finding, lang: Lang) -> str:
    words = _said(
        "table.finding", lang, kind_words=finding.kind, metric=clean(finding.metric, 40), start=finding.start_step
    )
    if finding.outcome is not None:
        words += _said("word.outcome", lang, outcome=finding.outcome)
    why = finding.explained_by
    return f"{words}{_said('table.explained', lang, why_words=why)}" if why is not None else words


def _said(key: str, lang: Lang, **values: object) -> str:
    return say(Phrase(key, values), lang)

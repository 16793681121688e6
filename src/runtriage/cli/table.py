"""The table of a sweep, laid out for a terminal or for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from runtriage.cli.console import clean, width
from runtriage.model.report import Finding, Report
from runtriage.model.vocab import BaselineKind, Level

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
    healthy = 0
    for report in reports:
        healthy += report.verdict == Level.HEALTHY
        if report.verdict != Level.HEALTHY or healthy <= HEALTHY_SHOWN:
            rows.append((report.verdict, clean(report.run.name, 80), what(report), compared(report)))
    if not rows:
        return False
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="bold" if sys.stdout.isatty() else "")
    table.add_column("verdict", no_wrap=True)
    table.add_column("run", overflow="fold", max_width=40)
    table.add_column("what", overflow="fold")
    table.add_column("compared with", no_wrap=True)
    for verdict, *texts in sorted(rows, key=lambda row: _ORDER.index(row[0])):
        table.add_row(Text(str(verdict), style=_COLOUR[verdict]), *map(Text, texts))
    console = Console(file=sys.stdout, width=width(), highlight=False, soft_wrap=False)
    console.print(table)
    if healthy > HEALTHY_SHOWN:
        console.print(Text(f"… and {healthy - HEALTHY_SHOWN} more healthy runs"))
    return True


def what(report: Report) -> str:
    """Return the findings in a few words, or the reason where there are none."""
    if not report.findings:
        return clean(report.reason, 160)
    telling = sorted(report.findings, key=lambda finding: finding.explained_by is not None)
    parts = [_few_words(finding) for finding in telling[:_FINDINGS_SHOWN]]
    more = len(telling) - _FINDINGS_SHOWN
    return "; ".join(parts) + (f"; {more} more" if more > 0 else "")


def compared(report: Report) -> str:
    """Return what the run was compared with."""
    base = report.baseline
    if base.kind == BaselineKind.COHORT:
        return f"{base.runs} sibling{'' if base.runs == 1 else 's'}"
    return "itself" if base.kind == BaselineKind.SELF else "nothing"


def _few_words(finding: Finding) -> str:
    text = f"{_spaced(finding.kind)} in {clean(finding.metric, 40)} at {finding.start_step}"
    if finding.outcome is not None:
        text += f", {finding.outcome}"
    return f"{text} (explained: {_spaced(finding.explained_by)})" if finding.explained_by is not None else text


def _spaced(word: str) -> str:
    return word.replace("_", " ")

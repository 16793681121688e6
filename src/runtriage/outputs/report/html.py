"""A page about one run or about all runs of a source: one file, no script, no network. Pure.

Everything from outside passes through :func:`~runtriage.outputs.report.words.one_line` and through Jinja's autoescape;
only pictures and style sheets made here are passed as markup (``|safe`` in the template). The page forbids itself
scripts and connections, should anything ever slip through.
"""

from __future__ import annotations

import math
import re
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from runtriage.model.curve import Triage
from runtriage.model.report import Cause, Finding, Report
from runtriage.model.vocab import Level
from runtriage.outputs.report import words
from runtriage.outputs.report.page import MACROS, PAGE
from runtriage.outputs.report.page_style import SHEET
from runtriage.outputs.report.spark import render_spark
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.report.svg_style import STYLE

FLAGGED_SHOWN = 200
OTHERS_SHOWN = 60
"""Runs that get a section of their own; all others are in the table. A page must open in a browser."""

_Rank = tuple[int, str, str]
_LINKABLE = re.compile(r"https?://[^\s\"'<>\\^`{|}]{1,1000}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the page needs of a run: its report, and pictures made while its curves were at hand."""

    report: Report
    spark: str = ""
    panel: str = ""


class Detailed:
    """Tells, while runs go by in any order, which of them may still get a section of their own."""

    def __init__(self) -> None:
        self._best: dict[bool, list[_Rank]] = {True: [], False: []}

    def may_have(self, report: Report) -> bool:
        """Tell whether the run is among the worst so far; one that is not will never be."""
        rank = _rank(report)
        best = self._best[_is_flagged(rank)]
        insort(best, rank)
        del best[FLAGGED_SHOWN if _is_flagged(rank) else OTHERS_SHOWN :]
        return rank in best


def picture(triage: Triage, detailed: Detailed) -> Shown:
    """Return what the page needs of a run; its curves are not needed any more."""
    large = detailed.may_have(triage.report) and triage.curves
    panel = render_svg(triage, standalone=False) if large else ""
    return Shown(report=triage.report, spark=render_spark(triage), panel=panel)


def render_html(triages: Sequence[Triage], title: str) -> str:
    """Return the page.

    Parameters
    ----------
    triages
        Runs, in any order; they are shown worst first. One run gets its diagnosis without a table.
    title
        Headline, such as the address of the source.
    """
    detailed = Detailed()
    shown = [picture(triage, detailed) for triage in triages]
    return "".join(render_page((one.report for one in shown), shown.__getitem__, title))


def render_page(reports: Iterable[Report], at: Callable[[int], Shown], title: str) -> Iterator[str]:
    """Yield the page in pieces; of thousands of runs only one is held.

    Parameters
    ----------
    reports
        Of the runs, in any order; gone through once.
    at
        Returns the run at a place of that order.
    title
        Headline.
    """
    source = ""
    ranks = []
    for report in reports:
        ranks.append(_rank(report))
        source = report.run.source
    ranked = sorted(range(len(ranks)), key=ranks.__getitem__)
    levels = [words.TROUBLE[ranks[place][0]] for place in ranked]
    split = sum(map(_is_flagged, ranks))
    runs = _Lazy(at, ranked, range(len(ranked)), split)
    flagged = _Lazy(at, ranked, range(min(split, FLAGGED_SHOWN)), split)
    rest = _Lazy(at, ranked, range(split, min(len(ranked), split + OTHERS_SHOWN)), split)
    left_out = len(runs) - len(flagged) - len(rest)
    yield from _template().generate(
        title=words.one_line(title, 200), lead=_lead(levels, split, source), many=len(ranked) != 1,
        picks=_picks(levels), runs=runs, flagged=flagged, rest=rest,
        left_out=f"{left_out} more runs are in the table only." if left_out else "",
        sheet=SHEET, panel_sheet=STYLE,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Lazy:
    """Runs as the template takes them, made one at a time."""

    at: Callable[[int], Shown]
    ranked: Sequence[int]
    numbers: range
    split: int

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number in self.numbers:
            detailed = number < FLAGGED_SHOWN if number < self.split else number < self.split + OTHERS_SHOWN
            yield _run(self.at(self.ranked[number]), number, detailed=detailed)


def _rank(report: Report) -> _Rank:
    return words.TROUBLE.index(report.verdict), report.run.name, report.run.id


def _is_flagged(rank: _Rank) -> bool:
    return words.TROUBLE[rank[0]] not in (Level.WITHHELD, Level.HEALTHY)


@cache
def _template() -> Template:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False).from_string(MACROS + PAGE)


def _lead(levels: Sequence[Level], flagged: int, source: str) -> str:
    if len(levels) == 1:
        return words.one_line(source, 200)
    if not levels:
        return "There are no runs."
    return f"{flagged or 'None'} of {len(levels)} runs need{'s' if flagged <= 1 else ''} a look."


def _picks(levels: Sequence[Level]) -> list[dict[str, Any]]:
    counted = [{"key": level.value, "text": level.value, "count": levels.count(level)} for level in words.TROUBLE]
    return [{"key": "all", "text": "all runs", "count": len(levels)}, *(pick for pick in counted if pick["count"])]


def _run(shown: Shown, number: int, *, detailed: bool) -> dict[str, Any]:
    report = shown.report
    found = [*words.telling(report), *words.explained(report)]
    worst = words.telling(report)[:1]
    cause = worst[0].causes[0] if worst and worst[0].causes else None
    return {
        "level": report.verdict.value, "anchor": f"run-{number}", "detailed": detailed,
        "name": words.one_line(report.run.name or report.run.id), "reason": words.one_line(report.reason, 400),
        "url": _link(report.run.url), "facts": _facts(report), "what": _what(report),
        "cause": words.cause_name(cause.id) if cause is not None else "",
        "check": words.one_line(cause.verify[0], 160) if cause is not None and cause.verify else "",
        "spark": shown.spark, "panel": shown.panel if detailed else "",
        "findings": [_finding(finding, n) for n, finding in enumerate(found, 1)] if detailed else [],
        "missing": [words.one_line(text, words.SENTENCE_LIMIT) for text in report.missing[:10]],
    }


def _what(report: Report) -> str:
    found = words.telling(report)
    if not found:
        return words.one_line(report.reason, 160)
    more = f", {len(found) - 1} more" if len(found) > 1 else ""
    return f"{words.title(found[0].kind)} in {words.one_line(found[0].metric, 40)} {words.span(found[0])}{more}"


def _facts(report: Report) -> str:
    parts = [f"run {words.one_line(report.run.id, 60)}", report.run.state.value]
    parts.append(f"compared with {words.compared(report.baseline)}")
    if report.baseline.excluded:
        parts.append(f"{len(report.baseline.excluded)} left out because they behave differently")
    chance = words.chance(report.p_false_alarm)
    if chance and words.is_flagged(report):
        parts.append(f"chance in a healthy run: {chance}")
    return " · ".join(parts)


def _finding(finding: Finding, number: int) -> dict[str, Any]:
    chance = words.chance(finding.p_false_alarm)
    facts = [words.size(finding.z) if not math.isnan(finding.z) else "", f"strongest at step {finding.peak_step}"]
    facts.append(f"chance in a healthy run {chance}" if chance else "")
    why = finding.explained_by
    return {
        "number": number, "title": words.title(finding.kind), "metric": words.one_line(finding.metric),
        "tone": "design" if why is not None else finding.severity.value, "where": words.span(finding),
        "outcome": f", {finding.outcome}" if finding.outcome is not None else "",
        "evidence": [words.one_line(text, words.SENTENCE_LIMIT) for text in finding.evidence],
        "facts": ", ".join(fact for fact in facts if fact),
        "explained": words.explanation(why) if why is not None else "",
        "causes": [_cause(cause) for cause in finding.causes],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    weight = min(max(cause.weight, 0.0), 1.0) if math.isfinite(cause.weight) else 0.0
    lines = {
        "because": cause.because, "verify": cause.verify, "try_": cause.try_,
    }
    return {
        "name": words.cause_name(cause.id), "percent": round(100 * weight), "share": words.share(cause.weight),
        **{key: [words.one_line(text, words.SENTENCE_LIMIT) for text in texts] for key, texts in lines.items()},
    }


def _link(url: str | None) -> str:
    """Return an address that may be linked, or nothing: it comes from the tracker and might hold a script."""
    return url if url is not None and _LINKABLE.fullmatch(url) else ""

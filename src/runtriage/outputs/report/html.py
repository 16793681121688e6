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
from runtriage.model.texts import term, text
from runtriage.model.vocab import Lang, Level
from runtriage.outputs.report import words
from runtriage.outputs.report.page import MACROS, PAGE
from runtriage.outputs.report.page_style import SHEET
from runtriage.outputs.report.spark import render_spark
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.report.svg_style import STYLE, in_language

FLAGGED_SHOWN = 200
OTHERS_SHOWN = 60
"""Runs that get a section of their own; all others are in the table. A page must open in a browser."""

_Rank = tuple[int, str, str]
_TAGS = {Lang.EN: "en", Lang.ZH: "zh-Hans"}
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
    source, lang = "", Lang.EN
    ranks = []
    for report in reports:
        ranks.append(_rank(report))
        source, lang = report.run.source, report.language
    ranked = sorted(range(len(ranks)), key=ranks.__getitem__)
    levels = [words.TROUBLE[ranks[place][0]] for place in ranked]
    split = sum(map(_is_flagged, ranks))
    runs = _Lazy(at, ranked, range(len(ranked)), split)
    flagged = _Lazy(at, ranked, range(min(split, FLAGGED_SHOWN)), split)
    rest = _Lazy(at, ranked, range(split, min(len(ranked), split + OTHERS_SHOWN)), split)
    left_out = len(runs) - len(flagged) - len(rest)
    yield from _template().generate(
        title=words.one_line(title, 200), lead=_lead(levels, split, source, lang), many=len(ranked) != 1,
        picks=_picks(levels, lang), runs=runs, flagged=flagged, rest=rest,
        left_out=words.label("page.left_out", lang, count=left_out) if left_out else "",
        sheet=in_language(SHEET, lang), panel_sheet=in_language(STYLE, lang), lang=_TAGS[lang],
        say=lambda key, **values: words.label(f"page.{key}", lang, **values),
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


def _lead(levels: Sequence[Level], flagged: int, source: str, lang: Lang) -> str:
    if len(levels) == 1:
        return words.one_line(source, 200)
    if not levels:
        return text("page.none", lang)
    if not flagged:
        return words.label("page.healthy", lang, runs=len(levels))
    return words.label("page.one" if flagged == 1 else "page.many", lang, count=flagged, runs=len(levels))


def _picks(levels: Sequence[Level], lang: Lang) -> list[dict[str, Any]]:
    counted = [
        {"key": level.value, "text": term("level", level, lang), "count": levels.count(level)}
        for level in words.TROUBLE
    ]
    every = {"key": "all", "text": text("page.all", lang), "count": len(levels)}
    return [every, *(pick for pick in counted if pick["count"])]


def _run(shown: Shown, number: int, *, detailed: bool) -> dict[str, Any]:
    report, lang = shown.report, shown.report.language
    found = [*words.telling(report), *words.explained(report)]
    worst = words.telling(report)[:1]
    cause = worst[0].causes[0] if worst and worst[0].causes else None
    return {
        "level": report.verdict.value, "verdict": term("level", report.verdict, lang),
        "anchor": f"run-{number}", "detailed": detailed,
        "name": words.one_line(report.run.name or report.run.id), "reason": words.one_line(report.reason, 400),
        "url": _link(report.run.url), "facts": _facts(report), "what": _what(report),
        "cause": words.cause_name(cause.id, lang) if cause is not None else "",
        "check": words.one_line(cause.verify[0], 160) if cause is not None and cause.verify else "",
        "spark": shown.spark, "panel": shown.panel if detailed else "",
        "findings": [_finding(finding, n, lang) for n, finding in enumerate(found, 1)] if detailed else [],
        "missing": [words.one_line(sentence, words.SENTENCE_LIMIT) for sentence in report.missing[:10]],
    }


def _what(report: Report) -> str:
    found = words.telling(report)
    if not found:
        return words.one_line(report.reason, 160)
    lang = report.language
    more = words.label("word.more", lang, count=len(found) - 1) if len(found) > 1 else ""
    what = words.label(
        "word.what", lang, title=words.title(found[0].kind, lang), metric=words.one_line(found[0].metric, 40),
        span=words.span(found[0], lang),
    )
    return f"{what}{more}"


def _facts(report: Report) -> str:
    lang = report.language
    parts = [words.label("page.id", lang, id=words.one_line(report.run.id, 60)), term("state", report.run.state, lang)]
    parts.append(words.label("page.compared", lang, compared=words.compared(report.baseline, lang)))
    if report.baseline.excluded:
        parts.append(words.label("page.excluded", lang, count=len(report.baseline.excluded)))
    chance = words.chance(report.p_false_alarm, lang)
    if chance and words.is_flagged(report):
        parts.append(words.label("page.odds", lang, chance=chance))
    return " · ".join(parts)


def _finding(finding: Finding, number: int, lang: Lang) -> dict[str, Any]:
    chance = words.chance(finding.p_false_alarm, lang)
    facts = [words.size(finding.z, lang) if not math.isnan(finding.z) else ""]
    facts.append(words.label("page.strongest", lang, step=finding.peak_step))
    facts.append(words.label("page.chance", lang, chance=chance) if chance else "")
    why = finding.explained_by
    return {
        "number": number, "title": words.named(finding.kind, lang), "metric": words.one_line(finding.metric),
        "tone": "design" if why is not None else finding.severity.value,
        "where": f"{text('word.comma', lang)}{words.span(finding, lang)}{words.outcome(finding, lang)}",
        "evidence": [words.one_line(seen, words.SENTENCE_LIMIT) for seen in finding.evidence],
        "facts": text("word.comma", lang).join(fact for fact in facts if fact),
        "explained": words.explanation(why, lang) if why is not None else "",
        "causes": [_cause(cause, lang) for cause in finding.causes],
    }


def _cause(cause: Cause, lang: Lang) -> dict[str, Any]:
    weight = min(max(cause.weight, 0.0), 1.0) if math.isfinite(cause.weight) else 0.0
    lines = {
        "because": cause.because, "verify": cause.verify, "try_": cause.try_,
    }
    return {
        "name": words.cause_name(cause.id, lang), "percent": round(100 * weight), "share": words.share(cause.weight),
        **{key: [words.one_line(sentence, words.SENTENCE_LIMIT) for sentence in told] for key, told in lines.items()},
    }


def _link(url: str | None) -> str:
    """Return an address that may be linked, or nothing: it comes from the tracker and might hold a script."""
    return url if url is not None and _LINKABLE.fullmatch(url) else ""

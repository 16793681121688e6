"""A page about one run or about all runs of a source: one file, no script, no network. Pure.

Everything from outside passes through :func:`~runtriage.outputs.report.words.one_line` and through Jinja's autoescape;
only pictures and style sheets made here are passed as markup (``|safe`` in the template). The page forbids itself
scripts and connections, should anything ever slip through.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from runtriage.model.curve import Triage
from runtriage.model.report import Cause, Finding, Report
from runtriage.outputs.report import words
from runtriage.outputs.report.page import MACROS, PAGE
from runtriage.outputs.report.page_style import SHEET
from runtriage.outputs.report.spark import render_spark
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.report.svg_style import STYLE

FLAGGED_SHOWN = 200
OTHERS_SHOWN = 60
"""Runs that get a section of their own; all others are in the table. A page must open in a browser."""

_LINKABLE = re.compile(r"https?://[^\s\"'<>\\^`{|}]{1,1000}")


def render_html(triages: Sequence[Triage], title: str) -> str:
    """Return the page.

    Parameters
    ----------
    triages
        Runs, in any order; they are shown worst first. One run gets its diagnosis without a table.
    title
        Headline, such as the address of the source.
    """
    ranked = sorted(triages, key=lambda t: (words.TROUBLE.index(t.report.verdict), t.report.run.name, t.report.run.id))
    flagged = [t for t in ranked if words.is_flagged(t.report)]
    others = [t for t in ranked if not words.is_flagged(t.report)]
    many = len(ranked) != 1
    runs = [
        _run(triage, number, detailed=place < limit, spark=many)
        for number, (triage, place, limit) in enumerate([
            *((t, i, FLAGGED_SHOWN) for i, t in enumerate(flagged)),
            *((t, i, OTHERS_SHOWN) for i, t in enumerate(others)),
        ])
    ]
    left_out = max(len(flagged) - FLAGGED_SHOWN, 0) + max(len(others) - OTHERS_SHOWN, 0)
    return _template().render(
        title=words.one_line(title, 200), lead=_lead(ranked), many=many, picks=_picks(ranked), runs=runs,
        flagged=[run for run in runs[: len(flagged)] if run["detailed"]],
        rest=[run for run in runs[len(flagged) :] if run["detailed"]],
        left_out=f"{left_out} more runs are in the table only." if left_out else "",
        sheet=SHEET, panel_sheet=STYLE,
    )


@cache
def _template() -> Template:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False).from_string(MACROS + PAGE)


def _lead(ranked: Sequence[Triage]) -> str:
    if len(ranked) == 1:
        return words.one_line(ranked[0].report.run.source, 200)
    flagged = sum(words.is_flagged(t.report) for t in ranked)
    if not ranked:
        return "There are no runs."
    return f"{flagged or 'None'} of {len(ranked)} runs need{'s' if flagged <= 1 else ''} a look."


def _picks(ranked: Sequence[Triage]) -> list[dict[str, Any]]:
    levels = [t.report.verdict for t in ranked]
    counted = [{"key": level.value, "text": level.value, "count": levels.count(level)} for level in words.TROUBLE]
    return [{"key": "all", "text": "all runs", "count": len(levels)}, *(pick for pick in counted if pick["count"])]


def _run(triage: Triage, number: int, *, detailed: bool, spark: bool) -> dict[str, Any]:
    report = triage.report
    found = [*words.telling(report), *words.explained(report)]
    worst = words.telling(report)[:1]
    cause = worst[0].causes[0] if worst and worst[0].causes else None
    return {
        "level": report.verdict.value, "anchor": f"run-{number}", "detailed": detailed,
        "name": words.one_line(report.run.name or report.run.id), "reason": words.one_line(report.reason, 400),
        "url": _link(report.run.url), "facts": _facts(report), "what": _what(report),
        "cause": words.cause_name(cause.id) if cause is not None else "",
        "check": words.one_line(cause.verify[0], 160) if cause is not None and cause.verify else "",
        "spark": render_spark(triage) if spark else "",
        "panel": render_svg(triage, standalone=False) if detailed and triage.curves else "",
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

"""The digest of a sweep as Markdown for a GitHub issue or the summary of a job. Pure: equal reports give equal text.

First the counts, then the runs that need a look, worst first, each folded away below one line: what was seen, what may
have caused it, how to check. Nothing from outside mentions people, refers to issues, or links anywhere.
"""

from __future__ import annotations

import heapq
import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from runtriage.model.report import Finding, Report
from runtriage.model.texts import text
from runtriage.model.vocab import Lang, Level
from runtriage.outputs.report import words
from runtriage.outputs.report.markdown import CAUSES_SHOWN, FINDINGS_SHOWN, code, escape, is_safe_url

ISSUE_LIMIT = 65_000
"""Bytes of a digest. GitHub takes 65,536 characters of an issue."""
MOST_RUNS = 300
"""Runs that are kept while the others are only counted."""

_REFERENCE = re.compile(r"(?i)(#|\bGH-)(?=\d)")
_JOINT = "\u200b"


def render_issue(reports: Iterable[Report], lang: Lang = Lang.EN) -> str:
    """Return the digest of some runs.

    Parameters
    ----------
    reports
        Of all runs of a sweep, in any order; taken one at a time, and few are held.
    lang
        Language of what is put around them.
    """
    levels: Counter[Level] = Counter()
    worst = heapq.nsmallest(MOST_RUNS, _flagged(reports, levels), key=_trouble)
    flagged = sum(levels.values()) - levels[Level.HEALTHY] - levels[Level.WITHHELD]
    head = _head(flagged, levels, lang)
    parts = [head]
    room = ISSUE_LIMIT - len(head.encode()) - 200
    for report in worst:
        part = _run(report)
        room -= len(part.encode()) + 2
        if room < 0:
            break
        parts.append(part)
    left_out = flagged - (len(parts) - 1)
    if left_out:
        parts.append(words.label("issue.left_one" if left_out == 1 else "issue.left_many", lang, count=left_out))
    return "\n\n".join(parts) + "\n"


def _head(flagged: int, levels: Counter[Level], lang: Lang) -> str:
    runs = sum(levels.values())
    if flagged:
        key = "issue.one" if flagged == 1 else "issue.many"
        told = words.label(key, lang, count=flagged, runs=runs)
    else:
        told = words.label("issue.none", lang, runs=runs)
    if not runs:
        return words.label("issue.plain", lang, told=told)
    return words.label("issue.tallied", lang, told=told, tally=words.tally(list(levels.elements()), lang))


def _flagged(reports: Iterable[Report], levels: Counter[Level]) -> Iterator[Report]:
    for report in reports:
        levels[report.verdict] += 1
        if words.is_flagged(report):
            yield report


def _trouble(report: Report) -> tuple[int, float, str, str]:
    """Return the order: the verdict, then the largest z, then name and id."""
    sizes = [abs(finding.z) for finding in words.telling(report) if not math.isnan(finding.z)]
    return words.TROUBLE.index(report.verdict), -max(sizes, default=0.0), report.run.name, report.run.id


def _run(report: Report) -> str:
    found, lang = words.telling(report), report.language
    name = html.escape(words.one_line(report.run.name or report.run.id)).replace("@", f"@{_JOINT}")
    told = f"{words.verdict(report.verdict, lang)}{text('word.colon', lang)}<code>{name}</code>"
    if found:
        brief = words.label(
            "issue.brief", lang, title=words.title(found[0].kind, lang), span=words.span(found[0], lang)
        )
        told += f"{text('word.colon', lang)}{brief}"
    lines = [f"<details><summary>{told}</summary>", ""]
    if report.run.url is not None and is_safe_url(report.run.url):
        lines += [f"[{text('issue.open', lang)}]({report.run.url})", ""]
    lines += [_calm(report.reason), ""]
    for finding in found[:FINDINGS_SHOWN]:
        lines += _finding(finding, lang)
    if len(found) > FINDINGS_SHOWN:
        more = len(found) - FINDINGS_SHOWN
        lines += [words.label("word.finding" if more == 1 else "word.findings", lang, count=more), ""]
    compared = words.label("note.compared", lang, compared=words.compared(report.baseline, lang))
    return "\n".join([*lines, compared, "", "</details>"])


def _finding(finding: Finding, lang: Lang) -> list[str]:
    what = words.label(
        "word.what", lang, title=f"**{words.named(finding.kind, lang)}**", metric=code(finding.metric),
        span=words.span(finding, lang),
    )
    lines = [what, ""]
    if finding.evidence:
        seen = words.joined(map(_calm, finding.evidence[:4]), lang)
        lines += [words.label("note.seen", lang, sentences=seen), ""]
    for number, cause in enumerate(finding.causes[:CAUSES_SHOWN], 1):
        because = text("word.colon", lang) + words.joined(map(_calm, cause.because), lang) if cause.because else ""
        name, share = words.cause_name(cause.id, lang), words.share(cause.weight)
        likely = words.label("note.cause", lang, cause=name, share=share, because=because)
        lines.append(f"{number}. {text('issue.likely', lang)}{likely}")
        lines += [f"   - {words.label('note.check', lang, sentence=_calm(sentence))}" for sentence in cause.verify]
    return [*lines, ""] if finding.causes else lines


def _calm(sentence: str) -> str:
    """Return a sentence that Markdown shows as it is and in which GitHub finds no reference."""
    return _REFERENCE.sub(lambda found: f"{found[0]}{_JOINT}", escape(sentence))

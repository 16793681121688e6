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

from runtriage.model.report import Report
from runtriage.model.vocab import Level
from runtriage.outputs.report import words
from runtriage.outputs.report.markdown import CAUSES_SHOWN, FINDINGS_SHOWN, code, escape, is_safe_url

ISSUE_LIMIT = 65_000
"""Bytes of a digest. GitHub takes 65,536 characters of an issue."""
MOST_RUNS = 300
"""Runs that are kept while the others are only counted."""

_REFERENCE = re.compile(r"(?i)(#|\bGH-)(?=\d)")
_JOINT = "\u200b"


def render_issue(reports: Iterable[Report]) -> str:
    """Return the digest of some runs.

    Parameters
    ----------
    reports
        Of all runs of a sweep, in any order; taken one at a time, and few are held.
    """
    levels: Counter[Level] = Counter()
    worst = heapq.nsmallest(MOST_RUNS, _flagged(reports, levels), key=_trouble)
    flagged = sum(levels.values()) - levels[Level.HEALTHY] - levels[Level.WITHHELD]
    total = sum(levels.values())
    count = f"{flagged} of {total} runs" if flagged else f"none of {total} runs"
    tally = ", ".join(f"{levels[level]} {level}" for level in words.TROUBLE if levels[level])
    head = f"**runtriage: {count} need{'s' if flagged <= 1 else ''} a look**" + (f" ({tally})." if tally else ".")
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
        runs = f"{left_out} more run{'' if left_out == 1 else 's'} that need{'s' if left_out == 1 else ''} a look"
        parts.append(f"… {runs} left out here: a digest has an end. `runtriage sweep` lists all of them.")
    return "\n\n".join(parts) + "\n"


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
    found = words.telling(report)
    name = html.escape(words.one_line(report.run.name or report.run.id)).replace("@", f"@{_JOINT}")
    what = f"{words.title(found[0].kind)} {words.span(found[0])}" if found else ""
    lines = [f"<details><summary>{report.verdict}: <code>{name}</code>{f': {what}' if what else ''}</summary>", ""]
    if report.run.url is not None and is_safe_url(report.run.url):
        lines += [f"[Open the run]({report.run.url})", ""]
    lines += [_calm(report.reason), ""]
    for finding in found[:FINDINGS_SHOWN]:
        lines += [f"**{words.title(finding.kind)}** in {code(finding.metric)} {words.span(finding)}", ""]
        if finding.evidence:
            lines += [f"Seen: {'; '.join(map(_calm, finding.evidence[:4]))}", ""]
        for number, cause in enumerate(finding.causes[:CAUSES_SHOWN], 1):
            because = f": {'; '.join(map(_calm, cause.because))}" if cause.because else ""
            lines.append(f"{number}. Likely: **{words.cause_name(cause.id)}** ({words.share(cause.weight)}){because}")
            lines += [f"   - Check: {_calm(text)}" for text in cause.verify]
        lines += [""] if finding.causes else []
    if len(found) > FINDINGS_SHOWN:
        more = len(found) - FINDINGS_SHOWN
        lines += [f"… {more} more finding{'' if more == 1 else 's'}", ""]
    return "\n".join([*lines, f"Compared with {words.compared(report.baseline)}.", "", "</details>"])


def _calm(text: str) -> str:
    """Return a sentence that Markdown shows as it is and in which GitHub finds no reference."""
    return _REFERENCE.sub(lambda found: f"{found[0]}{_JOINT}", escape(text))

"""Reports as Markdown: the block in the note of a run, and the digest on an experiment. Pure.

Names and sentences hold text from outside. Names stand in code spans, where Markdown knows no links, images or HTML.
In sentences, which never begin a line, the characters that act inside a line are escaped, and what engines turn into
links without being asked is pulled apart; words like ``grad_norm`` stay as they are, for the raw text is seen as well.
The first line is a plain sentence: MLflow shows the raw beginning of a note in its table of runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from runtriage.model.report import Cause, Finding, Report
from runtriage.model.vocab import Level
from runtriage.outputs.report import words

NOTE_LIMIT = 7000
"""Characters of a block. MLflow holds 8,000 of a note, the user's own text included."""
FINDINGS_SHOWN = 4
CAUSES_SHOWN = 3
RUNS_SHOWN = 25

_SPECIAL = re.compile(r"[\\`*\[\]<>&~|$!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_JOINT = "\u200b"
_SAFE_URL = re.compile(r"https?://[A-Za-z0-9._~:/#?&=%+,;-]{1,500}")


def escape(text: str, limit: int = words.SENTENCE_LIMIT) -> str:
    r"""Return a sentence that Markdown shows as it is.

    Examples
    --------
    >>> escape("x [a](javascript:1) <b>")
    'x \\[a\\](javascript:1) \\<b\\>'
    """
    flat = words.one_line(text, limit)
    flat = flat.replace("://", f":{_JOINT}//").replace("@", f"@{_JOINT}")
    flat = re.sub(r"(?i)www\.", lambda found: f"{found[0][:3]}{_JOINT}.", flat)
    return _SPECIAL.sub(r"\\\g<0>", flat)


def code(text: str, limit: int = words.NAME_LIMIT, *, in_table: bool = False) -> str:
    r"""Return a name as a code span that nothing in the name can leave.

    Examples
    --------
    >>> code("a`b"), code("a|b", in_table=True)
    ('`` a`b ``', '`a\\|b`')
    """
    flat = words.one_line(text, limit).replace("<!--", "<! --").replace("-->", "-- >")
    if in_table:
        flat = flat.replace("\\", "/").replace("|", "\\|")
    if not flat.strip():
        return "(no name)"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def render_note(report: Report, *, panel_url: str | None = None, page_hint: bool = False) -> str:
    """Return the block for the note of a run.

    Parameters
    ----------
    report
        What to say.
    panel_url
        Address of the panel as the tracker serves it, to be shown in the block; None to leave it out.
    page_hint
        True to say where the page with the full diagnosis is.
    """
    lines = [f"runtriage: {report.verdict}. {escape(report.reason)}", ""]
    if panel_url is not None and _is_plain_address(panel_url):
        lines += [f"![loss, gradient norm and learning rate]({panel_url})", ""]
    found = words.telling(report)
    parts = ["\n".join(_finding(f)) for f in found]
    tail = _tail(report, page_hint=page_hint)
    room = NOTE_LIMIT - len("\n".join([*lines, *tail])) - len("\n… 99 more findings\n")
    shown = 0
    for part in parts[:FINDINGS_SHOWN]:
        if len(part) + 1 > room:
            break
        room -= len(part) + 1
        lines.append(part)
        shown += 1
    if len(found) > shown:
        lines += [f"… {len(found) - shown} more finding{'' if len(found) - shown == 1 else 's'}", ""]
    return "\n".join([*lines, *tail]).rstrip("\n")


def render_digest(reports: Sequence[Report]) -> str:
    """Return the block for the note of an experiment: which runs to look at, why, and where to begin."""
    levels = [report.verdict for report in reports]
    flagged = [report for report in words.by_trouble(reports) if words.is_flagged(report)]
    count = f"{len(flagged)} of {len(reports)} runs" if flagged else f"none of {len(reports)} runs"
    head = [f"runtriage: {count} need{'s' if len(flagged) <= 1 else ''} a look ({words.tally(levels)})."]
    if not flagged:
        return head[0]
    head += ["", "| verdict | run | what | first cause | first check |", "|---|---|---|---|---|"]
    rows: list[str] = []
    room = NOTE_LIMIT - len("\n".join(head)) - len("\n\n… 99999 more runs")
    for report in flagged[:RUNS_SHOWN]:
        row = _row(report)
        if len(row) + 1 > room:
            break
        room -= len(row) + 1
        rows.append(row)
    more = len(flagged) - len(rows)
    return "\n".join([*head, *rows, *(["", f"… {more} more run{'' if more == 1 else 's'}"] if more else [])])


def render_markdown(report: Report) -> str:
    """Return a whole report as a Markdown document, for files and chat messages."""
    name = report.run.name or report.run.id
    return f"## {code(name)}\n\n{render_note(report)}\n"


def _finding(finding: Finding) -> list[str]:
    size = f", {escape(words.size(finding.z))}" if not math.isnan(finding.z) else ""
    outcome = f", {finding.outcome}" if finding.outcome is not None else ""
    what = f"{escape(words.title(finding.kind))} in {code(finding.metric)} {words.span(finding)}"
    lines = [f"**{what}**{outcome}{size}", ""]
    if finding.evidence:
        lines += [f"Seen: {'; '.join(escape(text) for text in finding.evidence[:4])}", ""]
    for number, cause in enumerate(finding.causes[:CAUSES_SHOWN], 1):
        lines += _cause(number, cause)
    more = len(finding.causes) - CAUSES_SHOWN
    if more > 0:
        lines.append(f"{CAUSES_SHOWN + 1}. … {more} more candidate{'' if more == 1 else 's'}")
    return [*lines, ""] if finding.causes else lines


def _cause(number: int, cause: Cause) -> list[str]:
    because = f": {'; '.join(escape(text) for text in cause.because)}" if cause.because else ""
    lines = [f"{number}. **{words.cause_name(cause.id)}** ({words.share(cause.weight)}){because}"]
    lines += [f"   - Check: {escape(text)}" for text in cause.verify]
    return lines + [f"   - Try: {escape(text)}" for text in cause.try_]


def _tail(report: Report, *, page_hint: bool) -> list[str]:
    by_design = [
        f"{words.title(f.kind)} {words.span(f)}: {words.explanation(f.explained_by)}"
        for f in words.explained(report)[:FINDINGS_SHOWN]
        if f.explained_by is not None
    ]
    lines = [f"By design: {'; '.join(escape(text) for text in by_design)}."] if by_design else []
    if report.missing:
        lines.append(f"Not logged or not readable: {'; '.join(escape(text) for text in report.missing[:3])}.")
    chance = words.chance(report.p_false_alarm)
    odds = f" A healthy run would get this with a chance of {escape(chance)}." if chance else ""
    lines.append(f"Compared with {words.compared(report.baseline)}.{odds if report.verdict != Level.HEALTHY else ''}")
    if page_hint:
        lines.append("The whole diagnosis: artifact runtriage/panel.html")
    return [line for text in lines for line in (text, "")]


def _row(report: Report) -> str:
    found = words.telling(report)
    name = code(report.run.name or report.run.id, 60, in_table=True)
    if report.run.url is not None and _SAFE_URL.fullmatch(report.run.url):
        name = f"[{name}]({report.run.url})"
    if not found:
        return f"| {report.verdict} | {name} | {escape(report.reason, 120)} | | |"
    worst = found[0]
    more = f", {len(found) - 1} more" if len(found) > 1 else ""
    what = f"{escape(words.title(worst.kind))} in {code(worst.metric, 40, in_table=True)} {words.span(worst)}{more}"
    cause = worst.causes[0] if worst.causes else None
    first = f"{words.cause_name(cause.id)} ({words.share(cause.weight)})" if cause is not None else ""
    check = escape(cause.verify[0], 160) if cause is not None and cause.verify else ""
    return f"| {report.verdict} | {name} | {what} | {first} | {check} |"


def is_safe_url(url: str) -> bool:
    """Tell whether an address can stand inside a link and leave it nowhere."""
    return _SAFE_URL.fullmatch(url) is not None


def _is_plain_address(url: str) -> bool:
    """Tell whether an address is safe inside ``![](…)``: a path of the same server, or http."""
    path = re.fullmatch(r"/(?!/)[A-Za-z0-9._~:/?&=%+,;-]{1,500}", url)
    return path is not None or _SAFE_URL.fullmatch(url) is not None

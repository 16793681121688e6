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
from runtriage.model.texts import text
from runtriage.model.vocab import Lang, Level
from runtriage.outputs.report import words

NOTE_LIMIT = 7000
"""Characters of a block. MLflow holds 8,000 of a note, the user's own text included."""
FINDINGS_SHOWN = 4
CAUSES_SHOWN = 3
RUNS_SHOWN = 25

_SPECIAL = re.compile(r"[\\`*\[\]<>&~|$!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_JOINT = "\u200b"
_SAFE_URL = re.compile(r"https?://[A-Za-z0-9._~:/#?&=%+,;-]{1,500}")


def escape(sentence: str, limit: int = words.SENTENCE_LIMIT) -> str:
    r"""Return a sentence that Markdown shows as it is.

    Examples
    --------
    >>> escape("x [a](javascript:1) <b>")
    'x \\[a\\](javascript:1) \\<b\\>'
    """
    flat = words.one_line(sentence, limit)
    flat = flat.replace("://", f":{_JOINT}//").replace("@", f"@{_JOINT}")
    flat = re.sub(r"(?i)www\.", lambda found: f"{found[0][:3]}{_JOINT}.", flat)
    return _SPECIAL.sub(r"\\\g<0>", flat)


def code(name: str, limit: int = words.NAME_LIMIT, *, in_table: bool = False) -> str:
    r"""Return a name as a code span that nothing in the name can leave.

    Examples
    --------
    >>> code("a`b"), code("a|b", in_table=True)
    ('`` a`b ``', '`a\\|b`')
    """
    flat = words.one_line(name, limit).replace("<!--", "<! --").replace("-->", "-- >")
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
    lang = report.language
    verdict = words.verdict(report.verdict, lang)
    lines = [words.label("note.first", lang, verdict=verdict, reason=escape(report.reason)), ""]
    if panel_url is not None and _is_plain_address(panel_url):
        lines += [f"![{text('note.panel', lang)}]({panel_url})", ""]
    found = words.telling(report)
    parts = ["\n".join(_finding(f, lang)) for f in found]
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
        more = len(found) - shown
        lines += [words.label("word.finding" if more == 1 else "word.findings", lang, count=more), ""]
    return "\n".join([*lines, *tail]).rstrip("\n")


def render_digest(reports: Sequence[Report]) -> str:
    """Return the block for the note of an experiment: which runs to look at, why, and where to begin."""
    lang = words.language(reports)
    tally = words.tally([report.verdict for report in reports], lang)
    flagged = [report for report in words.by_trouble(reports) if words.is_flagged(report)]
    if not flagged:
        return words.label("note.none", lang, runs=len(reports), tally=tally)
    key = "note.one" if len(flagged) == 1 else "note.many"
    head = [words.label(key, lang, count=len(flagged), runs=len(reports), tally=tally)]
    head += ["", text("note.head", lang), "|---|---|---|---|---|"]
    rows: list[str] = []
    room = NOTE_LIMIT - len("\n".join(head)) - len("\n\n… 99999 more runs")
    for report in flagged[:RUNS_SHOWN]:
        row = _row(report, lang)
        if len(row) + 1 > room:
            break
        room -= len(row) + 1
        rows.append(row)
    more = len(flagged) - len(rows)
    rest = words.label("word.other_run" if more == 1 else "word.other_runs", lang, count=more)
    return "\n".join([*head, *rows, *(["", rest] if more else [])])


def render_markdown(report: Report) -> str:
    """Return a whole report as a Markdown document, for files and chat messages."""
    name = report.run.name or report.run.id
    return f"## {code(name)}\n\n{render_note(report)}\n"


def _finding(finding: Finding, lang: Lang) -> list[str]:
    size = ""
    if not math.isnan(finding.z):
        size = f"{text('word.comma', lang)}{escape(words.size(finding.z, lang))}"
    what = words.label(
        "word.what", lang, title=escape(words.named(finding.kind, lang)), metric=code(finding.metric),
        span=words.span(finding, lang),
    )
    lines = [f"**{what}**{words.outcome(finding, lang)}{size}", ""]
    if finding.evidence:
        lines += [words.label("note.seen", lang, sentences=_escaped(finding.evidence[:4], lang)), ""]
    for number, cause in enumerate(finding.causes[:CAUSES_SHOWN], 1):
        lines += _cause(number, cause, lang)
    more = len(finding.causes) - CAUSES_SHOWN
    if more > 0:
        rest = words.label("word.candidate" if more == 1 else "word.candidates", lang, count=more)
        lines.append(f"{CAUSES_SHOWN + 1}. {rest}")
    return [*lines, ""] if finding.causes else lines


def _cause(number: int, cause: Cause, lang: Lang) -> list[str]:
    because = f"{text('word.colon', lang)}{_escaped(cause.because, lang)}" if cause.because else ""
    name, share = words.cause_name(cause.id, lang), words.share(cause.weight)
    lines = [f"{number}. {words.label('note.cause', lang, cause=name, share=share, because=because)}"]
    lines += [f"   - {words.label('note.check', lang, sentence=escape(sentence))}" for sentence in cause.verify]
    return lines + [f"   - {words.label('note.try', lang, sentence=escape(sentence))}" for sentence in cause.try_]


def _tail(report: Report, *, page_hint: bool) -> list[str]:
    lang = report.language
    by_design = [
        words.label(
            "note.explained", lang, title=words.title(f.kind, lang), span=words.span(f, lang),
            why=words.explanation(f.explained_by, lang),
        )
        for f in words.explained(report)[:FINDINGS_SHOWN]
        if f.explained_by is not None
    ]
    lines = [words.label("note.by_design", lang, sentences=_escaped(by_design, lang))] if by_design else []
    if report.missing:
        lines.append(words.label("note.missing", lang, sentences=_escaped(report.missing[:3], lang)))
    chance = words.chance(report.p_false_alarm, lang)
    odds = words.label("note.odds", lang, chance=escape(chance)) if chance and report.verdict != Level.HEALTHY else ""
    lines.append(f"{words.label('note.compared', lang, compared=words.compared(report.baseline, lang))}{odds}")
    if page_hint:
        lines.append(text("note.page", lang))
    return [line for sentence in lines for line in (sentence, "")]


def _escaped(sentences: Sequence[str], lang: Lang) -> str:
    return words.joined((escape(sentence) for sentence in sentences), lang)


def _row(report: Report, lang: Lang) -> str:
    found = words.telling(report)
    verdict = words.verdict(report.verdict, lang)
    name = code(report.run.name or report.run.id, 60, in_table=True)
    if report.run.url is not None and _SAFE_URL.fullmatch(report.run.url):
        name = f"[{name}]({report.run.url})"
    if not found:
        return f"| {verdict} | {name} | {escape(report.reason, 120)} | | |"
    worst = found[0]
    more = words.label("word.more", lang, count=len(found) - 1) if len(found) > 1 else ""
    what = words.label(
        "word.what", lang, title=escape(words.title(worst.kind, lang)), metric=code(worst.metric, 40, in_table=True),
        span=words.span(worst, lang),
    )
    cause = worst.causes[0] if worst.causes else None
    first, check = "", ""
    if cause is not None:
        likely = words.cause_name(cause.id, lang)
        first = words.label("note.likely", lang, cause=likely, share=words.share(cause.weight))
        check = escape(cause.verify[0], 160) if cause.verify else ""
    return f"| {verdict} | {name} | {what}{more} | {first} | {check} |"


def is_safe_url(url: str) -> bool:
    """Tell whether an address can stand inside a link and leave it nowhere."""
    return _SAFE_URL.fullmatch(url) is not None


def _is_plain_address(url: str) -> bool:
    """Tell whether an address is safe inside ``![](…)``: a path of the same server, or http."""
    path = re.fullmatch(r"/(?!/)[A-Za-z0-9._~:/?&=%+,;-]{1,500}", url)
    return path is not None or _SAFE_URL.fullmatch(url) is not None

"""Words around what a report says, in its language, the same in every output; and names from outside made harmless.

Nothing here knows why a curve looks as it does: causes, checks and remedies come with the report, in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from unicodedata import east_asian_width

from runtriage.model.phrase import Phrase
from runtriage.model.report import BaselineUse, Finding, Report
from runtriage.model.texts import say, term, text
from runtriage.model.vocab import LEVEL_ORDER, BaselineKind, CauseId, Explanation, FindingKind, Lang, Level, Severity

NAME_LIMIT = 80
SENTENCE_LIMIT = 400

TROUBLE = (Level.BROKEN, Level.SUSPICIOUS, Level.WATCH, Level.WITHHELD, Level.HEALTHY)
"""Levels in the order in which people want to see runs."""

_SEVERITIES = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)


def one_line(text: str, limit: int = NAME_LIMIT) -> str:
    r"""Return text from outside without control, bidirectional or other unprintable characters, cut to a length.

    Examples
    --------
    >>> one_line("a\x1b[31mb\n\u202ec"), one_line("abcdef", 4)
    ('a?[31mb??c', 'abc…')
    """
    flat = "".join(c if c.isprintable() else "?" for c in text[: limit + 1])
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def title(kind: FindingKind, lang: Lang) -> str:
    """Return a form in words."""
    return term("kind", kind, lang)


def named(kind: FindingKind, lang: Lang) -> str:
    """Return a form in words; beside words that are not English stands the id, which tags and JSON have."""
    return title(kind, lang) if lang is Lang.EN else f"{title(kind, lang)}（{kind}）"


def verdict(level: Level, lang: Lang) -> str:
    """Return a verdict in words; beside words that are not English stands the id, which tags and JSON have."""
    return level.value if lang is Lang.EN else f"{term('level', level, lang)}（{level}）"


def role_name(role: str, lang: Lang) -> str:
    """Return a role in words; the layer of a layer's norm comes from outside and is made harmless."""
    base, _, layer = role.partition("/")
    name = one_line(term("role", base, lang).replace("_", " "))
    return label("word.part", lang, name=name, layer=one_line(layer)) if layer else name


def cause_name(cause: CauseId, lang: Lang) -> str:
    """Return a cause in words."""
    return term("cause", cause, lang)


def explanation(why: Explanation, lang: Lang) -> str:
    """Return in words why a finding is by design."""
    return term("why", why, lang)


def span(finding: Finding, lang: Lang) -> str:
    """Return where a finding is: the first step and the last step that shows it."""
    first = finding.start_step
    if finding.end_step is None:
        return label("word.from", lang, start=first)
    last = finding.end_step - 1
    return label("word.at", lang, start=first) if last <= first else label("word.span", lang, start=first, end=last)


def outcome(finding: Finding, lang: Lang) -> str:
    """Return what became of a finding, with a comma before it; empty if that is not known."""
    return label("word.outcome", lang, outcome=finding.outcome) if finding.outcome is not None else ""


def size(z: float, lang: Lang) -> str:
    """Return a robust z for people."""
    if math.isnan(z):
        return text("word.z_unknown", lang)
    return f"z {z:+.1f}" if math.isfinite(z) else text("word.beyond", lang)


def chance(p: float | None, lang: Lang) -> str:
    """Return a chance of false alarm for people; empty if there is none.

    Examples
    --------
    >>> chance(0.0123, Lang.EN), chance(3e-8, Lang.EN), chance(None, Lang.EN)
    ('1.2 %', 'under 0.001 %', '')
    """
    if p is None or math.isnan(p):
        return ""
    return text("word.under", lang) if p < 1e-5 else f"{100 * p:.2g} %" if p < 0.995 else "100 %"


def share(weight: float) -> str:
    """Return a weight as a percentage."""
    return f"{100 * weight:.0f} %" if math.isfinite(weight) else "?"


def compared(use: BaselineUse, lang: Lang) -> str:
    """Return what a run was compared with."""
    if use.kind == BaselineKind.COHORT:
        return label("word.run" if use.runs == 1 else "word.runs", lang, count=use.runs)
    return text("word.past" if use.kind == BaselineKind.SELF else "word.nothing", lang)


def label(key: str, lang: Lang, /, **values: object) -> str:
    """Return a text of the catalogue with its values, which never act as templates."""
    return say(Phrase(key, values), lang)


def joined(parts: Iterable[str], lang: Lang) -> str:
    """Return sentences in one line, with the semicolon of the language between them."""
    return text("word.semicolon", lang).join(parts)


def width(shown: str) -> int:
    """Return the columns of a text: wide characters, such as Chinese ones, take two.

    Examples
    --------
    >>> width("loss"), width("损失")
    (4, 4)
    """
    return len(shown) if shown.isascii() else sum(1 + (east_asian_width(c) in "WF") for c in shown)


def fit(shown: str, columns: int, lang: Lang) -> str:
    """Return text from outside made harmless, cut to some columns; in English every character counts as one."""
    flat = one_line(shown, columns)
    if lang is Lang.EN or width(flat) <= columns:
        return flat
    while width(flat) >= columns:
        flat = flat[:-1]
    return f"{flat}…"


def language(reports: Iterable[Report]) -> Lang:
    """Return the language of reports that are told together."""
    return next((report.language for report in reports), Lang.EN)


def telling(report: Report) -> list[Finding]:
    """Return the findings that are not explained, worst first, then earliest."""
    found = [f for f in report.findings if f.explained_by is None]
    return sorted(found, key=lambda f: (_SEVERITIES.index(f.severity), f.start_step))


def explained(report: Report) -> list[Finding]:
    """Return the findings that are by design, in order of training."""
    return sorted((f for f in report.findings if f.explained_by is not None), key=lambda f: f.start_step)


def is_flagged(report: Report) -> bool:
    """Tell whether a person should look at the run."""
    return report.verdict in LEVEL_ORDER and report.verdict != Level.HEALTHY


def by_trouble(reports: Iterable[Report]) -> list[Report]:
    """Return reports, worst first, then by name and id."""
    return sorted(reports, key=lambda r: (TROUBLE.index(r.verdict), r.run.name, r.run.id))


def tally(levels: Sequence[Level], lang: Lang) -> str:
    """Return how many runs have which verdict, worst first."""
    counts = [(levels.count(level), level) for level in TROUBLE]
    parts = [label("word.tally", lang, count=n, level=term("level", level, lang)) for n, level in counts if n]
    return text("word.comma", lang).join(parts)

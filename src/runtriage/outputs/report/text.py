"""The diagnosis of one run for a terminal: verdict, curves with the findings marked, causes with their checks. Pure.

Returns plain text, or text with colour sequences of its own; nothing from outside can bring in any.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from runtriage.model.curve import Curve, Triage
from runtriage.model.report import Cause, Finding, Report
from runtriage.model.texts import text
from runtriage.model.vocab import Lang, Level, Role, Severity
from runtriage.outputs.report import words
from runtriage.outputs.report.braille import Dots, Grid, cells
from runtriage.outputs.report.scale import step_text, value_scale, value_text
from runtriage.outputs.report.smooth import smooth_line
from runtriage.outputs.report.wrap import wrap_wide

LEAST_WIDTH = 40
CAUSES_SHOWN = 4

_MARGIN = 9
_ROWS = {Role.LOSS: 11, Role.GRAD_NORM: 7}
_INDENT = "   "
_LEVEL_STYLES = {
    Level.BROKEN: "1;38;5;203", Level.SUSPICIOUS: "1;38;5;214", Level.WATCH: "1;38;5;75", Level.HEALTHY: "1;38;5;77",
    Level.WITHHELD: "1;38;5;245",
}
_SEVERITY_STYLES = {Severity.CRITICAL: "38;5;203", Severity.WARNING: "38;5;214", Severity.INFO: "38;5;245"}
_LINE_STYLES = {Role.LOSS: ("38;5;67", "1;38;5;75"), Role.GRAD_NORM: ("38;5;97", "1;38;5;141")}
_RAW = "·"
"""A cell that only the raw curve reaches, where no colour can tell it from the smoothed one."""
_MUTED = "38;5;245"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """Colours, or none."""

    colour: bool

    def __call__(self, text: str, style: str) -> str:
        """Return text in a style."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and text.strip() else text


def render_text(triage: Triage, *, width: int = 100, colour: bool = False) -> str:
    """Return the diagnosis of a run.

    Parameters
    ----------
    triage
        Report and curves; without curves only words are given.
    width
        Columns to fill.
    colour
        True to use colour sequences. Raw and smoothed curves can only be told apart with them.
    """
    ink, width, report = Ink(colour=colour), max(width, LEAST_WIDTH), triage.report
    lang = report.language
    name = words.one_line(report.run.name or report.run.id)
    lines = [f"{ink(name, '1')}  {ink(words.verdict(report.verdict, lang), _LEVEL_STYLES[report.verdict])}"]
    lines += _wrapped(words.one_line(report.reason, words.SENTENCE_LIMIT), width, "")
    curves = [c for c in triage.curves if c.role in _ROWS and c.step.size > 1]
    for curve in curves:
        lines += ["", *_plot(curve, curves, report, width, ink)]
    lines += ["", *_steps(curves, width, ink, lang)] if curves else [""]
    for number, finding in enumerate(words.telling(report), 1):
        lines += [*_finding(finding, number, width, ink, lang), ""]
    for finding in words.explained(report):
        lines += _wrapped(_by_design(finding, lang), width, "")
    return "\n".join([*lines, *_foot(report, width, ink)]) + "\n"


def _by_design(finding: Finding, lang: Lang) -> str:
    return words.label(
        "text.by_design", lang, title=words.title(finding.kind, lang), metric=words.one_line(finding.metric, 40),
        span=words.span(finding, lang),
        why=words.explanation(finding.explained_by, lang) if finding.explained_by is not None else "",
    )


def _plot(curve: Curve, curves: list[Curve], report: Report, width: int, ink: Ink) -> list[str]:
    rows = _ROWS[Role(curve.role)]
    axis = value_scale(curve.value, None, start=4 * rows - 1, stop=0)
    low, high = _range(curves)
    grid = Grid(columns=width - _MARGIN, rows=rows, low=low, high=high, axis=axis)
    raw = grid.dots(curve.step, curve.value)
    line = smooth_line(curve)
    smooth = grid.dots(curve.step, line) if line is not None else None
    labels = {int(float(axis.at(tick)) // 4): value_text(tick) for tick in axis.ticks(rows // 2)}
    lang = report.language
    title = words.label(
        "word.named", lang, meaning=words.role_name(curve.role, lang), metric=words.one_line(curve.metric, 40),
        scale=text("word.log", lang) if axis.log else "",
    )
    out = [" " * _MARGIN + ink(title, "1")]
    for row, painted in enumerate(_painted(raw, smooth, grid, curve, report, ink)):
        label = labels.get(row, "")
        out.append(f"{ink(label.rjust(_MARGIN - 2), _MUTED)} {ink('┤' if label else '│', _MUTED)}{painted}")
    marks = _marks(curve, curves, report, grid, ink)
    return [*out, *([" " * _MARGIN + marks] if marks else [])]


def _painted(raw: Dots, smooth: Dots | None, grid: Grid, curve: Curve, report: Report, ink: Ink) -> list[str]:
    """Return the rows of a plot, cell by cell in the colour of what is in it; onsets run through empty cells."""
    thin, bold = _LINE_STYLES[Role(curve.role)]
    over = cells(smooth) if smooth is not None else cells(raw)
    both = cells(raw | smooth) if smooth is not None else over
    onsets = {grid.column(f.start_step): _SEVERITY_STYLES[f.severity] for f in reversed(words.telling(report))}
    out = []
    for row, line in enumerate(both):
        parts: list[tuple[str, str]] = []
        for column, cell in enumerate(line):
            blank = cell == " "
            style = onsets.get(column, "") if blank else thin if over[row][column] == " " else bold
            only_raw = over[row][column] == " "
            shown = cell if only_raw else over[row][column]  # where the smooth line runs, nothing may blur it
            if blank:
                shown = "┊" if column in onsets else " "
            elif only_raw and not ink.colour:
                shown = _RAW
            if parts and parts[-1][1] == style:
                parts[-1] = parts[-1][0] + shown, style
            else:
                parts.append((shown, style))
        out.append("".join(ink(piece, style) if style else piece for piece, style in parts).rstrip())
    return out


def _marks(curve: Curve, curves: list[Curve], report: Report, grid: Grid, ink: Ink) -> str:
    """Return the line below a plot that points at the onsets of the findings made in it."""
    drawn = {other.metric for other in curves}
    out, used = "", 0
    own = [
        (grid.column(f.start_step), number, f)
        for number, f in enumerate(words.telling(report), 1)
        if f.metric == curve.metric or (curve is curves[0] and f.metric not in drawn)
    ]
    for column, number, finding in sorted(own, key=lambda item: item[:2]):
        lang = report.language
        mark = words.label(
            "text.mark", lang, number=number, title=words.title(finding.kind, lang), step=finding.start_step
        )
        room = words.width(mark) + 2
        start = min(column, grid.columns - room) if column >= used else -1
        if start < used:
            continue
        mark = f"{mark} ▲" if start < column and start + room == column + 1 else f"▲ {mark}"
        out += " " * (start - used) + ink(mark, _SEVERITY_STYLES[finding.severity])
        used = start + room + 1
        out += " "
    return out.rstrip()


def _range(curves: list[Curve]) -> tuple[float, float]:
    low, high = float(min(c.step[0] for c in curves)), float(max(c.step[-1] for c in curves))
    return low, high if high > low else low + 1


def _steps(curves: list[Curve], width: int, ink: Ink, lang: Lang) -> list[str]:
    low, high = _range(curves)
    first, last = step_text(low), words.label("text.step", lang, step=step_text(high))
    room = max(width - _MARGIN - len(first) - words.width(last), 1)
    return [ink(" " * _MARGIN + first + " " * room + last, _MUTED), ""]


def _finding(finding: Finding, number: int, width: int, ink: Ink, lang: Lang) -> list[str]:
    where = words.label(
        "text.where", lang, metric=words.one_line(finding.metric), span=words.span(finding, lang),
        outcome=words.outcome(finding, lang), size=words.size(finding.z, lang),
    )
    head = f"{number}. {words.named(finding.kind, lang)}"
    lines = [f"{ink(head, '1;' + _SEVERITY_STYLES[finding.severity])}{where}"]
    seen = _padded(text("text.seen", lang), 9)
    for sentence in finding.evidence:
        lines += _wrapped(words.one_line(sentence, words.SENTENCE_LIMIT), width, f"{_INDENT}{seen}")
    for cause in finding.causes[:CAUSES_SHOWN]:
        lines += _cause(cause, width, ink, lang)
    more = len(finding.causes) - CAUSES_SHOWN
    if more <= 0:
        return lines
    key = "word.candidate" if more == 1 else "word.candidates"
    return [*lines, f"{_INDENT}{words.label(key, lang, count=more)}"]


def _cause(cause: Cause, width: int, ink: Ink, lang: Lang) -> list[str]:
    lines = [f"{_INDENT}{words.share(cause.weight):>5}    {ink(words.cause_name(cause.id, lang), '1')}"]
    for key, sentences in (("text.because", cause.because), ("text.check", cause.verify), ("text.try", cause.try_)):
        head = f"{_INDENT}{_padded(text(key, lang), -14)}  "
        for sentence in sentences:
            lines += _wrapped(words.one_line(sentence, words.SENTENCE_LIMIT), width, head)
    return lines


def _foot(report: Report, width: int, ink: Ink) -> list[str]:
    lang = report.language
    chance = words.chance(report.p_false_alarm, lang)
    odds = words.label("text.odds", lang, chance=chance) if chance and words.is_flagged(report) else ""
    use = words.compared(report.baseline, lang)
    lines = _wrapped(words.label("text.compared", lang, compared=use, odds=odds), width, "")
    for sentence in report.missing:
        known = words.one_line(sentence, words.SENTENCE_LIMIT)
        lines += _wrapped(words.label("text.missing", lang, sentence=known), width, "")
    return [ink(line, _MUTED) for line in lines]


def _padded(word: str, columns: int) -> str:
    """Return a word with room behind it, or before it where the columns are negative."""
    room = " " * max(abs(columns) - words.width(word), 0)
    return word + room if columns > 0 else room + word


def _wrapped(sentence: str, width: int, head: str) -> list[str]:
    """Return a sentence in lines with a head on the first and the same room on the others."""
    indent = words.width(head)
    width = max(width, indent + 20)
    if words.width(sentence) == len(sentence):
        lines = textwrap.wrap(sentence, width - indent)
    else:
        lines = wrap_wide(sentence, width - indent)
    return [f"{head if not place else ' ' * indent}{line}" for place, line in enumerate(lines)] or [head.rstrip()]

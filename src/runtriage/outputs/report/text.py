"""The diagnosis of one run for a terminal: verdict, curves with the findings marked, causes with their checks. Pure.

Returns plain text, or text with colour sequences of its own; nothing from outside can bring in any.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from runtriage.model.curve import Curve, Triage
from runtriage.model.report import Cause, Finding, Report
from runtriage.model.vocab import Level, Role, Severity
from runtriage.outputs.report import words
from runtriage.outputs.report.braille import Dots, Grid, cells
from runtriage.outputs.report.scale import step_text, value_scale, value_text
from runtriage.outputs.report.smooth import smooth_line

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
    name = words.one_line(report.run.name or report.run.id)
    lines = [f"{ink(name, '1')}  {ink(report.verdict.value, _LEVEL_STYLES[report.verdict])}"]
    lines += _wrapped(words.one_line(report.reason, words.SENTENCE_LIMIT), width, "")
    curves = [c for c in triage.curves if c.role in _ROWS and c.step.size > 1]
    for curve in curves:
        lines += ["", *_plot(curve, curves, report, width, ink)]
    lines += ["", *_steps(curves, width, ink)] if curves else [""]
    for number, finding in enumerate(words.telling(report), 1):
        lines += [*_finding(finding, number, width, ink), ""]
    for finding in words.explained(report):
        why = words.explanation(finding.explained_by) if finding.explained_by is not None else ""
        metric = words.one_line(finding.metric, 40)
        text = f"By design: {words.title(finding.kind)} in {metric} {words.span(finding)}: {why}."
        lines += _wrapped(text, width, "")
    return "\n".join([*lines, *_foot(report, width, ink)]) + "\n"


def _plot(curve: Curve, curves: list[Curve], report: Report, width: int, ink: Ink) -> list[str]:
    rows = _ROWS[Role(curve.role)]
    axis = value_scale(curve.value, None, start=4 * rows - 1, stop=0)
    low, high = _range(curves)
    grid = Grid(columns=width - _MARGIN, rows=rows, low=low, high=high, axis=axis)
    raw = grid.dots(curve.step, curve.value)
    line = smooth_line(curve)
    smooth = grid.dots(curve.step, line) if line is not None else None
    labels = {int(float(axis.at(tick)) // 4): value_text(tick) for tick in axis.ticks(rows // 2)}
    scale = ", log" if axis.log else ""
    title = f"{words.role_name(curve.role)} ({words.one_line(curve.metric, 40)}{scale})"
    out = [" " * _MARGIN + ink(title, "1")]
    for row, text in enumerate(_painted(raw, smooth, grid, curve, report, ink)):
        label = labels.get(row, "")
        out.append(f"{ink(label.rjust(_MARGIN - 2), _MUTED)} {ink('┤' if label else '│', _MUTED)}{text}")
    marks = _marks(curve, curves, report, grid, ink)
    return [*out, *([" " * _MARGIN + marks] if marks else [])]


def _painted(raw: Dots, smooth: Dots | None, grid: Grid, curve: Curve, report: Report, ink: Ink) -> list[str]:
    """Return the rows of a plot, cell by cell in the colour of what is in it; onsets run through empty cells."""
    thin, bold = _LINE_STYLES[Role(curve.role)]
    over = cells(smooth) if smooth is not None else cells(raw)
    both = cells(raw | smooth) if smooth is not None else over
    onsets = {grid.column(f.start_step): _SEVERITY_STYLES[f.severity] for f in reversed(words.telling(report))}
    out = []
    for row, text in enumerate(both):
        parts: list[tuple[str, str]] = []
        for column, cell in enumerate(text):
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
        text = f"▲ {number} {words.title(finding.kind)}, step {finding.start_step}"
        start = min(column, grid.columns - len(text)) if column >= used else -1
        if start < used:
            continue
        text = f"{text[2:]} ▲" if start < column and start + len(text) == column + 1 else text
        out += " " * (start - used) + ink(text, _SEVERITY_STYLES[finding.severity])
        used = start + len(text) + 1
        out += " "
    return out.rstrip()


def _range(curves: list[Curve]) -> tuple[float, float]:
    low, high = float(min(c.step[0] for c in curves)), float(max(c.step[-1] for c in curves))
    return low, high if high > low else low + 1


def _steps(curves: list[Curve], width: int, ink: Ink) -> list[str]:
    low, high = _range(curves)
    first, last = step_text(low), f"step {step_text(high)}"
    return [ink(" " * _MARGIN + first + " " * max(width - _MARGIN - len(first) - len(last), 1) + last, _MUTED), ""]


def _finding(finding: Finding, number: int, width: int, ink: Ink) -> list[str]:
    outcome = f", {finding.outcome}" if finding.outcome is not None else ""
    where = f"in {words.one_line(finding.metric)} {words.span(finding)}{outcome}, {words.size(finding.z)}"
    head = f"{number}. {words.title(finding.kind)}"
    lines = [f"{ink(head, '1;' + _SEVERITY_STYLES[finding.severity])} {where}"]
    for text in finding.evidence:
        lines += _wrapped(words.one_line(text, words.SENTENCE_LIMIT), width, f"{_INDENT}seen     ")
    for cause in finding.causes[:CAUSES_SHOWN]:
        lines += _cause(cause, width, ink)
    more = len(finding.causes) - CAUSES_SHOWN
    return [*lines, f"{_INDENT}… {more} more candidate{'' if more == 1 else 's'}"] if more > 0 else lines


def _cause(cause: Cause, width: int, ink: Ink) -> list[str]:
    lines = [f"{_INDENT}{words.share(cause.weight):>5}    {ink(words.cause_name(cause.id), '1')}"]
    for label, texts in (("because", cause.because), ("check", cause.verify), ("try", cause.try_)):
        for text in texts:
            lines += _wrapped(words.one_line(text, words.SENTENCE_LIMIT), width, f"{_INDENT}{label.rjust(14)}  ")
    return lines


def _foot(report: Report, width: int, ink: Ink) -> list[str]:
    chance = words.chance(report.p_false_alarm)
    odds = f"; chance in a healthy run {chance}" if chance and words.is_flagged(report) else ""
    lines = _wrapped(f"compared with {words.compared(report.baseline)}{odds}", width, "")
    for text in report.missing:
        lines += _wrapped(f"not known: {words.one_line(text, words.SENTENCE_LIMIT)}", width, "")
    return [ink(line, _MUTED) for line in lines]


def _wrapped(text: str, width: int, head: str) -> list[str]:
    """Return text in lines with a head on the first and the same room on the others."""
    room = " " * len(head)
    lines = textwrap.wrap(text, max(width, len(head) + 20), initial_indent=head, subsequent_indent=room)
    return lines or [head.rstrip()]

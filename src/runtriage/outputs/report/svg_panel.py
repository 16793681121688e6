"""One curve in one box: axes, band, raw and smoothed line, and the findings on it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from runtriage.model.curve import Curve
from runtriage.model.report import Finding
from runtriage.model.texts import text
from runtriage.model.vocab import Lang, Role, Severity
from runtriage.outputs.report import words
from runtriage.outputs.report.scale import Scale, step_text, value_scale, value_text
from runtriage.outputs.report.smooth import smooth_line
from runtriage.outputs.report.trace import area_path, gap_columns, range_path, thin_path, window

TONES = {Severity.CRITICAL: "bad", Severity.WARNING: "warn", Severity.INFO: "info"}
_CHARACTER = 6.8
"""Mean width in pixels of a character of a label."""
_LANE = 17
_LANES = 3
_HEADROOM = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle for a plot, in pixels, and the steps it shows."""

    left: float
    top: float
    width: float
    height: float
    low_step: float
    high_step: float

    @property
    def right(self) -> float:
        """Right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.top + self.height

    @property
    def x(self) -> Scale:
        """The step axis."""
        return Scale(low=self.low_step, high=self.high_step, start=self.left, stop=self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A finding to be drawn: its number in the report, whether it was found in this very curve, and the language."""

    number: int
    finding: Finding
    own: bool
    lang: Lang = Lang.EN


def draw_panel(
    curve: Curve, box: Box, notes: list[Note], clip: str, *, steps_below: bool, lang: Lang = Lang.EN
) -> list[str]:
    """Return the elements of one plot.

    Parameters
    ----------
    curve
        What to draw.
    box
        Where, and which steps.
    notes
        Findings to mark, worst first.
    clip
        Id of the clip path that this plot may define.
    steps_below
        True to label the step axis.
    lang
        Language of the labels.
    """
    part = window(curve.step, box.low_step, box.high_step)
    step, value = curve.step[part], curve.value[part]
    x, y = box.x, value_axis(curve, box, headroom=_HEADROOM if any(note.own for note in notes) else 0)
    tint = curve.role if curve.role in {Role.LOSS, Role.GRAD_NORM, Role.LR} else "other"
    out = [
        f'<clipPath id="{clip}"><rect {_area(box)}/></clipPath>',
        f'<rect class="plot" {_area(box)}/>',
        *_grid(box, x, y, steps_below=steps_below),
        f'<g clip-path="url(#{clip})">',
    ]
    out += [_shade(note, box, x) for note in reversed(notes)]
    if curve.band_step is not None and curve.band_low is not None and curve.band_high is not None:
        path = area_path(curve.band_step, curve.band_low, curve.band_high, x, y)
        out.append(f'<path class="band" d="{path}"/>' if path else "")
    line = smooth_line(curve)
    smooth = line[part] if line is not None else None
    weight = "line" if smooth is None else "raw dense" if step.size > box.width else "raw"
    out.append(f'<path class="{weight} {tint}" d="{range_path(step, value, x, y)}"/>')
    if smooth is not None:
        out.append(f'<path class="line {tint}" d="{thin_path(step, smooth, x, y)}"/>')
    out += [_onset(note, box, x) for note in reversed(notes) if box.low_step <= note.finding.start_step]
    gaps = _not_finite(curve, box, x, notes, lang)
    out += ["</g>", *gaps, *_labels(notes, box, x, drop=8 if gaps else 3)]
    return [line for line in out if line]


def _area(box: Box) -> str:
    return f'x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}"'


def value_axis(curve: Curve, box: Box, headroom: float = 0) -> Scale:
    """Return the value axis of a curve in a box, of the steps shown there; flags find room above the curve."""
    part = window(curve.step, box.low_step, box.high_step)
    band = None
    if curve.band_step is not None and curve.band_low is not None and curve.band_high is not None:
        shown = (curve.band_step >= box.low_step) & (curve.band_step <= box.high_step)
        edges = np.concatenate([curve.band_low[shown], curve.band_high[shown]])
        band = edges if edges.size else None
    zero = curve.role == Role.LR
    return value_scale(curve.value[part], band, start=box.bottom, stop=box.top + headroom, zero=zero)


def _grid(box: Box, x: Scale, y: Scale, *, steps_below: bool) -> list[str]:
    out = []
    for tick in y.ticks(max(2, int(box.height // 32))):
        at = float(y.at(tick))
        out.append(f'<path class="grid" d="M{box.left:g} {at:.1f}H{box.right:g}"/>')
        where = f'x="{box.left - 8:g}" y="{at + 3.5:.1f}"'
        out.append(f'<text class="tick" {where} text-anchor="end">{value_text(tick)}</text>')
    for tick in x.ticks(max(2, int(box.width // 90))):
        at = float(x.at(tick))
        out.append(f'<path class="grid" d="M{at:.1f} {box.top:g}V{box.bottom:g}"/>')
        if steps_below:
            out.append(
                f'<text class="tick" x="{at:.1f}" y="{box.bottom + 16:g}" text-anchor="middle">{step_text(tick)}</text>'
            )
    return out


def _span(note: Note, box: Box, x: Scale) -> tuple[float, float]:
    finding = note.finding
    start = float(x.at(finding.start_step))
    stop = box.right if finding.end_step is None else float(x.at(finding.end_step))
    return start, max(stop, start + 2)


def _tone(note: Note) -> str:
    return "info" if note.finding.explained_by is not None else TONES[note.finding.severity]


def _shade(note: Note, box: Box, x: Scale) -> str:
    start, stop = _span(note, box, x)
    faint = "" if note.own else " faint"
    return (
        f'<rect class="shade {_tone(note)}{faint}" x="{start:.1f}" y="{box.top:g}" width="{stop - start:.1f}" '
        f'height="{box.height:g}"><title>{_title(note)}</title></rect>'
    )


def _onset(note: Note, box: Box, x: Scale) -> str:
    at = float(x.at(note.finding.start_step))
    faint = "" if note.own else " faint"
    return f'<path class="onset {_tone(note)}{faint}" d="M{at:.1f} {box.top:g}V{box.bottom:g}"/>'


def _title(note: Note) -> str:
    finding, lang = note.finding, note.lang
    what = words.label(
        "word.what", lang, title=words.title(finding.kind, lang), metric=words.one_line(finding.metric),
        span=words.span(finding, lang),
    )
    return escape(f"{note.number}. {what}{words.outcome(finding, lang)}")


def _not_finite(curve: Curve, box: Box, x: Scale, notes: list[Note], lang: Lang) -> list[str]:
    """Mark rows that are NaN or infinite along the upper edge: a line cannot show them."""
    part = window(curve.step, box.low_step, box.high_step)
    columns = gap_columns(curve.step[part], curve.value[part], x)
    columns = [at for at in columns if box.left - 1 <= at <= box.right + 1]
    if not columns:
        return []
    ticks = "".join(f"M{at:g} {box.top:g}v7" for at in columns)
    out = [f'<path class="onset bad" d="{ticks}"/>']
    if any(note.own for note in notes):  # a flag stands there
        return out
    at, anchor = (columns[0] + 4, "start") if columns[0] < box.right - 90 else (columns[0] - 4, "end")
    shown = text("picture.not_finite", lang)
    return [*out, f'<text class="nan" x="{at:g}" y="{box.top + 20:g}" text-anchor="{anchor}">{shown}</text>']


def _labels(notes: list[Note], box: Box, x: Scale, *, drop: int) -> list[str]:
    """Put a label at the onset of each finding of this curve, below one another where they would overlap."""
    out, ends = [], [0.0] * _LANES
    for note in sorted((note for note in notes if note.own), key=lambda note: note.finding.start_step):
        finding = note.finding
        if not box.low_step <= finding.start_step <= box.high_step:
            continue
        shown = f"{note.number} {words.title(finding.kind, note.lang)}"
        width = _CHARACTER * words.width(shown) + 12
        at = min(max(float(x.at(finding.start_step)), box.left), box.right - width)
        lane = next((i for i, end in enumerate(ends) if at >= end), None)
        if lane is None:
            continue
        ends[lane] = at + width + 3
        top = box.top + drop + lane * _LANE
        out.append(
            f'<g><title>{_title(note)}</title><rect class="flag {_tone(note)}" x="{at:.1f}" y="{top:g}" rx="3" '
            f'width="{width:.1f}" height="{_LANE - 2}"/><text class="flag-text" x="{at + 6:.1f}" y="{top + 11:g}">'
            f"{escape(shown)}</text></g>"
        )
    return out

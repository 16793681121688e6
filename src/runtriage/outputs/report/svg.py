"""The panel of a run as one picture: loss, gradient norm and learning rate over the same steps, findings marked. Pure.

The picture stands alone: no script, no font, no reference to anything outside. It follows the reader's light or dark
scheme on an opaque ground of its own, since a tracker's page may show it on either. Where a finding is too short to be
seen in the whole run, a second column shows the steps around its onset.
"""

from __future__ import annotations

import hashlib
from html import escape

import numpy as np

from runtriage.model.curve import Curve, Triage
from runtriage.model.report import Finding, Report
from runtriage.model.texts import term, text
from runtriage.model.vocab import BaselineKind, FindingKind, Role
from runtriage.outputs.report import words
from runtriage.outputs.report.svg_panel import Box, Note, draw_panel, value_axis
from runtriage.outputs.report.svg_style import STYLE, in_language

WIDTH = 960
NOTES_SHOWN = 6

_LEFT, _RIGHT, _TITLE, _HEADER, _FOOT = 64, 18, 66, 26, 40
_HEIGHTS: dict[str, int] = {Role.LOSS: 230, Role.GRAD_NORM: 130}
_SMALL = 72
_ZOOM_WIDTH, _ZOOM_GAP = 290, 58
_ZOOM_ROWS = 60
_SHORT_SHARE = 0.1
_SLOW = frozenset({
    FindingKind.DIVERGENCE, FindingKind.PLATEAU, FindingKind.OSCILLATION, FindingKind.VANISHING_GRADIENT,
    FindingKind.CLIP_SATURATION, FindingKind.BASELINE_DRIFT, FindingKind.OVERFIT, FindingKind.LAYER_IMBALANCE,
})
_ZOOM_SHARE = 0.25
"""Part of the run that a zoom may at most show; a longer finding is seen well enough without."""


def render_svg(triage: Triage, *, standalone: bool = True) -> str:
    """Return the panel of a run.

    Parameters
    ----------
    triage
        Report and curves. Without curves, the picture holds the verdict only.
    standalone
        False leaves out the title line and the style sheet, for a page that has :data:`~.svg_style.STYLE` and says the
        rest itself.

    Notes
    -----
    O(n) in the points of the curves; the size of the result is bounded by the pixels, not by the points.
    """
    report, curves = triage.report, [curve for curve in triage.curves if curve.step.size]
    key = hashlib.sha256(f"{report.run.source}\0{report.run.id}".encode("utf-8", "replace")).hexdigest()[:8]
    top = _TITLE if standalone else 4
    columns = _columns(curves, report)
    body: list[str] = []
    for number, curve in enumerate(curves):
        height = _height(curve, report)
        last = number == len(curves) - 1
        body += _row(curve, columns, top + _HEADER, height, _Context(report, curves, f"rt{key}-{number}"), last=last)
        top += _HEADER + height + 8
    top += _FOOT if curves else 8
    size = f'viewBox="0 0 {WIDTH} {top:g}" width="{WIDTH}" height="{top:g}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rt" {size} role="img" aria-labelledby="rt{key}-t rt{key}-d">',
        f'<title id="rt{key}-t">{escape(_title(report))}</title>',
        f'<desc id="rt{key}-d">{escape(_description(report, curves))}</desc>',
    ]
    if standalone:
        head.append(f"<style>{in_language(STYLE, report.language)}</style>")
        head += [f'<rect class="ground" width="{WIDTH}" height="{top:g}" rx="8"/>']
        head += _heading(report)
    return "\n".join([*head, *body, "</svg>"]) + "\n"


def _height(curve: Curve, report: Report) -> int:
    own = any(finding.metric == curve.metric for finding in report.findings)
    return _HEIGHTS.get(curve.role, _SMALL + 40 if own else _SMALL)


class _Context:
    """What every plot of a picture needs to know."""

    def __init__(self, report: Report, curves: list[Curve], clip: str) -> None:
        self.report, self.curves, self.clip = report, curves, clip

    def notes(self, curve: Curve) -> list[Note]:
        """Return the findings to mark in a curve, numbered as everywhere in the report."""
        drawn = {other.metric for other in self.curves}
        listed = [*words.telling(self.report), *words.explained(self.report)][:NOTES_SHOWN]
        first = curve is self.curves[0]
        return [
            Note(
                number=n, finding=f, own=f.metric == curve.metric or (first and f.metric not in drawn),
                lang=self.report.language,
            )
            for n, f in enumerate(listed, 1)
        ]


def _columns(curves: list[Curve], report: Report) -> list[tuple[float, float, float, float]]:
    """Return (left, width, low step, high step) of the columns of plots: the run, and a zoom where one helps."""
    if not curves:
        return []
    low = float(min(curve.step[0] for curve in curves))
    high = float(max(curve.step[-1] for curve in curves))
    high = high if high > low else low + 1
    whole = WIDTH - _LEFT - _RIGHT
    found = words.telling(report)
    zoom = zoom_window(curves[0], found[0]) if found and _is_abrupt(found[0], high - low) else None
    if zoom is None or zoom[1] - zoom[0] > _ZOOM_SHARE * (high - low):
        return [(_LEFT, whole, low, high)]
    main = whole - _ZOOM_WIDTH - _ZOOM_GAP
    return [(_LEFT, main, low, high), (_LEFT + main + _ZOOM_GAP, _ZOOM_WIDTH, *zoom)]


def _is_abrupt(finding: Finding, length: float) -> bool:
    """Tell whether a look at the onset says more than a look at the run."""
    return finding.kind not in _SLOW or (
        finding.end_step is not None and finding.end_step - finding.start_step < _SHORT_SHARE * length
    )


def zoom_window(curve: Curve, finding: Finding) -> tuple[float, float] | None:
    """Return the steps around the onset of a finding that make it visible, or None if there are too few rows."""
    onset = int(np.searchsorted(curve.step, finding.start_step))
    end = finding.end_step if finding.end_step is not None else finding.start_step + 1
    stop = int(np.searchsorted(curve.step, end))
    pad = max(_ZOOM_ROWS, stop - onset)
    first, last = max(onset - pad, 0), min(max(stop, onset) + pad, curve.step.size - 1)
    if last - first < 4:
        return None
    return float(curve.step[first]), float(curve.step[last])


def _row(
    curve: Curve, columns: list[tuple[float, float, float, float]], top: float, height: float, about: _Context, *,
    last: bool,
) -> list[str]:
    out = []
    for place, (left, width, low, high) in enumerate(columns):
        box = Box(left=left, top=top, width=width, height=height, low_step=low, high_step=high)
        zoomed = place > 0
        out += _header(curve, box, about, zoomed=zoomed)
        lang = about.report.language
        out += draw_panel(curve, box, about.notes(curve), f"{about.clip}-{place}", steps_below=last, lang=lang)
        if last:
            x, y = f"{left + width / 2:g}", f"{box.bottom + 33:g}"
            name = text("picture.step", lang)
            out.append(f'<text class="muted" x="{x}" y="{y}" text-anchor="middle">{name}</text>')
    return out


def _header(curve: Curve, box: Box, about: _Context, *, zoomed: bool) -> list[str]:
    y, lang = box.top - 8, about.report.language
    if zoomed:
        shown = words.label("picture.zoom", lang, low=f"{box.low_step:.0f}", high=f"{box.high_step:.0f}")
        return [f'<text class="muted" x="{box.left:g}" y="{y:g}">{shown}</text>'] if curve is about.curves[0] else []
    log = text("picture.log", lang) if value_axis(curve, box).log else ""
    scale = f"{text('word.comma', lang)}{log}" if log else ""
    meaning = words.role_name(curve.role, lang)
    name = words.one_line(curve.metric, 40)
    named = f' <tspan class="muted">{escape(name)}{scale}</tspan>' if name != meaning else ""
    named = named or (f' <tspan class="muted">{log}</tspan>' if log else "")
    out = [f'<text class="axis" x="{box.left:g}" y="{y:g}">{escape(meaning)}{named}</text>']
    return [*out, *_legend(curve, box, about)] if curve is about.curves[0] else out


def _legend(curve: Curve, box: Box, about: _Context) -> list[str]:
    entries, lang = [], about.report.language
    if curve.band_step is not None and curve.band_step.size > 1:
        use = about.report.baseline
        of = words.label("picture.usual_of", lang, runs=use.runs)
        entries.append(("band", of if use.kind == BaselineKind.COHORT else text("picture.usual", lang)))
    if curve.smooth is not None or curve.half_window:
        entries += [("raw", text("picture.raw", lang)), ("line", text("picture.smooth", lang))]
    out, right, y = [], box.right, box.top - 12
    for mark, shown in reversed(entries):
        at = right - 6.1 * words.width(shown)
        out.append(f'<text class="muted" x="{at:.1f}" y="{y + 4:g}">{shown}</text>')
        swatch = f"M{at - 22:.1f} {y:g}h16"
        tint = f" {curve.role}" if mark != "band" else ""
        if mark == "band":
            out.append(f'<rect class="band" x="{at - 22:.1f}" y="{y - 5:g}" width="16" height="10"/>')
        else:
            out.append(f'<path class="{mark}{tint}" d="{swatch}"/>')
        right = at - 34
    return out


def _heading(report: Report) -> list[str]:
    name = words.one_line(report.run.name or report.run.id, 70)
    lang = report.language
    verdict = term("level", report.verdict, lang)
    width = 7.0 * words.width(verdict) + 18
    return [
        f'<rect class="pill {report.verdict}" x="{_LEFT - 46}" y="14" width="{width:g}" height="20" rx="10"/>',
        f'<text class="pill-text" x="{_LEFT - 46 + width / 2:g}" y="28" text-anchor="middle">{verdict}</text>',
        f'<text class="name" x="{_LEFT - 36 + width:g}" y="29">{escape(name)}</text>',
        f'<text class="muted" x="{_LEFT - 46}" y="53">{escape(words.fit(report.reason, 150, lang))}</text>',
    ]


def _title(report: Report) -> str:
    lang = report.language
    name = words.one_line(report.run.name or report.run.id)
    return words.label("picture.title", lang, name=name, verdict=term("level", report.verdict, lang))


def _description(report: Report, curves: list[Curve]) -> str:
    """Say in words what the picture shows, for those who hear it."""
    lang = report.language
    seen = [
        words.label(
            "word.what", lang, title=words.title(f.kind, lang), metric=words.one_line(f.metric),
            span=words.span(f, lang),
        )
        for f in words.telling(report)
    ]
    names = text("word.comma", lang).join(
        words.label(
            "word.named", lang, meaning=words.role_name(curve.role, lang), metric=words.one_line(curve.metric, 40),
            scale="",
        )
        for curve in curves
    )
    what = words.label("picture.curves", lang, names=names) if curves else ""
    marked = text("picture.unmarked", lang)
    if seen:
        marked = words.label("picture.marked", lang, found=words.joined(seen[:NOTES_SHOWN], lang))
    return f"{what}{words.one_line(report.reason, words.SENTENCE_LIMIT)}{marked}"

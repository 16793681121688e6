"""A curve the size of a word, for tables. Pure."""

from __future__ import annotations

from runtriage.model.curve import Triage
from runtriage.model.vocab import Role
from runtriage.outputs.report import words
from runtriage.outputs.report.scale import Scale, value_scale
from runtriage.outputs.report.smooth import smooth_line
from runtriage.outputs.report.trace import range_path, thin_path

WIDTH, HEIGHT = 132, 30
_PAD = 2


def render_spark(triage: Triage) -> str:
    """Return the loss of a run as a small picture with the worst finding's onset; empty if no loss is at hand.

    Parameters
    ----------
    triage
        Report and curves.
    """
    curve = next((c for c in triage.curves if c.role == Role.LOSS and c.step.size > 1), None)
    if curve is None:
        return ""
    x = Scale(low=float(curve.step[0]), high=float(curve.step[-1]), start=_PAD, stop=WIDTH - _PAD)
    smooth = smooth_line(curve)
    shown = smooth if smooth is not None else curve.value
    y = value_scale(curve.value, None, start=HEIGHT - _PAD, stop=_PAD)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    out = [f'<svg class="rt spark" {size} aria-hidden="true">']
    found = words.telling(triage.report)
    if found:
        tone = "bad" if found[0].severity == "critical" else "warn"
        at = float(x.at(found[0].start_step))
        stop = WIDTH - _PAD if found[0].end_step is None else max(float(x.at(found[0].end_step)), at + 2)
        out.append(f'<rect class="shade {tone}" x="{at:.1f}" y="0" width="{stop - at:.1f}" height="{HEIGHT}"/>')
        out.append(f'<path class="onset {tone}" d="M{at:.1f} 0V{HEIGHT}"/>')
    if smooth is not None:
        out.append(f'<path class="raw dense loss" d="{range_path(curve.step, curve.value, x, y)}"/>')
    out.append(f'<path class="line loss" d="{thin_path(curve.step, shown, x, y)}"/></svg>')
    return "".join(out)

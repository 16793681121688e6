"""When rules would have fired, run by run along the steps: as text and as SVG. Names are hostile input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from runtriage.model.vocab import Severity

_ROW, _TOP, _LEFT, _RIGHT, _WIDTH = 18, 34, 190, 20, 900
_COLOUR = {Severity.INFO: "#4a7fb5", Severity.WARNING: "#c77700", Severity.CRITICAL: "#c62828"}
_SIGN = {Severity.INFO: "·", Severity.WARNING: "+", Severity.CRITICAL: "#"}
_NAME = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One firing to be drawn: its step and what it says."""

    step: int
    severity: Severity
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One run to be drawn.

    Attributes
    ----------
    name
        Hostile input.
    first_step, last_step
        Extent of its history.
    onset
        First step of its known fault, or None.
    shots
        Its firings.
    """

    name: str
    first_step: int
    last_step: int
    onset: int | None = None
    shots: tuple[Shot, ...] = ()


def render_lanes_text(lanes: Sequence[Lane], width: int = 100) -> str:
    """Return one line a run: ``+`` warning, ``#`` critical, ``|`` the onset, ``!`` a firing at the onset.

    Parameters
    ----------
    lanes
        Runs in the order in which they are shown; each is drawn along its own steps.
    width
        Columns in all; at least 50 are used.
    """
    room = max(50, width) - _NAME - 3
    lines = []
    for lane in lanes:
        cells = ["·"] * room
        for shot in sorted(lane.shots, key=lambda one: one.severity == Severity.CRITICAL):
            cells[_place(lane, shot.step, room)] = _SIGN[shot.severity]
        if lane.onset is not None:
            at = _place(lane, lane.onset, room)
            cells[at] = "|" if cells[at] == "·" else "!"
        lines.append(f"{_plain(lane.name):<{_NAME}} {''.join(cells)}")
    return "\n".join(lines)


def render_lanes_svg(lanes: Sequence[Lane], title: str) -> str:
    """Return a self-contained drawing, one lane a run; each firing carries its rule and step as a tooltip.

    Parameters
    ----------
    lanes
        Runs in the order in which they are shown.
    title
        Written above; hostile input.
    """
    height = _TOP + _ROW * len(lanes) + 16
    body = "".join(_lane(lane, _TOP + _ROW * i) for i, lane in enumerate(lanes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' font-family="system-ui,sans-serif" font-size="11" role="img" aria-label="{_text(title)}">'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
        f'<text x="8" y="20" font-size="13" font-weight="600" fill="#222">{_text(title)}</text>{body}</svg>\n'
    )


def _lane(lane: Lane, top: int) -> str:
    middle = top + _ROW / 2
    room = _WIDTH - _LEFT - _RIGHT
    parts = [
        f'<text x="{_LEFT - 8}" y="{middle + 4:.0f}" text-anchor="end" fill="#333">{_text(_plain(lane.name))}</text>',
        f'<path d="M{_LEFT} {middle}h{room}" stroke="#ddd"/>',
    ]
    if lane.onset is not None:
        x = _LEFT + _part(lane, lane.onset) * room
        parts.append(
            f'<path d="M{x:.1f} {top + 1}v{_ROW - 2}" stroke="#222" stroke-dasharray="2 2"><title>known onset, step'
            f" {lane.onset}</title></path>"
        )
    for shot in lane.shots:
        x = _LEFT + _part(lane, shot.step) * room
        parts.append(
            f'<circle cx="{x:.1f}" cy="{middle}" r="4" fill="{_COLOUR[shot.severity]}" fill-opacity=".75"><title>'
            f"{_text(shot.rule)}, step {shot.step}</title></circle>"
        )
    return "".join(parts)


def _part(lane: Lane, step: int) -> float:
    return min(1.0, max(0.0, (step - lane.first_step) / max(1, lane.last_step - lane.first_step)))


def _place(lane: Lane, step: int, room: int) -> int:
    return min(room - 1, int(_part(lane, step) * room))


def _plain(name: str) -> str:
    flat = "".join(c if c.isprintable() else "?" for c in name)
    return flat if len(flat) <= _NAME else flat[: _NAME - 1] + "…"


def _text(text: str) -> str:
    """Escape, and take out what no XML document may hold."""
    return escape("".join(c if c.isprintable() else "?" for c in text))

"""The drawing of firings."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from runtriage.model.vocab import Severity
from runtriage.outputs.report.firings import Lane, Shot, render_lanes_svg, render_lanes_text

HOSTILE = "<script>alert(1)</script>\x1b[31m\x00&\"'\u202e"
SHOTS = (
    Shot(step=0, severity=Severity.WARNING, rule="w"), Shot(step=500, severity=Severity.CRITICAL, rule="c"),
    Shot(step=1000, severity=Severity.WARNING, rule=HOSTILE),
)


def test_firings_stand_where_they_happened() -> None:
    """First step, middle with the onset, last step of a hundred columns."""
    lane = Lane(name="run", first_step=0, last_step=1000, onset=500, shots=SHOTS)
    plot = render_lanes_text([lane], 129)[27:]
    assert {i: c for i, c in enumerate(plot) if c != "·"} == {0: "+", 50: "!", 99: "+"}


def test_hostile_names_neither_reach_the_terminal_nor_break_the_drawing() -> None:
    """Control characters are replaced in text; the SVG stays one well-formed tree without foreign elements."""
    lane = Lane(name=HOSTILE, first_step=0, last_step=1000, shots=SHOTS)
    assert render_lanes_text([lane]).isprintable()
    tree = ET.fromstring(render_lanes_svg([lane], HOSTILE))  # noqa: S314  our own drawing
    kinds = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert kinds == {"svg", "rect", "text", "path", "circle", "title"}


def test_every_firing_tells_its_rule_and_step() -> None:
    """Tooltips name what fired."""
    drawing = render_lanes_svg([Lane(name="run", first_step=0, last_step=1000, shots=SHOTS)], "title")
    assert "<title>c, step 500</title>" in drawing

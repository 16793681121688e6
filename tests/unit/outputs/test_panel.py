"""The panel shows what matters, however long or odd the curve."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from runtriage.model.curve import Curve, Triage
from runtriage.model.vocab import Level
from runtriage.outputs.report.html import render_html
from runtriage.outputs.report.scale import Scale, value_scale
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.report.text import render_text
from runtriage.outputs.report.trace import range_path
from tests.golden.made import report, triage


def single(value: NDArray[np.float64], step: NDArray[np.int64] | None = None) -> Triage:
    """Return a triage with one loss curve."""
    step = np.arange(value.size, dtype=np.int64) if step is None else step
    return Triage(report=report(), curves=(Curve(metric="train/loss", role="loss", step=step, value=value),))


def test_a_million_points_make_a_small_picture() -> None:
    """Pixels bound the size, not points."""
    value = 2.0 + np.sin(np.arange(1_000_000) / 1e4) + 0.3 * np.cos(np.arange(1_000_000) * 1.7)
    curve = Curve(metric="train/loss", role="loss", step=np.arange(value.size), value=value, smooth=value)
    norm = Curve(metric="grad_norm", role="grad_norm", step=np.arange(value.size), value=value, smooth=value)
    assert len(render_svg(Triage(report=report(), curves=(curve, norm)))) < 200_000


def test_a_single_wild_row_survives_reduction() -> None:
    """The highest row among many is the highest point of the path."""
    value = np.ones(100_000)
    value[54_321] = 9.0
    x = Scale(low=0.0, high=99_999.0, start=0.0, stop=500.0)
    y = Scale(low=0.0, high=10.0, start=100.0, stop=0.0)
    path = range_path(np.arange(value.size), value, x, y)
    assert re.search(r"v-80", path)


@pytest.mark.parametrize(
    "value",
    [
        np.full(50, np.nan), np.full(50, 3.0), np.zeros(50), np.array([1.0]), np.array([]), np.full(50, 1e308),
        np.linspace(-1e-300, 1e-300, 50), np.array([np.inf, -np.inf, np.nan, 1.0]), np.geomspace(1e-12, 1e12, 3000),
        -np.geomspace(1e-3, 1e300, 3000),
    ],
    ids=["nan", "constant", "zero", "one row", "none", "huge", "tiny", "infinite", "wide", "negative"],
)
def test_odd_curves_are_drawn_all_the_same(value: NDArray[np.float64]) -> None:
    """No curve stops a report, and no coordinate is NaN."""
    made = single(value)
    for text in (render_svg(made), render_html([made], "t")):
        assert not re.search(r' (d|x|y|width|height|viewBox)="[^"]*(nan|inf)', text)
    assert render_text(made)


def test_a_spike_that_is_short_gets_a_zoom() -> None:
    """One row in a long run would not be seen."""
    made = single(np.where(np.arange(20_000) == 60, 9.0, 2.0))
    assert "zoom: steps 0 to 130" in render_svg(made)


def test_rows_that_are_not_finite_are_marked() -> None:
    """NaN has no height, so it is told along the edge."""
    value = np.where(np.arange(120) >= 90, np.nan, 2.0 + np.arange(120) / 60)
    assert 'class="onset bad"' in render_svg(single(value))


def test_losses_that_span_magnitudes_are_drawn_in_ratios() -> None:
    """A wide positive range is logarithmic; one that touches zero cannot be."""
    wide = np.geomspace(0.1, 100, 50)
    assert value_scale(wide, None, start=100, stop=0).log
    assert not value_scale(np.append(wide, 0.0), None, start=100, stop=0).log


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1e-9, 3e-9), (-5.0, 1e6), (2.0, 2.0001)])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_lie_on_the_axis(low: float, high: float, log: bool) -> None:  # noqa: FBT001
    """Some ticks, not too many, rising, all between the ends."""
    if log and low <= 0:
        low = 1e-3
    ticks = Scale(low=low, high=high, start=0, stop=1, log=log).ticks(6)
    assert 1 <= len(ticks) <= 9
    assert ticks == sorted(ticks)
    assert all(low - 1e-9 * abs(high) <= tick <= high + 1e-9 * abs(high) for tick in ticks)


def test_a_page_of_many_runs_has_filters_and_folds_the_healthy() -> None:
    """Flagged runs are open, healthy ones folded, and each verdict has its chip."""
    page = render_html([triage(), triage(Level.HEALTHY, name="fine", run_id="r2")], "files:runs")
    assert page.count('type="radio"') == 3
    assert re.search(r'<section class="card run one suspicious"', page)
    assert re.search(r'<details class="card run one healthy" id="run-1">', page)


def test_a_page_forbids_itself_scripts_and_connections() -> None:
    """Whatever slipped through could not run or call home."""
    assert "default-src 'none'" in render_html([triage()], "t")
    assert "<script" not in render_html([triage()], "t")


def test_a_page_without_runs_says_so() -> None:
    """An empty source makes a page, not an error."""
    assert "There are no runs." in render_html([], "files:empty")


def test_ids_of_several_panels_do_not_collide() -> None:
    """Each clip path of a page is defined once."""
    page = render_html([triage(run_id=str(i), name=str(i)) for i in range(4)], "t")
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))

"""Where conditions hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from runtriage.model.history import Track
from runtriage.model.rule import (
    Above,
    Backwards,
    Below,
    Condition,
    Drop,
    Jump,
    Knot,
    NonFinite,
    OutsideBand,
    OverBest,
    ShareAbove,
    Stalled,
    ZScore,
)
from runtriage.rules.replay import episodes
from runtriage.rules.signal import holding, logged, preceding_median, trailing_median, z_score

BAND = OutsideBand(window=1, knots=(Knot(step=0, low=1.0, high=100.0), Knot(step=4, low=1.0, high=1.0e4)))
NAN, INF = float("nan"), float("inf")
WILD = arrays(np.float64, st.integers(0, 60), elements=st.floats(width=64))
CONDITIONS: tuple[Condition, ...] = (
    NonFinite(), Above(value=1.0), Below(value=1.0), BAND, Jump(window=3, factor=2.0), Drop(window=3, factor=2.0),
    OverBest(factor=1.5), ShareAbove(window=3, share=0.5), ZScore(window=5, limit=3.0),
)


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        (NonFinite(), [1, NAN, INF, -INF, 2], [0, 1, 1, 1, 0]),
        (Above(value=2), [1, 3, NAN, 2], [0, 1, 0, 0]),
        (Below(value=2), [1, 3, NAN, 2], [1, 0, 0, 0]),
        (BAND, [99, 101, 999, 1001, 1], [0, 0, 0, 0, 0]),
        (BAND, [101, 99, 1001, 0.5, 9999], [1, 0, 1, 1, 0]),
        (Jump(window=2, factor=3), [1, 1, 3.1, 1, 2.9], [0, 0, 1, 0, 0]),
        (Drop(window=2, factor=4), [8, 8, 1.9, 2, 2], [0, 0, 1, 0, 0]),
        (OverBest(factor=1.5), [4, 2, 2.9, 3.1, NAN], [0, 0, 0, 1, 0]),
        (ShareAbove(window=3, share=0.5), [1, 1, 0, 0, 1], [0, 0, 1, 0, 0]),
        (ZScore(window=3, limit=3), [1, 2, 3, 5.1, 4], [0, 0, 0, 1, 0]),
    ],
)
def test_a_condition_holds_where_it_says(condition: Condition, value: list[float], expected: list[int]) -> None:
    """Each condition on a handful of values, computed by hand."""
    found = holding(condition, np.arange(len(value)), np.array(value, dtype=np.float64))
    assert found.astype(int).tolist() == expected


def test_a_band_says_nothing_outside_its_knots() -> None:
    """Before the first and behind the last knot nothing is out of the band."""
    found = holding(BAND, np.array([-1, 5]), np.array([1e9, 1e9]))
    assert not found.any()


def test_a_stretch_with_an_open_end_is_open() -> None:
    """Where one of two knots has no upper side, nothing between them is too high."""
    band = OutsideBand(window=1, knots=(Knot(step=0, high=1.0), Knot(step=2, low=0.1), Knot(step=4, low=0.1, high=1.0)))
    assert not holding(band, np.array([1, 3]), np.array([50.0, 50.0])).any()


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda c: type(c).__name__)
@given(value=WILD)
def test_no_point_sees_the_future(condition: Condition, value: np.ndarray) -> None:
    """Whatever is logged later, what held for the first half stays as it was."""
    step = np.arange(value.size)
    half = value.size // 2
    with np.errstate(all="ignore"):
        assert (holding(condition, step, value)[:half] == holding(condition, step[:half], value[:half])).all()


SHORT = arrays(np.float64, st.integers(1, 40), elements=st.floats(-9, 9) | st.just(NAN))


@given(value=SHORT, window=st.integers(1, 12))
def test_the_trailing_median_equals_its_plain_twin(value: np.ndarray, window: int) -> None:
    """The windowed sort and a loop over slices agree, NaN left out."""
    def plain(part: np.ndarray) -> float:
        good = part[np.isfinite(part)]
        return float(np.median(good)) if good.size else NAN

    expected = [plain(value[max(0, i - window + 1) : i + 1]) for i in range(value.size)]
    np.testing.assert_allclose(trailing_median(value, window), expected)


def test_what_came_before_does_not_hold_the_point_itself() -> None:
    """A spike is not part of the median, the mean and the deviation it is compared with."""
    value = np.array([1.0, 2.0, 3.0, 1e6])
    assert (preceding_median(value, 3)[3], z_score(value, 3)[3]) == (2.0, 1e6 - 2.0)


def test_a_step_back_is_seen_in_logged_order() -> None:
    """The row whose step is smaller than an earlier one is marked, and those until the old front is reached."""
    track = Track(step=np.array([0, 1, 2, 1, 2, 3]), value=np.zeros(6))
    assert logged(Backwards(), track).holds.astype(int).tolist() == [0, 0, 0, 1, 0, 0]


def test_a_pause_is_marked_at_the_row_that_ended_it() -> None:
    """A pause longer than the limit marks the next row; without a clock there is none."""
    track = Track(step=np.arange(3), value=np.zeros(3), wall=np.array([0.0, 10.0, 100.0]))
    blind = Track(step=np.arange(3), value=np.zeros(3))
    found = [logged(Stalled(seconds=60), t).holds.astype(int).tolist() for t in (track, blind)]
    assert found == [[0, 0, 1], [0, 0, 0]]


def test_an_episode_fires_at_the_last_of_its_first_points() -> None:
    """Two points in a row are needed: the single one is no episode, the long one fires at its second point."""
    holds = np.array([True, False, True, True, True, False, True, True])
    assert episodes(holds, 2) == [(3, 5), (7, 8)]

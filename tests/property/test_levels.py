"""What holds for level shifts whatever the curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from runtriage.analysis.levels import level_shifts
from runtriage.analysis.schedule import phases, schedule_jumps


def _stepped(seed: int = 0, n: int = 1000) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    y = np.random.default_rng(seed).normal(size=n)
    y[600:] += 5
    return np.arange(n), y


@settings(deadline=None, max_examples=150)
@given(hnp.arrays(st.sampled_from([np.float64, np.float32]), st.integers(0, 120), elements=st.floats(width=32)))
def test_no_content_raises(y: NDArray[np.float64]) -> None:
    """NaN, infinities, constants, short and float32 curves give an answer."""
    step = np.arange(y.size)
    assert all(0 <= s.index < y.size for s in level_shifts(step, y).shifts)
    assert (schedule_jumps(step, y) < y.size).all()
    assert len(phases(step, y)) <= 3


@pytest.mark.parametrize("scale", [1e300, 1e-300, -1e300])
def test_extreme_values_do_not_raise(scale: float) -> None:
    """Squares would overflow; nothing does."""
    step, y = _stepped()
    with np.errstate(all="raise", under="ignore"):
        assert len(level_shifts(step, y * scale).shifts) == 1


@settings(deadline=None, max_examples=20)
@given(st.floats(0.01, 100), st.integers(-10_000, 10_000))
def test_scale_and_axis_shift_change_nothing(scale: float, offset: int) -> None:
    """A positive factor and another first step leave the place where it was."""
    step, y = _stepped()
    assert [s.index for s in level_shifts(step + offset, y * scale).shifts] == [
        s.index for s in level_shifts(step, y).shifts
    ]


def test_order_of_rows_does_not_matter() -> None:
    """The index returned points into the shuffled arrays."""
    step, y = _stepped()
    order = np.random.default_rng(1).permutation(step.size)
    found = level_shifts(step[order], y[order]).shifts
    assert [s.step for s in found] == [s.step for s in level_shifts(step, y).shifts]
    assert [step[order][s.index] for s in found] == [s.step for s in found]


def test_inputs_are_not_changed() -> None:
    """Read-only arrays are enough."""
    step, y = _stepped()
    step.setflags(write=False)
    y.setflags(write=False)
    assert len(level_shifts(step, y).shifts) == 1

"""The line for the eye is a running median, and only what is drawn pays for it."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.model.curve import Curve
from runtriage.outputs.report.smooth import smooth_line


def curve(value: np.ndarray, half_window: int) -> Curve:
    """Return a loss curve."""
    return Curve(metric="loss", role="loss", step=np.arange(value.size), value=value, half_window=half_window)


def test_a_curve_without_a_window_has_no_line() -> None:
    """A learning rate is drawn as it is."""
    assert smooth_line(curve(np.arange(10.0), 0)) is None


@pytest.mark.parametrize("half", [1, 3, 7])
def test_a_narrow_line_is_the_running_median(half: int) -> None:
    """Below two rows between medians every row has its own, mirrored at the ends."""
    value = np.random.default_rng(half).normal(size=80)
    mirrored = np.pad(value, half, mode="reflect")
    expected = [np.median(mirrored[i : i + 2 * half + 1]) for i in range(value.size)]
    np.testing.assert_array_equal(smooth_line(curve(value, half)), expected)


def test_a_wide_line_keeps_medians_at_every_few_rows() -> None:
    """In between the line is straight."""
    value = np.random.default_rng(0).normal(size=400)
    line = smooth_line(curve(value, 24))
    assert line is not None
    np.testing.assert_array_equal(line[120], np.median(value[96:145]))
    np.testing.assert_allclose(line[120:127], np.linspace(line[120], line[126], 7))

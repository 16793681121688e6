"""Robust primitives against their naive twins."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.robust import running_median, t_to_z
from tests.oracles import naive_segment as naive


@pytest.mark.parametrize(("n", "k"), [(1, 3), (2, 1), (7, 3), (40, 5), (200, 20)])
def test_running_median_equals_the_naive_one(n: int, k: int) -> None:
    """Vectorised windows give the medians of sorted windows."""
    y = np.random.default_rng(n).normal(size=n)
    np.testing.assert_array_equal(running_median(y, k), naive.running_median(y, k))


def test_running_median_is_the_same_on_both_sides_of_the_scipy_switch() -> None:
    """The scipy path used for much work agrees with the numpy path on the inner points."""
    y = np.random.default_rng(0).normal(size=60_000)
    long, short = running_median(y, 50), running_median(y[:20_000], 50)
    np.testing.assert_array_equal(long[:19_900], short[:19_900])


def test_t_to_z_is_within_one_percent_at_three_degrees_of_freedom() -> None:
    """T = 4 with 3 degrees of freedom is z = 2.1972 (exact quantile)."""
    assert float(t_to_z(4.0, 3)) == pytest.approx(2.1972, rel=0.01)

"""Robust primitives against their naive twins."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.robust import binned_median, mad_sd, running_median, runs_of, t_to_z, theil_sen
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


def test_binned_median_equals_the_naive_one() -> None:
    """Bins of any length, empty ones and NaNs included."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=300)
    y[::7] = np.nan
    edges = np.sort(np.r_[0, rng.integers(0, 300, 40), 5, 5, 300])
    np.testing.assert_allclose(binned_median(y, edges), naive.binned_median(y, edges))


def test_mad_sd_estimates_a_normal_standard_deviation() -> None:
    """Within 3 % for a large sample with NaNs."""
    y = 2.5 * np.random.default_rng(2).normal(size=50_000)
    y[::10] = np.nan
    assert float(mad_sd(y)) == pytest.approx(2.5, rel=0.03)


def test_t_to_z_is_within_one_percent_at_three_degrees_of_freedom() -> None:
    """T = 4 with 3 degrees of freedom is z = 2.1972 (exact quantile)."""
    assert float(t_to_z(4.0, 3)) == pytest.approx(2.1972, rel=0.01)


def test_runs_of_gives_half_open_spans() -> None:
    """Two stretches, the second up to the end."""
    starts, stops = runs_of([False, True, True, False, True])
    assert (starts.tolist(), stops.tolist()) == ([1, 4], [3, 5])


def test_theil_sen_ignores_a_fifth_of_outliers() -> None:
    """The line is exact while 20 % of the points are far off."""
    x = np.arange(100.0)
    y = 2 * x + 1
    y[::5] = 1e6
    assert theil_sen(x, y).slope == pytest.approx(2.0)

"""Proposal and test statistic against their naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from runtriage.analysis.segment import LineSums, best_partition, usable_points
from runtriage.analysis.significance import contrast_profile
from tests.oracles import naive_segment as naive


def _curve(seed: int, n: int = 70) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    x, w = np.log(np.arange(n) + 3.0), rng.uniform(0.5, 2, n)
    y = rng.normal(size=n) + np.where(np.arange(n) >= rng.integers(10, 60), rng.uniform(-8, 8), 0) - x
    return x, y, w


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("min_length", [3, 5, 11])
def test_pruned_search_reaches_the_unpruned_optimum(seed: int, min_length: int) -> None:
    """The breaks found cost what the best of all partitions costs."""
    x, y, w = _curve(seed)
    found = best_partition(LineSums(x, y, w), 6.0, min_length).tolist()
    optimum, _ = naive.cheapest_breaks(x, y, w, 6.0, min_length)
    assert naive.total_cost(x, y, w, 6.0, found) == pytest.approx(optimum, rel=1e-9)


def test_contrast_equals_two_fitted_lines() -> None:
    """Prefix sums give the gap between two separately fitted lines, up to the noise unit."""
    x, y, w = _curve(3)
    lines = LineSums(x, y, w)
    t, z = contrast_profile(lines, 8)
    unit = [naive.contrast(x, y, w, int(i), 8) for i in t] / z
    var = np.array([np.add(*(lines.predict(a, b, lines.between(t))[1] for a, b in ((t - 8, t), (t, t + 8))))])[0]
    np.testing.assert_allclose(unit, np.sqrt(var), rtol=1e-6)


def test_usable_points_keep_the_last_of_a_repeated_step() -> None:
    """Order by step, drop NaN, keep the later value."""
    points = usable_points([3, 1, 1, 2], [1.0, 5.0, 7.0, np.nan])
    assert points.index.tolist() == [2, 0]

"""Order statistics against numpy's own, with and without missing entries."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from runtriage.analysis.networks import FEW_PLANES, sort_planes
from runtriage.analysis.order_stats import (
    Array,
    median,
    moving_mean,
    moving_median,
    nan_median,
    shortest_half,
    shortest_width,
    sorted_bins,
)


def holed(seed: int, *shape: int) -> Array:
    """Return normal numbers of which a tenth is missing, and all of one place."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    values[rng.random(shape) < 0.1] = np.nan
    values[..., 0] = np.nan
    return values


def plain_windows(values: Array, half_width: int, of: str) -> Array:
    """Return numpy's nanmedian or nanmean of each window, one at a time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy warns of windows without any value
        parts = [values[max(0, i - half_width) : i + half_width + 1] for i in range(values.size)]
        return np.array([getattr(np, of)(part) for part in parts])


@pytest.mark.parametrize("size", [1, 2, 7, 8, 400, 401, 402])
def test_median_is_numpys(size: int) -> None:
    """The lean median of any length is numpy's."""
    values = np.random.default_rng(size).normal(size=size)
    assert median(values) == pytest.approx(np.median(values), abs=1e-15)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_nan_median_is_numpys(axis: int) -> None:
    """The median without missing entries along any axis is numpy's."""
    values = holed(1, 5, 6, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = np.nanmedian(values, axis=axis)
    np.testing.assert_allclose(nan_median(values, axis), expected, atol=1e-15)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("half_width", [0, 1, 2, 4, 40])
def test_moving_median_is_the_median_of_each_window(half_width: int, *, missing: bool) -> None:
    """Windows cut short at the ends, and windows with missing entries, have the median of what is there."""
    values = holed(2, 30) if missing else np.random.default_rng(2).normal(size=30)
    expected = plain_windows(values, half_width, "nanmedian")
    np.testing.assert_allclose(moving_median(values, half_width), expected, atol=1e-15)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("half_width", [0, 1, 2, 4, 40])
def test_moving_mean_is_the_mean_of_each_window(half_width: int, *, missing: bool) -> None:
    """Windows cut short at the ends, and windows with missing entries, have the mean of what is there."""
    values = holed(3, 30) if missing else np.random.default_rng(3).normal(size=30)
    expected = plain_windows(values, half_width, "nanmean")
    np.testing.assert_allclose(moving_mean(values, half_width), expected, atol=1e-12)


@pytest.mark.parametrize("members", range(2, FEW_PLANES + 1))
def test_network_sorts(members: int) -> None:
    """Every network puts its planes in order at every place."""
    planes = np.random.default_rng(members).normal(size=(members, 200))
    expected = np.sort(planes, axis=0)
    sort_planes(planes)
    np.testing.assert_array_equal(planes, expected)


@pytest.mark.parametrize("members", [1, 2, 3, 9, FEW_PLANES, FEW_PLANES + 1])
def test_shortest_width_is_the_width_of_the_shortest_half(members: int) -> None:
    """The width alone, by whichever way, is the one that comes with the centre."""
    values = holed(4, 3, members, 50)
    np.testing.assert_array_equal(shortest_width(values, 1), shortest_half(values, 1)[1])


def test_shortest_half_stays_with_the_majority() -> None:
    """Three of eight far away on one side do not move the centre."""
    values = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 9.0, 9.1, 9.2])
    assert shortest_half(values, 0)[0] == pytest.approx(0.2)


def test_sorted_bins_sorts_each_bin() -> None:
    """Each row holds its bin in order, with the missing entries behind."""
    value = np.array([3.0, np.nan, 1.0, 5.0, 4.0])
    table = sorted_bins(value, np.array([0, 3, 3, 5]))
    assert table is not None
    np.testing.assert_array_equal(table[0], [[1, 3, np.nan], [np.nan] * 3, [4, 5, np.nan]])


def test_sorted_bins_leaves_a_lopsided_table_alone() -> None:
    """A table of which nearly all would be padding is not laid out."""
    assert sorted_bins(np.zeros(10_000), np.minimum(np.arange(101) + 9_900, 10_000) * (np.arange(101) > 0)) is None

"""The shape of a lasting departure, and where it begins."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.shapes import Array, _errors_beside_drift, best_shape

BINS = 60
MID = np.arange(BINS) * 100.0 + 50.0
CENTRE = np.log(2.0 + 4.0 * (1.0 + MID / 400.0) ** -0.8)


def rises(start: int, *, drift: float = 0.0, noise: float = 0.004, seed: int = 0) -> Array:
    """Return a residual that rises by a tenth from a bin on, beside a drift in proportion to the cohort's level."""
    ramp = np.maximum(0.0, np.arange(BINS) - start) / (BINS - start)
    random = np.random.default_rng(seed).standard_normal(BINS)
    return 0.1 * ramp + drift * (CENTRE - CENTRE.mean()) + noise * random


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("drift", [-0.1, -0.05, 0.0])
def test_a_rise_begins_where_it_does_beside_a_drift(drift: float, seed: int) -> None:
    """A run that gains a little less than its siblings all along rises no earlier for it."""
    shape = best_shape(rises(30, drift=drift, seed=seed), np.full(BINS, 0.02), CENTRE, MID)
    assert shape is not None
    assert (shape.name, abs(shape.bin - 30) <= 6) == ("rise", True)


@pytest.mark.parametrize("size", [0.03, 0.3])
def test_a_step_is_a_step(size: float) -> None:
    """A level that jumps is no rise, and begins at its bin."""
    shape = best_shape(size * (np.arange(BINS) >= 30) + rises(BINS - 1), np.full(BINS, 0.02), CENTRE, MID)
    assert shape is not None
    assert (shape.name, shape.bin) == ("step", 30)


@pytest.mark.parametrize("seed", range(5))
def test_errors_beside_a_drift_are_plain_least_squares(seed: int) -> None:
    """Each place by a regression of its own, with a row more that holds the drift."""
    rng = np.random.default_rng(seed)
    y, weight, spread = rises(20, drift=0.05, seed=seed), rng.uniform(1.0, 9.0, BINS), float(rng.uniform(0.01, 1.0))
    template = np.maximum(0.0, np.arange(BINS)[None, :] - np.arange(1, BINS - 2)[:, None]).astype(np.float64)
    found = _errors_beside_drift(template, y, weight, CENTRE, spread)
    for row, error in zip(template, found, strict=True):
        columns = np.stack([np.ones(BINS), CENTRE - CENTRE.mean(), row], axis=1)
        design = np.vstack([np.sqrt(weight)[:, None] * columns, [0.0, CENTRE.std() / spread, 0.0]])
        wanted = np.append(np.sqrt(weight) * y, 0.0)
        fit, *_ = np.linalg.lstsq(design, wanted, rcond=None)
        if fit[2] < 0:  # a fall is no rise
            fit[:2], *_ = np.linalg.lstsq(design[:, :2], wanted, rcond=None)
            fit[2] = 0.0
        assert error == pytest.approx(float(((wanted - design @ fit) ** 2).sum()), rel=1e-6)

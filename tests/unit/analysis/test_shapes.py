"""The shape of a lasting departure, and where it begins."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.shapes import Array, Templates, best_shape, fit_errors, fit_errors_beside_drift

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


PLACE = np.linspace(0.0, 1.0, BINS) ** 1.3
TEMPLATES = Templates(level=CENTRE - CENTRE.mean(), place=PLACE)


def laid_out(name: str, start: int) -> Array:
    """Return one template that begins at a bin."""
    behind = np.arange(BINS) >= start
    since = PLACE - PLACE[start]
    rows = {"step": 1.0, "stall": CENTRE[start - 1] - CENTRE, "linear": since, "quadratic": since**2}[name]
    return np.where(behind, rows, 0.0)


def squares(design: Array, wanted: Array, factor: tuple[float, float]) -> float:
    """Fit the columns by least squares, the last with a factor between two bounds, and sum the squares of what is left.

    The sum of squares is convex in the factor: where the free fit leaves the bounds, the nearer bound is best.
    """
    fit, *_ = np.linalg.lstsq(design, wanted, rcond=None)
    if not factor[0] <= fit[-1] <= factor[1]:
        bound = float(np.clip(fit[-1], *factor))
        left = wanted - bound * design[:, -1]
        others, *_ = np.linalg.lstsq(design[:, :-1], left, rcond=None)
        return float(((left - design[:, :-1] @ others) ** 2).sum())
    return float(((wanted - design @ fit) ** 2).sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("row", "name", "factor"),
    [(0, "step", (0, np.inf)), (1, "stall", (0.6, 1.1)), (2, "linear", (0, np.inf)), (3, "quadratic", (0, np.inf))],
)
def test_fits_are_plain_least_squares(row: int, name: str, factor: tuple[float, float], seed: int) -> None:
    """Each template at each start by a regression of its own."""
    rng = np.random.default_rng(seed)
    y, weight = rises(20, drift=0.05, seed=seed), rng.uniform(1.0, 90.0, BINS)
    root = np.sqrt(weight)[:, None]
    for start, error in zip(range(1, BINS - 2), fit_errors(TEMPLATES, y, weight)[row], strict=True):
        columns = np.stack([np.ones(BINS), laid_out(name, start)], axis=1)
        wanted = squares(root * columns, root[:, 0] * y, factor)
        assert error == pytest.approx(wanted, rel=1e-6), start


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("row", "name"), [(0, "linear"), (1, "quadratic")])
def test_fits_beside_a_drift_are_plain_least_squares(row: int, name: str, seed: int) -> None:
    """Each start by a regression of its own, with a row more that holds the drift."""
    rng = np.random.default_rng(seed)
    y, weight, spread = rises(20, drift=0.05, seed=seed), rng.uniform(1.0, 9.0, BINS), float(rng.uniform(0.01, 1.0))
    found = fit_errors_beside_drift(TEMPLATES, y, weight, spread)[row]
    for start, error in zip(range(1, BINS - 2), found, strict=True):
        columns = np.stack([np.ones(BINS), CENTRE - CENTRE.mean(), laid_out(name, start)], axis=1)
        design = np.vstack([np.sqrt(weight)[:, None] * columns, [0.0, CENTRE.std() / spread, 0.0]])
        wanted = squares(design, np.append(np.sqrt(weight) * y, 0.0), (0.0, np.inf))
        assert error == pytest.approx(wanted, rel=1e-6), start


def test_a_level_cohort_has_no_gain_to_lose() -> None:
    """Beside a cohort that stands still the gain is nothing but rounding, and is no reason for a fit."""
    shape = best_shape(rises(30), np.full(BINS, 0.02), np.full(BINS, 1.7), MID)
    assert shape is not None
    assert (shape.name, np.isfinite(list(shape.error.values())).all()) == ("rise", True)

"""Kernels over rows agree with the plain loop, on random and on hostile input."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.excursions import _LONE_CAP, _averaged, shared_steps, sharing_at
from runtriage.analysis.paired import _CLIP, Ordered, _correlation
from runtriage.analysis.sketch import Axis, Sketch
from tests.oracles import naive_rows as naive

SEEDS = range(8)


def axis_of(edges: np.ndarray) -> Axis:
    """Return bins with these edges."""
    return Axis(edges=edges, mid=(edges[1:] + edges[:-1]) / 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("missing", [0, 5])
def test_a_level_along_rows_is_interpolated(seed: int, missing: int) -> None:
    """Rows before, between, on and beyond the middles of bins agree, whether or not bins are missing."""
    rng = np.random.default_rng(seed)
    axis = axis_of(np.sort(rng.uniform(0, 100, 21)))
    level = rng.normal(size=20)
    level[rng.choice(20, missing, replace=False)] = np.nan
    step = np.sort(np.concatenate([rng.uniform(-50, 150, 300), axis.mid]))
    sketch = Sketch(run_id="r", rows={"loss": (step, step)})
    expected = naive.along(step.tolist(), axis.mid.tolist(), level.tolist())
    np.testing.assert_allclose(sketch.along("loss", axis, level), expected, rtol=1e-12, atol=1e-12)


def test_one_bin_is_a_constant() -> None:
    """A cohort may have a single bin."""
    step = np.arange(5.0)
    sketch = Sketch(run_id="r", rows={"loss": (step, step)})
    np.testing.assert_array_equal(sketch.along("loss", axis_of(np.array([0.0, 4.0])), np.array([2.5])), np.full(5, 2.5))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [2, 4, 7])
def test_averaged_rows_are_in_units_of_their_own_spread(seed: int, width: int) -> None:
    """Heavy tails, autocorrelation and ties change nothing about the agreement."""
    rng = np.random.default_rng(seed)
    unit = np.round(rng.standard_t(2, size=200).cumsum() * 0.1 + rng.standard_t(2, size=200), 2)
    np.testing.assert_allclose(_averaged(unit, width), naive.averaged(unit.tolist(), width, _LONE_CAP), rtol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_members_that_share_a_step_are_counted(seed: int) -> None:
    """Members without events, and events at the very tolerance, count as the loop counts them."""
    rng = np.random.default_rng(seed)
    events = [np.sort(rng.integers(0, 200, size)) for size in (0, 1, 5, 12, 12)]
    steps = rng.integers(0, 200, 30).astype(float)
    expected = [naive.sharing([e.tolist() for e in events], s, 3.0) for s in steps]
    np.testing.assert_array_equal(sharing_at(events, steps, 3.0), expected)
    assert shared_steps(events, float(steps[0]), 3.0) == expected[0]


def test_nobody_shares_where_there_are_no_members() -> None:
    """A cohort may be empty."""
    assert shared_steps([], 1.0, 1.0) == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("missing", [0, 20])
def test_residuals_are_correlated_at_common_rows(seed: int, missing: int) -> None:
    """The way with and the way without missing rows give the plain correlation."""
    rng = np.random.default_rng(seed)
    step = np.arange(400.0)
    shared = rng.standard_t(2, 400)
    x, y = shared + rng.normal(size=400), shared + rng.normal(size=400)
    x[rng.choice(400, missing, replace=False)] = np.nan
    good = np.isfinite(x)
    expected = naive.correlation(x[good].tolist(), y[good].tolist(), _CLIP)
    assert _correlation(Ordered.of((step, x)), Ordered.of((step, y))) == pytest.approx(expected, rel=1e-9)

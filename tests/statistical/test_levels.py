"""Level shifts of single curves: how often healthy ones show one, and how large a shift must be to be found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from runtriage.analysis.levels import level_shifts
from runtriage.model.vocab import Role
from tests.statistical.null_model import KINDS, LENGTHS, healthy_curves

pytestmark = pytest.mark.statistical

CURVES = 240
FALSE_ANY = 0.025
"""Share of healthy curves with any shift, of any size and sign (measured: 17 of 800)."""

FALSE_UP = 0.005
"""Share with an upward shift of a twentieth or more, which is what a run alone alarms on (measured: 2 of 800)."""

EFFECTS = (0.5, 1.0, 2.0)
"""Shifts in standard deviations of a row, halfway through 2,000 rows."""

POWER = (0.05, 0.85, 0.95)
"""Share of shifts of each size that must be found within 2 % of the run."""


@cache
def _null(seed: int) -> tuple[int, int]:
    rng = np.random.default_rng([seed, 9])
    some = up = 0
    for i in range(CURVES):
        [curves] = healthy_curves(rng, 1, KINDS[i % len(KINDS)], 0.0, int(rng.choice(LENGTHS)))
        y = np.log(curves[Role.LOSS])
        shifts = level_shifts(np.arange(y.size), y).shifts
        some += bool(shifts)
        up += any(s.jump > 0.05 and s.z > 0 for s in shifts)
    return some, up


@pytest.mark.parametrize(("which", "rate"), [(0, FALSE_ANY), (1, FALSE_UP)], ids=["any", "upward"])
def test_healthy_curves_rarely_show_a_shift(which: int, rate: float) -> None:
    """The count stays within the 99.9 % binomial bound of the stated rate."""
    assert _null(1)[which] <= binom.ppf(0.999, CURVES, rate)


@cache
def _power(effect: float) -> float:
    rng = np.random.default_rng([3, int(effect * 10)])
    found = 0
    for _ in range(60):
        y = 3.0 * (1 + np.arange(2000) / 40) ** -0.5 + 0.05 * rng.standard_normal(2000)
        y[1000:] += 0.05 * effect
        found += any(abs(s.index - 1000) <= 40 for s in level_shifts(np.arange(2000), y).shifts)
    return found / 60


@pytest.mark.parametrize(("effect", "floor"), list(zip(EFFECTS, POWER, strict=True)))
def test_shifts_of_a_size_are_found(effect: float, floor: float) -> None:
    """Power has a floor at every declared effect."""
    assert _power(effect) >= floor


def test_power_grows_with_the_shift() -> None:
    """A larger shift is never found less often."""
    powers = [_power(e) for e in EFFECTS]
    assert powers == sorted(powers)

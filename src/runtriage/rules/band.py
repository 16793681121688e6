"""Bands: what healthy runs of one config keep within, from the first step to the last.

Symbols
-------
======  =====================================================================
K       knots, closer together at the start of training
c(k)    centre at a knot: median over runs of the log level around it
d       deviation of a run's level from the interpolated centre
======  =====================================================================

The side of the band at a knot is the most extreme ``d`` of any run in the two stretches that meet there, and a margin:
the spread between runs, with a floor for metrics that siblings share exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.order_stats import moving_mean, nan_median
from runtriage.analysis.sketch import warp
from runtriage.model.rule import Knot, OutsideBand
from runtriage.model.vocab import Role, Severity
from runtriage.rules.recipes import Made, Member, Recipe
from runtriage.rules.signal import Array, log_of, trailing_median

KNOTS = 25
_LARGEST = 690.0
"""Log of the largest values: beyond them the sides of a band are no numbers any more."""

_WIDEST = math.log(1e6)
_LEAST_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """The level of one run along its steps, in log units."""

    step: NDArray[np.int64]
    log: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A metric outside the cohort's band.

    Attributes
    ----------
    floor
        Least margin in log units.
    sides
        ``both`` or ``high``.
    window, for_points
        Points of the median, and how long it must be outside.
    """

    name: str
    about: str
    role: str
    floor: float
    sides: str = "both"
    window: int = 15
    for_points: int = 5
    severity: Severity = Severity.WARNING
    guard: bool = False

    def facts(self, member: Member, after: int) -> Level | None:
        """Return the level of a run."""
        series = member.run.by_role.get(self.role)
        if series is None:
            return None
        late = series.step >= after
        level = trailing_median(log_of(series.value), self.window)[late]
        known = np.isfinite(level)
        if known.sum() < min(_LEAST_ROWS, 4 * self.window):
            return None
        return Level(step=series.step[late][known], log=level[known])

    def make(self, facts: Sequence[Level], widen: float) -> Made | str:
        """Lay the band around the runs."""
        at = _knots(facts)
        if at.size < 2:
            return "the runs are too short for a band"
        centre = _centre(facts, at)
        deviations = [level.log - np.interp(level.step, at, centre) for level in facts]
        high, low, mean = (np.array(part) for part in zip(*map(_extremes(at), facts, deviations), strict=True))
        margin = widen * (self.floor + _spread(mean))
        top, bottom = centre + np.nanmax(high, axis=0) + margin, centre + np.nanmin(low, axis=0) - margin
        if float(np.max(np.abs([top, bottom]))) > _LARGEST:
            return "the values are too large or too small for a band"
        if float(np.max(top - bottom)) > _WIDEST:
            return "healthy runs of this config differ by more than six orders of magnitude"
        knots = tuple(
            Knot(
                step=int(step), high=_outward(math.exp(a), up=True),
                low=_outward(math.exp(b), up=False) if self.sides == "both" else None,
            )
            for step, a, b in zip(at, top, bottom, strict=True)
        )
        return Made(condition=OutsideBand(window=self.window, knots=knots), for_points=self.for_points)


def band_recipes() -> tuple[Recipe, ...]:
    """Return the recipes of bands."""
    return (
        Band(
            name="loss-band", about="The loss is above what healthy runs of this config have at this step.",
            role=Role.LOSS, floor=0.01, sides="high",
        ),
        Band(
            name="grad-norm-band", about="The grad norm is outside what healthy runs of this config have at this step.",
            role=Role.GRAD_NORM, floor=0.05, guard=True,
        ),
        Band(
            name="lr-band", about="The learning rate leaves the schedule of this config.", role=Role.LR, floor=0.05,
            window=1, for_points=3,
        ),
        Band(
            name="param-norm-band", about="The parameter norm is outside that of healthy runs at this step.",
            role=Role.PARAM_NORM, floor=0.005,
        ),
        Band(
            name="update-ratio-band", about="Updates are larger or smaller than in healthy runs at this step.",
            role=Role.UPDATE_RATIO, floor=0.05, guard=True,
        ),
        Band(
            name="attention-logit-band", about="Attention logits are larger than in healthy runs at this step.",
            role=Role.ATTENTION_LOGIT, floor=0.1, sides="high",
        ),
        Band(
            name="val-loss-band", about="The validation loss is above that of healthy runs at this step.",
            role=Role.VAL_LOSS, floor=0.01, sides="high", window=1, for_points=2,
        ),
    )


def _knots(facts: Sequence[Level]) -> NDArray[np.int64]:
    """Lay knots from the first step to the last of the median run, finer at the start; fewer for short series."""
    first = float(np.median([level.step[0] for level in facts]))
    last = float(np.median([level.step[-1] for level in facts]))
    rows = int(np.median([level.step.size for level in facts]))
    count = int(np.clip(rows // 8, 3, KNOTS))
    fine = np.linspace(0.0, 1.0, 4097)
    place = np.interp(np.linspace(0.0, 1.0, count), warp(fine), fine)
    return np.unique(np.rint(first + (last - first) * place).astype(np.int64))


def _centre(facts: Sequence[Level], at: NDArray[np.int64]) -> Array:
    middle = (at[1:] + at[:-1]) / 2.0
    edges = np.concatenate([[at[0] - 0.5], middle, [at[-1] + 0.5]])
    table = np.full((len(facts), at.size), np.nan)
    for row, level in zip(table, facts, strict=True):
        place = np.searchsorted(level.step, edges)
        for k in np.flatnonzero(np.diff(place) > 0):
            row[k] = np.median(level.log[place[k] : place[k + 1]])
    centre = nan_median(table, 0)
    known = np.isfinite(centre)
    return np.interp(at, at[known], centre[known])


class _extremes:  # noqa: N801  a function with its knots
    def __init__(self, at: NDArray[np.int64]) -> None:
        self._at = at

    def __call__(self, level: Level, deviation: Array) -> tuple[Array, Array, Array]:
        """Largest, smallest and mean deviation in the stretches around each knot, shape (K,) each; NaN without rows."""
        count = self._at.size
        out = np.full((3, count), np.nan)
        place = np.searchsorted(level.step, self._at)
        place[-1] = np.searchsorted(level.step, self._at[-1], side="right")
        for k in range(count):
            part = deviation[place[max(0, k - 1)] : place[min(count - 1, k + 1)]]
            if part.size:
                out[:, k] = part.max(), part.min(), part.mean()
        if np.isnan(out).any():
            known = np.flatnonzero(np.isfinite(out[0]))
            where = np.arange(count)
            out = np.array([np.interp(where, known, row[known]) if known.size else np.zeros(count) for row in out])
        return out[0], out[1], out[2]


def _spread(mean: Array) -> Array:
    """Return the deviation between runs at each knot, shape (K,), averaged over neighbours: few runs tell it badly."""
    if mean.shape[0] < 2:
        return np.zeros(mean.shape[1])
    return np.sqrt(moving_mean(np.var(mean, axis=0, ddof=1), 2))


def _outward(value: float, *, up: bool) -> float:
    """Round to three digits, away from the runs."""
    if not 1e-300 < value < 1e300:
        return min(max(value, 1e-300), 1e300)
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    whole = math.ceil(value / unit) if up else max(1, math.floor(value / unit))
    return float(f"{whole * unit:.3g}")

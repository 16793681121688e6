"""Which shape a lasting departure of the loss has: a step, a curve that stopped falling, or a rise.

Four templates are fitted at every bin by weighted least squares, each with a free level before it: a constant, what the
cohort went on to gain (a run that stands still falls behind by exactly that), and a linear and a quadratic rise. The
best fit names the shape and its onset at once.

A run that gains less than its siblings, as one of another scale does, drifts upwards against them before anything
happens, and a rise is then placed too early. Its start is therefore taken from fits with such a drift beside the level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from runtriage.analysis.order_stats import Array, median

ShapeName = Literal["step", "stall", "rise"]

_NAMES: tuple[ShapeName, ...] = ("step", "stall", "rise", "rise")
_STALL, _RISES = 1, slice(2, 4)
_STALL_SCALE = (0.6, 1.1)
_LEAST = 6
_BENT = 0.5
"""How far from the start of a line to that of a parabola a rise begins where the parabola fits far better.

They err to either side. Simulated rises by ``p**k`` of the rest of the run, 1 <= k <= 2, to 1.25 to 1.8 times the loss
among siblings that lie up to 10 % apart, begin 4 % of the run after their start by a line, 18 % before it by a
parabola, and on average at it by this mixture.
"""

_NOTHING = 1e-14
"""Part of the weight that a template's square must have: less is what rounding leaves of a template that is level."""

_LEAST_RISE, _RISING_SHARE = 0.04, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The best template.

    Attributes
    ----------
    name
        ``stall`` is a run that no longer follows the cohort down.
    bin
        First bin of the departure.
    error
        Weighted residual sum of squares by name.
    """

    name: ShapeName
    bin: int
    error: dict[str, float]


def best_shape(r: Array, sd: Array, centre: Array, mid: Array) -> Shape | None:
    """Fit the templates to a residual.

    Parameters
    ----------
    r, sd, centre
        Residual from the cohort, its standard deviation and the cohort's level, log units, shape (B,).
    mid
        Steps, shape (B,).

    Returns
    -------
    Shape or None
        None with fewer than six usable bins.
    """
    good = np.isfinite(r) & np.isfinite(sd) & np.isfinite(centre) & (sd > 0)
    where = np.flatnonzero(good)
    if where.size < _LEAST:
        return None
    y, sd, c, t = r[good], sd[good], centre[good], mid[good]
    weight, cap = sd**-2.0, 6.0 * sd
    y = np.maximum(y, -np.maximum(cap, abs(median(y)) * 2 + cap))
    templates = Templates(level=c - c.mean(), place=(t - t[0]) / max(t[-1] - t[0], 1e-300))
    errors = fit_errors(templates, y, weight)
    starts = where[1 + errors.argmin(axis=1)]
    least = errors.min(axis=1)
    best = int(least.argmin())
    bin_ = int(starts[best])
    if _NAMES[best] == "rise":
        errors = fit_errors_beside_drift(templates, y, weight, float(median(sd)))
        straight, bent = where[1 + errors.argmin(axis=1)]
        line, parabola = errors.min(axis=1) ** 2
        share = _BENT * line / max(line + parabola, 1e-300)
        bin_ = round((1.0 - share) * straight + share * bent)
    return Shape(
        name=_NAMES[best], bin=bin_,
        error={name: float(min(e for e, n in zip(least, _NAMES, strict=True) if n == name)) for name in _NAMES},
    )


def climbs(rise: float, final: float) -> bool:
    """Tell whether a loss that falls behind rises itself: by at least a fifth of what it ends above its siblings.

    Parameters
    ----------
    rise, final
        By how much the loss itself, and its residual from the cohort, end above where the departure began; log units.
    """
    return rise >= max(_LEAST_RISE, _RISING_SHARE * final)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Templates:
    """The four templates, each beginning at every bin from the second to the last but two.

    With ``a`` the cohort's level in the bin before the start and ``b`` the place of the start, they are ``1``,
    ``a - level``, ``place - b`` and ``(place - b)**2`` from the start on, and 0 before. All are polynomials, so that
    their sums with anything follow from sums of powers over the bins behind each start: none is ever laid out.

    Attributes
    ----------
    level
        The cohort's, less its mean, shape (n,).
    place
        Place in training, 0 to 1, shape (n,).
    """

    level: Array
    place: Array

    def dot(self, rows: Array) -> Array:
        """Sum each template times ``rows``.

        Parameters
        ----------
        rows
            Shape (n,).

        Returns
        -------
        ndarray of float64
            Template by start, shape (4, n - 3).
        """
        a, b = self.level[:-3], self.place[1:-2]
        one, level, first, second = _behind([rows, self.level * rows, self.place * rows, self.place**2 * rows])
        return np.array([one, a * one - level, first - b * one, second - b * (2.0 * first - b * one)])

    def square(self, weight: Array) -> Array:
        """Sum the square of each template times ``weight``; shapes as in :meth:`dot`."""
        a, b, p = self.level[:-3], self.place[1:-2], self.place
        one, level, squared, *power = _behind([
            weight, self.level * weight, self.level**2 * weight, p * weight, p**2 * weight, p**3 * weight,
            p**4 * weight,
        ])
        first, second, third, fourth = power
        return np.array([
            one, squared - a * (2.0 * level - a * one), second - b * (2.0 * first - b * one),
            fourth - b * (4.0 * third - b * (6.0 * second - b * (4.0 * first - b * one))),
        ])


def _behind(rows: list[Array]) -> Array:
    """Sum rows from each start to the end, shape (m, n - 3)."""
    return np.array(rows)[:, :0:-1].cumsum(axis=1)[:, :1:-1]


def fit_errors(templates: Templates, y: Array, weight: Array) -> Array:
    """Weighted residual sum of squares of each template at each start, with a free level and a factor of at least 0.

    Parameters
    ----------
    templates
        On n bins.
    y, weight
        What they are fitted to, and one over its variance, shape (n,).

    Returns
    -------
    ndarray of float64
        Template by start, shape (4, n - 3). The factor of what the cohort went on to gain is between 0.6 and 1.1.
    """
    total = weight.sum()
    v = y - weight @ y / total
    sx, sxv = templates.dot(weight), templates.dot(weight * v)
    sxx = np.maximum(templates.square(weight) - sx * sx / total, _NOTHING * total)
    factor = np.maximum(sxv / sxx, 0.0)
    factor[_STALL] = np.clip(factor[_STALL], *_STALL_SCALE)
    return np.asarray((v * v) @ weight - factor * (2.0 * sxv - factor * sxx), np.float64)


def fit_errors_beside_drift(templates: Templates, y: Array, weight: Array, spread: float) -> Array:
    """As :func:`fit_errors` for the two rises, with a drift in proportion to the cohort's level beside them.

    The drift is about as large as ``spread`` over the run: a ridge regression, in which one more row says that it is
    zero, give or take that much.

    Parameters
    ----------
    templates, y, weight
        As in :func:`fit_errors`.
    spread
        In log units.

    Returns
    -------
    ndarray of float64
        Rise by start, shape (2, n - 3).
    """
    root, c = np.sqrt(weight), templates.level
    level, drift = np.append(root, 0.0), np.append(root * c, c.std() / max(spread, 1e-300))
    basis = np.linalg.qr(np.stack([level, drift], axis=1))[0]
    v = np.append(root * y, 0.0)
    v -= basis @ (basis.T @ v)
    sxv, *along = (templates.dot(root * row[:-1])[_RISES] for row in (v, *basis.T))  # no template is in the last row
    sxx = np.maximum(templates.square(weight)[_RISES] - sum(x * x for x in along), _NOTHING * weight.sum())
    return np.asarray(v @ v - np.maximum(sxv, 0.0) ** 2 / sxx, np.float64)

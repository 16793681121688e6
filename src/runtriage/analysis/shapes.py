"""Which shape a lasting departure of the loss has: a step, a curve that stopped falling, or a rise.

Four templates are fitted at every bin by weighted least squares, each with a free level before it: a constant, what the
cohort went on to gain (a run that stands still falls behind by exactly that), and a linear and a quadratic rise. The
best fit names the shape and its onset at once.

A run that gains less than its siblings, as one of another scale does, drifts upwards against them before anything
happens, and a rise is then placed too early. It is therefore placed once more with such a drift beside the level, and
begins at the later of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from runtriage.analysis.order_stats import Array, median

ShapeName = Literal["step", "stall", "rise"]

_STALL_SCALE = (0.6, 1.1)
_LEAST = 6
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
    y, weight, c, t = r[good], sd[good] ** -2.0, centre[good], mid[good]
    cap = 6.0 * sd[good]
    y = np.maximum(y, -np.maximum(cap, abs(median(y)) * 2 + cap))
    n = y.size
    starts = np.arange(1, n - 2)
    behind = np.arange(n)[None, :] >= starts[:, None]
    place = (t - t[0]) / max(t[-1] - t[0], 1e-300)
    since = np.where(behind, place[None, :] - place[starts][:, None], 0.0)
    stall = np.where(behind, c[starts - 1][:, None] - c[None, :], 0.0)
    fits: dict[str, tuple[float, int]] = {}
    for name, template, scale in (
        ("step", behind.astype(np.float64), None), ("stall", stall, _STALL_SCALE),
        ("rise", since, None), ("rise", since**2, None),
    ):
        error = _errors(template, y, weight, scale)
        best = int(error.argmin())
        if name not in fits or error[best] < fits[name][0]:
            fits[name] = (float(error[best]), int(where[starts[best]]))
    name = min(fits, key=lambda k: fits[k][0])
    if name == "rise":
        drifts = [_errors_beside_drift(x, y, weight, c, float(median(sd[good]))) for x in (since, since**2)]
        later = int(where[starts[int(min(drifts, key=np.min).argmin())]])
        fits[name] = (fits[name][0], max(fits[name][1], later))
    return Shape(name=name, bin=fits[name][1], error={k: v[0] for k, v in fits.items()})  # type: ignore[arg-type]


def climbs(rise: float, final: float) -> bool:
    """Tell whether a loss that falls behind rises itself: by at least a fifth of what it ends above its siblings.

    Parameters
    ----------
    rise, final
        By how much the loss itself, and its residual from the cohort, end above where the departure began; log units.
    """
    return rise >= max(_LEAST_RISE, _RISING_SHARE * final)


def _errors(template: Array, y: Array, weight: Array, scale: tuple[float, float] | None) -> Array:
    """Weighted residual sum of squares per row of ``template``, with a free level and a factor clipped to ``scale``."""
    total = weight.sum()
    v = y - weight @ y / total
    x = template - (template @ weight / total)[:, None]
    sxx = (x * x) @ weight
    sxv = x @ (v * weight)
    factor = np.maximum(sxv / np.maximum(sxx, 1e-300), 0.0)
    if scale is not None:
        factor = np.clip(factor, *scale)
    # the square multiplied out: no residual is laid out for every place
    return np.asarray((v * v) @ weight - factor * (2.0 * sxv - factor * sxx), np.float64)


def _errors_beside_drift(template: Array, y: Array, weight: Array, centre: Array, spread: float) -> Array:
    """As :func:`_errors`, with a drift in proportion to the cohort's level that is about as large as ``spread``.

    The drift is a ridge regression: one more row says that it is zero, give or take ``spread`` over the run.
    """
    root = np.sqrt(np.append(weight, 1.0))
    level = np.append(np.ones_like(centre), 0.0)
    drift = np.append(centre - centre.mean(), centre.std() / max(spread, 1e-300))
    basis = np.linalg.qr(np.stack([root * level, root * drift], axis=1))[0]
    v, x = root * np.append(y, 0.0), root * np.pad(template, ((0, 0), (0, 1)))
    v, x = v - basis @ (basis.T @ v), x - (x @ basis) @ basis.T
    return np.asarray(v @ v - np.maximum(x @ v, 0.0) ** 2 / np.maximum((x * x).sum(axis=1), 1e-300), np.float64)

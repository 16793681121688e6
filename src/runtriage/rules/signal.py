"""Where along a metric a condition holds. All functions are pure and causal: no point sees the future."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtriage.model.history import Track
from runtriage.model.rule import (
    Above,
    Backwards,
    Below,
    Condition,
    Drop,
    Jump,
    NonFinite,
    OutsideBand,
    OverBest,
    ShareAbove,
    Stalled,
    ZScore,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """A condition along a metric.

    Attributes
    ----------
    step, value
        The points, shape (n,).
    holds
        Whether the condition holds, shape (n,).
    """

    step: NDArray[np.int64]
    value: Array
    holds: Mask


def trailing_median(value: Array, window: int) -> Array:
    """Median of each point and the ``window - 1`` before it, shape (n,); of fewer at the start. NaN is skipped."""
    return _trailing(value, window, _nan_median)


def preceding_median(value: Array, window: int) -> Array:
    """Median of the ``window`` points before each, shape (n,); NaN until there are that many."""
    out = np.full(value.size, np.nan)
    if value.size > window:
        out[window:] = trailing_median(value, window)[window - 1 : -1]
    return out


def log_of(value: Array) -> Array:
    """Logarithm of positive finite values, NaN elsewhere."""
    good = np.isfinite(value) & (value > 0)
    return np.log(value, out=np.full(value.size, np.nan), where=good)


def holding(condition: Condition, step: NDArray[np.int64], value: Array) -> Mask:
    """Tell at which points a condition on values holds.

    Parameters
    ----------
    condition
        Any but :class:`Backwards` and :class:`Stalled`, which are about the rows as logged (see :func:`logged`), and
        the end of a run.
    step, value
        Shape (n,), steps rising.
    """
    out: Any = np.zeros(value.size, dtype=bool)
    with np.errstate(invalid="ignore"):
        match condition:
            case NonFinite():
                out = ~np.isfinite(value)
            case Above():
                out = value > condition.value
            case Below():
                out = value < condition.value
            case OutsideBand():
                out = _outside(condition, step, value)
            case Jump():
                out = log_of(value) - preceding_median(log_of(value), condition.window) > np.log(condition.factor)
            case Drop():
                out = preceding_top(log_of(value), condition.window) - log_of(value) > np.log(condition.factor)
            case OverBest():
                out = over_best(value) > np.log(condition.factor)
            case ShareAbove():
                out = share_on(value, condition.window) > condition.share
            case ZScore():
                out = np.abs(z_score(value, condition.window)) > condition.limit
    return np.asarray(out, dtype=bool)


def logged(condition: Backwards | Stalled, track: Track) -> Signal:
    """Tell at which rows, in logged order, a condition on the log itself holds.

    Parameters
    ----------
    condition
        A stall is marked at the row that ended it; one that lasts needs a clock: see the exporter.
    track
        As logged.
    """
    step = np.asarray(track.step, dtype=np.int64)
    holds = np.zeros(step.size, dtype=bool)
    if isinstance(condition, Backwards):
        holds[1:] = step[1:] < np.maximum.accumulate(step)[:-1]
    elif track.wall is not None and step.size > 1:
        holds[1:] = np.diff(np.asarray(track.wall, dtype=np.float64)) > condition.seconds
    return Signal(step=step, value=np.asarray(track.value, dtype=np.float64), holds=holds)


def preceding_top(value: Array, window: int) -> Array:
    """Largest of the (up to) ``window`` points before each, shape (n,); NaN for the first."""
    out = np.full(value.size, np.nan)
    if value.size > 1:
        out[1:] = _trailing(value, window, _nan_max)[:-1]
    return out


def over_best(value: Array) -> Array:
    """Log of each value over the smallest up to it, shape (n,); NaN for what is not positive and finite."""
    log = log_of(value)
    best = np.minimum.accumulate(np.where(np.isfinite(log), log, np.inf))
    return np.where(np.isfinite(log), log - np.where(np.isfinite(best), best, 0.0), np.nan)


def share_on(value: Array, window: int) -> Array:
    """Share of the last ``window`` points above one half, shape (n,); NaN until there are that many."""
    total = np.concatenate([[0.0], np.cumsum(value > 0.5)])
    out = np.full(value.size, np.nan)
    if value.size >= window:
        out[window - 1 :] = (total[window:] - total[:-window]) / window
    return out


def z_score(value: Array, window: int) -> Array:
    """Deviations of each value from the mean of the ``window`` before it; NaN where that is not defined."""
    out = np.full(value.size, np.nan)
    if value.size <= window:
        return out
    views = np.lib.stride_tricks.sliding_window_view(value, window)[:-1]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        mean, deviation = views.mean(axis=1), views.std(axis=1, ddof=1)
        out[window:] = np.where(deviation > 0, (value[window:] - mean) / deviation, np.nan)
    return out


def band_at(condition: OutsideBand, step: NDArray[np.int64]) -> tuple[Array, Array]:
    """Log of the lower and the upper side of a band at some steps, shape (n,) each; infinite where a side is open."""
    at = np.array([knot.step for knot in condition.knots], dtype=np.float64)
    low = np.array([np.log(k.low) if k.low is not None else -np.inf for k in condition.knots])
    high = np.array([np.log(k.high) if k.high is not None else np.inf for k in condition.knots])
    where = step.astype(np.float64)
    inside = (where >= at[0]) & (where <= at[-1])
    lower, upper = _between(where, at, low, -np.inf), _between(where, at, high, np.inf)
    return np.where(inside, lower, -np.inf), np.where(inside, upper, np.inf)


def _between(where: Array, at: Array, side: Array, opened: float) -> Array:
    """Interpolate; a stretch with an open end is open."""
    known = np.isfinite(side)
    if known.all():
        return np.interp(where, at, side)
    filled = np.interp(where, at, np.where(known, side, 0.0))
    right = np.clip(np.searchsorted(at, where, side="right"), 1, at.size - 1)
    return np.where(known[right] & known[right - 1], filled, opened)


def _outside(condition: OutsideBand, step: NDArray[np.int64], value: Array) -> Mask:
    low, high = band_at(condition, step)
    level = trailing_median(log_of(value), condition.window)
    return (level > high) | (level < low)


def _trailing(value: Array, window: int, of: Callable[[Array], Array]) -> Array:
    if window == 1 or not value.size:
        return value.copy()
    window = min(window, value.size)
    padded = np.concatenate([np.full(window - 1, np.nan), value])
    views = np.lib.stride_tricks.sliding_window_view(padded, window)
    rows = max(1, _CHUNK // window)
    return np.concatenate([of(views[a : a + rows]) for a in range(0, value.size, rows)])


def _nan_max(views: Array) -> Array:
    best = np.where(np.isnan(views), -np.inf, views).max(axis=1)
    return np.where(np.isfinite(best), best, np.nan)


def _nan_median(views: Array) -> Array:
    ordered = np.sort(views, axis=1)
    count = np.isfinite(ordered).sum(axis=1)
    last = np.maximum(count - 1, 0)
    low = np.take_along_axis(ordered, (last // 2)[:, None], axis=1)[:, 0]
    high = np.take_along_axis(ordered, ((last + 1) // 2)[:, None], axis=1)[:, 0]
    return np.where(count > 0, 0.5 * (low + high), np.nan)

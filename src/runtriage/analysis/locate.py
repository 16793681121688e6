"""Where in its rows a change begins that was seen in bins, and whether it is a step or a bend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runtriage.analysis.order_stats import Array, median

_CUT = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """A located change.

    Attributes
    ----------
    index
        First row of the new regime, into the caller's arrays.
    jump
        Difference of the medians behind and before it.
    is_step
        True when a step fits the rows no worse than a bend does.
    """

    index: int
    jump: float
    is_step: bool


def locate(residual: Array, start: int, stop: int) -> Onset:
    """Find the best single change in ``residual[start:stop]``.

    A step (two levels) and a bend (level, then ramp) are fitted by least squares at every place, on values cut at their
    2 % and 98 % points so that lone rows do not decide.

    Parameters
    ----------
    residual
        Shape (n,); missing rows are NaN.
    start, stop
        Half-open row range to search.
    """
    rows = np.arange(start, stop)[np.isfinite(residual[start:stop])]
    if rows.size < 8:
        return Onset(index=int(rows[0]) if rows.size else start, jump=0.0, is_step=False)
    y = residual[rows]
    low, high = _quantiles(y, (_CUT, 1.0 - _CUT))
    y = np.minimum(np.maximum(y, low), high)
    n = y.size
    first, second = np.cumsum(y), np.cumsum(y * y)
    cut = np.arange(3, n - 3)
    left = second[cut - 1] - first[cut - 1] ** 2 / cut
    right = second[-1] - second[cut - 1] - (first[-1] - first[cut - 1]) ** 2 / (n - cut)
    step_error = left + right
    best = int(step_error.argmin())
    at = int(cut[best])
    bend_at, bend_error = _bend(y)
    is_step = bool(step_error[best] <= bend_error)
    place = at if is_step else bend_at
    jump = float(median(y[place:]) - median(y[:place])) if 0 < place < n else 0.0
    return Onset(index=int(rows[place]), jump=jump, is_step=is_step)


def _quantiles(values: Array, places: tuple[float, float]) -> tuple[float, float]:
    """Take two quantiles of values without NaN, by the linear rule."""
    ordered = np.sort(values)
    low, high = (_quantile(ordered, q * (values.size - 1)) for q in places)
    return low, high


def _quantile(ordered: Array, at: float) -> float:
    low = int(at)
    a, b = float(ordered[low]), float(ordered[min(low + 1, ordered.size - 1)])
    return a + (at - low) * (b - a)


def _bend(y: Array) -> tuple[int, float]:
    """Best level-then-ramp fit: its place and residual sum of squares, with closed-form regression on the ramp."""
    n = y.size
    at = np.arange(3, n - 3, max(1, n // 128))
    centred = y - y.mean()
    length = (n - 1 - at).astype(np.float64)
    total = length * (length + 1) / 2
    sxx = total * (2 * length + 1) / 3 - total * total / n
    # sum of the ramp times y: the sums behind each place of the sums behind each row
    sxy = np.cumsum(np.cumsum(centred[::-1]))[::-1][at + 1]
    error = centred @ centred - sxy**2 / np.maximum(sxx, 1e-300)
    best = int(error.argmin())
    return int(at[best]), float(error[best])


def ramp_start(t: Array, y: Array) -> float:
    """Where a slow rise begins: the best level-then-ramp fit over binned values; ``t[0]`` if there is too little."""
    good = np.isfinite(y)
    t, y = t[good], y[good]
    if t.size < 6:
        return float(t[0]) if t.size else 0.0
    at = np.arange(2, t.size - 3)
    ramp = np.maximum(0.0, t[None, :] - t[at][:, None])
    ramp -= ramp.mean(axis=1, keepdims=True)
    centred = y - y.mean()
    error = -((ramp @ centred) ** 2) / np.maximum((ramp * ramp).sum(axis=1), 1e-300)
    return float(t[at[int(error.argmin())]])


def middle(values: Array, start: int, stop: int) -> float:
    """Take the median of the finite values in a range.

    Parameters
    ----------
    values
        Shape (n,).
    start, stop
        Half-open; clipped to the array.

    Returns
    -------
    float
        0.0 where there is no finite value.
    """
    part = values[max(0, start) : max(0, stop)]
    part = part[np.isfinite(part)]
    return median(part) if part.size else 0.0


def episode(z: Array, limit: float, length: int, sign: int) -> tuple[int, int] | None:
    """Find the first stretch of at least ``length`` bins whose z passes ``limit`` on one side.

    Parameters
    ----------
    z
        Per bin, shape (B,); NaN passes nothing.
    limit, length
        Size and least number of bins in a row.
    sign
        1 for upwards, -1 for downwards.

    Returns
    -------
    tuple of int or None
        Half-open bins.
    """
    hot = z * sign > limit
    if np.count_nonzero(hot) < length:
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], hot, [False]]).astype(np.int8)))
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        if b - a >= length:
            return int(a), int(b)
    return None

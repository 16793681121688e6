r"""Propose where a curve breaks: points to blocks, blocks to the best piecewise line.

The proposal is deliberately generous; :mod:`runtriage.analysis.significance` decides what a break is worth and
:mod:`runtriage.analysis.levels` puts the two together.

Conventions: a change point is the *first index of the new regime*; segments are half-open ``[start, stop)``.
Literature that reports the last index of the old segment is one less.

Model. On blocks :math:`i` with axis :math:`x_i`, value :math:`y_i` and inverse variance :math:`w_i`, a segmentation
:math:`0 = c_0 < c_1 < \dots < c_k = N` costs the weighted squared residuals of one straight line per segment plus a
penalty per break. The line costs come from six prefix sums (of w, wy, wy^2, wx, wx^2, wxy), so a segment of any length
costs the same to evaluate. The axis is the logarithm of the step, on which a power law is nearly straight.

References
----------
.. [1] R. Killick, P. Fearnhead, I. Eckley, "Optimal detection of changepoints with a linear computational cost",
       JASA 107 (2012).
.. [2] B. Jackson et al., "An algorithm for optimal partitioning of data on an interval", IEEE Signal Process. Lett.
       12 (2005).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from runtriage.analysis.robust import MAD_TO_SD, Floats, Indices, block_median, running_median

_LARGEST_STEP = 1e300
"""Steps beyond are no steps: their differences overflow."""

_PRUNE_EVERY = 8
"""Positions between two prunings; compacting the arrays costs as much as a few evaluations."""


@dataclass(frozen=True, slots=True, eq=False)
class Usable:
    """The points of a curve that can be analysed, sorted by step, one per step.

    Attributes
    ----------
    index
        Position of each point in the caller's arrays, int64, shape (n,).
    step
        Strictly increasing, shape (n,).
    value
        Natural logarithm if every value is positive, else the value over ``unit``; shape (n,).
    unit
        What one unit of ``value`` is in the caller's units; 1.0 for logarithms.
    log
        Whether ``value`` is logarithmic.
    """

    index: Indices
    step: Floats
    value: Floats
    unit: float
    log: bool


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A curve condensed to at most a few thousand block medians.

    Attributes
    ----------
    size
        Points per block.
    x
        Centre of the block on the logarithmic step axis, shape (N,).
    value
        Winsorised block medians, shape (N,).
    white
        Standard deviation of a block if its noise were white, shape (N,), positive.
    """

    size: int
    x: Floats
    value: Floats
    white: Floats


def usable_points(step: ArrayLike, value: ArrayLike) -> Usable:
    """Keep the finite points, order them by step, and take logarithms where possible.

    Parameters
    ----------
    step, value
        Shape (n,), any real type; neither is changed. Of points with the same step the last one counts.

    Returns
    -------
    Usable

    Raises
    ------
    ValueError
        If the two differ in shape or have more than one dimension.
    """
    at, y = np.asarray(step, np.float64), np.asarray(value, np.float64)
    if at.ndim != 1 or at.shape != y.shape:
        raise ValueError(f"step {at.shape} and value {y.shape} must be one-dimensional and equally long")
    usable = np.isfinite(y)
    usable &= np.abs(at) <= _LARGEST_STEP
    index = np.flatnonzero(usable)
    if index.size < y.size:
        at, y = at[index], y[index]
    gap = np.diff(at)
    if not (gap > 0).all():
        order = np.argsort(at, kind="stable")
        last = np.append(np.diff(at[order]) != 0, True)[: order.size]
        order = order[last]
        index, at, y = index[order], at[order], y[order]
    if y.size and y.min() > 0:
        return Usable(index=index, step=at, value=np.log(y), unit=1.0, log=True)
    # a power of two leaves every digit alone, and squares of what remains cannot overflow
    exponent = int(np.frexp(np.max(np.abs(y), initial=0.0))[1]) - 1
    return Usable(index=index, step=at, value=np.ldexp(y, -exponent), unit=float(np.ldexp(1.0, exponent)), log=False)


def local_scale(values: Floats, *, knots: int = 32, narrowest: int = 64) -> Floats:
    """Estimate the standard deviation of first differences around every point, whatever the trend.

    Differences make trends small and a level shift a single outlier; the median absolute deviation ignores outliers;
    windows of an eighth of the data follow noise that shrinks as training goes on.

    Parameters
    ----------
    values
        Shape (n,), n >= 2, finite.
    knots
        Windows at most; between them the logarithm of the scale is interpolated.
    narrowest
        Points per window at least.

    Returns
    -------
    ndarray of float64
        Shape (n,), units of ``values``, positive: never below 5 % of the median window nor 1e-5 of the range, so that
        a stretch without noise does not take all the weight.
    """
    change = np.diff(values)
    width = min(max(narrowest, values.size // 8), change.size)
    count = min(knots, max(1, change.size // max(width // 2, 1)))
    centre = np.linspace(width / 2, change.size - width / 2, count)
    start = np.maximum(np.round(centre - width / 2).astype(np.int64), 0)
    window = change[start[:, None] + np.arange(width)]
    window -= np.median(window, axis=1, keepdims=True)
    scale = MAD_TO_SD * np.median(np.abs(window), axis=1)
    floor = max(
        0.05 * float(np.median(scale)), 1e-5 * float(np.ptp(values)), 1e-7 * float(np.abs(values).max()), 1e-300
    )
    return np.exp(np.interp(np.arange(values.size), centre + 0.5, np.log(np.maximum(scale, floor))))


def winsorise(values: Floats, scale: Floats, *, half_width: int = 5, limit: float = 3.0) -> Floats:
    """Pull single outliers towards their neighbours; a step, having neighbours on its side, stays.

    Parameters
    ----------
    values, scale
        Shape (n,); the scale as from :func:`local_scale`.
    half_width
        Points on each side in the running median.
    limit
        Robust standard deviations allowed.

    Returns
    -------
    ndarray of float64
        Shape (n,).
    """
    if values.size < 4 * half_width:
        return values
    centre = running_median(values, half_width)
    rest = values - centre
    allowed = limit * scale * max(MAD_TO_SD * float(np.median(np.abs(rest) / scale)), 0.3)
    return centre + np.clip(rest, -allowed, allowed)


def to_blocks(points: Usable, max_blocks: int) -> Blocks:
    """Condense a curve.

    Parameters
    ----------
    points
        At least 30 points.
    max_blocks
        Blocks at most.

    Returns
    -------
    Blocks
    """
    n = points.value.size
    size = max(1, -(-n // max_blocks))
    value = points.value
    # medians of two to four points do not stop a spike: it has to go before
    if 1 < size < 5:
        value = winsorise(value, local_scale(value))
    value = block_median(value, size)
    scale = local_scale(value)
    at = block_median(points.step, size)
    span = max(float(at[-1] - at[0]), 1e-300)
    return Blocks(
        size=size,
        x=np.log((at - at[0]) / span + 1.0 / 200.0),
        value=winsorise(value, scale),
        white=scale / np.sqrt(2.0),
    )


class LineSums:
    """Weighted least-squares lines over any half-open span, from prefix sums.

    Parameters
    ----------
    x, y
        Shape (N,).
    weight
        Inverse variances, shape (N,), positive.

    Attributes
    ----------
    x, y
        The data about their means.
    weight
        As given.
    sums
        Prefix sums of w, wy, wy^2, wx, wx^2, wxy, shape (6, N + 1).
    least_spread
        Sums of squares about the mean of x below this are rounding noise.
    """

    __slots__ = ("least_spread", "sums", "weight", "x", "y")

    def __init__(self, x: Floats, y: Floats, weight: Floats) -> None:
        self.x = x - x.mean()
        self.y = y - y.mean()
        self.weight = weight
        wx, wy = weight * self.x, weight * self.y
        rows = np.array([weight, wy, wy * self.y, wx, wx * self.x, wx * self.y])
        self.sums: Floats = np.concatenate([np.zeros((6, 1)), np.cumsum(rows, axis=1)], axis=1)
        self.least_spread = max(1e-14 * float(self.sums[4, -1]), 1e-300)

    def predict(self, start: NDArray[np.int64], stop: NDArray[np.int64], at: Floats) -> tuple[Floats, Floats]:
        """Return value and variance (for unit weights' variances) of the lines over ``[start, stop)`` at ``at``.

        Parameters
        ----------
        start, stop
            Spans of at least one block, broadcastable integer arrays.
        at
            Places on the centred axis.

        Returns
        -------
        value, variance : ndarray of float64
        """
        total = self.sums[:, stop] - self.sums[:, start]
        mean_y, mean_x = total[1] / total[0], total[3] / total[0]
        spread = np.maximum(total[4] - total[3] * mean_x, self.least_spread)
        arm = at - mean_x
        value = mean_y + (total[5] - total[3] * mean_y) / spread * arm
        return value, 1.0 / total[0] + arm**2 / spread

    def slope(self, start: int, stop: int) -> float:
        """Return the slope over ``[start, stop)``."""
        total = self.sums[:, stop] - self.sums[:, start]
        spread = max(float(total[4] - total[3] * total[3] / total[0]), self.least_spread)
        return float(total[5] - total[3] * total[1] / total[0]) / spread

    def between(self, t: NDArray[np.int64]) -> Floats:
        """Return the place half way from block ``t - 1`` to block ``t``."""
        middle: Floats = (self.x[np.minimum(t, self.x.size - 1)] + self.x[t - 1]) / 2
        return middle


def best_partition(lines: LineSums, penalty: float, min_length: int) -> Indices:
    """Find the breaks of the cheapest piecewise line: exact, with pruning [1]_ of optimal partitioning [2]_.

    Parameters
    ----------
    lines
        The data; weights make its residuals dimensionless.
    penalty
        Price of a break, in squared standard deviations.
    min_length
        Blocks per segment at least, >= 2.

    Returns
    -------
    ndarray of int64
        First block of every segment but the first, increasing; empty when one line is best.

    Notes
    -----
    ``best[t]`` is the cheapest partition of the first ``t`` blocks. A last segment starting at ``s`` can be forgotten
    once it is dearer at ``t`` than a break at ``t`` would be, but only for ends ``>= t + min_length``, where that break
    is allowed; so a start condemned at one pruning goes at the next one. Memory and time per position are those of
    the surviving starts: few when there are breaks or noise, all of them (quadratic in all) at worst.
    """
    sums, n = lines.sums, lines.x.size
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    came_from = np.zeros(n + 1, np.int64)
    start_sums, start_best = np.empty((6, n + 1)), np.empty(n + 1)
    start = np.zeros(n + 1, np.int64)
    start_sums[:, 0], start_best[0] = sums[:, 0], -penalty
    alive, condemned = 1, np.empty(0, np.bool_)
    every = max(_PRUNE_EVERY, min_length)
    for t in range(min_length, n + 1):
        fresh = t - min_length
        if fresh >= min_length:
            start_sums[:, alive], start_best[alive], start[alive] = sums[:, fresh], best[fresh], fresh
            alive += 1
        cost = start_best[:alive] + _line_costs(sums[:, t, None] - start_sums[:, :alive], lines.least_spread)
        winner = int(cost.argmin())
        best[t], came_from[t] = cost[winner] + penalty, start[winner]
        if t % every == 0:
            dear = cost > best[t]
            keep = np.flatnonzero(~condemned) if condemned.any() else np.arange(condemned.size)
            keep = np.concatenate([keep, np.arange(condemned.size, alive)])
            if keep.size < alive:
                start_sums[:, : keep.size] = start_sums[:, keep]
                start_best[: keep.size], start[: keep.size] = start_best[keep], start[keep]
                alive = keep.size
            condemned = dear[keep]
    return _walk_back(came_from)


def _line_costs(total: Floats, least_spread: float) -> Floats:
    """Weighted squared residuals of one line per column of span sums."""
    mean_y = total[1] / total[0]
    cost: Floats = total[2] - total[1] * mean_y
    covariance = total[5] - total[3] * mean_y
    spread = total[4] - total[3] * total[3] / total[0]
    cost -= covariance * covariance / np.maximum(spread, least_spread)
    return cost


def _walk_back(came_from: Indices) -> Indices:
    """Read off the breaks on the cheapest path, increasing."""
    breaks: list[int] = []
    t = int(came_from[-1])
    while t > 0:
        breaks.append(t)
        t = int(came_from[t])
    return np.array(breaks[::-1], np.int64)

"""Read noise-free schedules: a learning rate, a weight decay, a batch size.

A schedule is computed, not measured, so no statistics are needed: a step is a relative change that is large in itself
and against the changes around it. (The detector of :mod:`runtriage.analysis.levels` looks for jumps in noise and would
report the ends of ramps here.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from runtriage.analysis.robust import Floats, Indices
from runtriage.model.report import Phase

_LEAST_CHANGE = 0.05
"""Relative change below which nothing is called a step."""

_NEIGHBOURS = 10
_OVER_NEIGHBOURS = 5.0

_FULL = 0.999
"""Share of its peak from which a warm-up is over."""

_DECAYED = 0.99
"""Share of its peak under which a learning rate is decaying."""


def _usable(step: ArrayLike, lr: ArrayLike) -> tuple[Indices, Floats, Floats]:
    """Finite points in step order, of a repeated step the last: index in the caller's arrays, step, value."""
    at, value = np.asarray(step, np.float64), np.asarray(lr, np.float64)
    if at.ndim != 1 or at.shape != value.shape:
        raise ValueError(f"step {at.shape} and lr {value.shape} must be one-dimensional and equally long")
    usable = np.isfinite(at) & np.isfinite(value)
    if usable.all() and (at[1:] > at[:-1]).all():
        return np.arange(at.size), at, value
    index = np.flatnonzero(usable)
    index = index[np.argsort(at[index], kind="stable")]
    if index.size:
        index = index[np.append(np.diff(at[index]) != 0, True)]
    return index, at[index], value[index]


def schedule_jumps(step: ArrayLike, lr: ArrayLike) -> Indices:
    """Find the exact steps of a noise-free schedule.

    Parameters
    ----------
    step, lr
        Shape (n,), any order; points that are not finite are left out.

    Returns
    -------
    ndarray of int64
        First point of each new level in the caller's arrays, in step order. Ramps, bends and curves give none.

    Raises
    ------
    ValueError
        If the two differ in shape or are not one-dimensional.

    Notes
    -----
    A change counts when it exceeds 5 % of the larger neighbour and five times the median change among the ten points
    on either side: a ramp has neighbours of its own size. A change next to an end of the schedule is not judged, nor
    one with fewer than three changes on both sides.
    """
    index, _, value = _usable(step, lr)
    if value.size < 3:
        return np.empty(0, np.int64)
    # halved first, so that values near the largest float do not overflow
    half = value / 2
    largest = np.maximum(np.abs(half[1:]), np.abs(half[:-1]))
    change = np.abs(np.diff(half)) / np.maximum(largest, 1e-300)
    jumps = [int(index[i + 1]) for i in np.flatnonzero(change > _LEAST_CHANGE) if _stands_out(change, int(i))]
    return np.array(jumps, np.int64)


def _stands_out(change: Floats, i: int) -> bool:
    """Whether change ``i`` is far larger than those before it and than those after it."""
    before, after = change[max(0, i - _NEIGHBOURS) : i], change[i + 1 : i + 1 + _NEIGHBOURS]
    if not before.size or not after.size or max(before.size, after.size) < 3:
        return False
    return bool(change[i] > _OVER_NEIGHBOURS * max(np.median(before), np.median(after)))


def phases(step: ArrayLike, lr: ArrayLike) -> tuple[Phase, ...]:
    """Divide a run into ``warmup``, ``main`` and ``decay`` by its learning rate.

    Parameters
    ----------
    step, lr
        Shape (n,), any order; points that are not finite are left out.

    Returns
    -------
    tuple of Phase
        Adjacent half-open spans from the first step to one past the last; phases that did not occur are absent.
        A constant rate is one ``main``; no point, or a rate that is never positive, gives none.

    Raises
    ------
    ValueError
        If the two differ in shape or are not one-dimensional.

    Notes
    -----
    Warm-up lasts until the rate first comes within 0.1 % of the peak, if it started below 99 % of it; decay begins with
    the first point after which the rate stays under 99 % of the peak. The peak is the largest rate of the whole run, so
    a restart belongs to ``main``.
    """
    _, at, value = _usable(step, lr)
    if not value.size or value.max() <= 0:
        return ()
    peak = float(value.max())
    start, stop = int(at[0]), int(at[-1]) + 1
    full = np.flatnonzero(value >= _FULL * peak)
    high = np.flatnonzero(value >= _DECAYED * peak)
    top = start if value[0] >= _DECAYED * peak else int(at[full[0]])
    after = int(high[-1]) + 1
    fall = int(at[after]) if after < at.size else stop
    spans = (("warmup", start, top), ("main", top, fall), ("decay", fall, stop))
    return tuple(Phase(name=name, start_step=a, end_step=b) for name, a, b in spans if b > a)

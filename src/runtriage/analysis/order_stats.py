"""Order statistics along an axis of an array with missing entries, without a Python loop.

numpy's own ``nanmedian`` falls back to a loop over slices; a cohort is judged with some hundred of these calls, so they
are written with one sort each. Missing entries are NaN and sort last.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from runtriage.analysis.networks import FEW_PLANES, sort_planes

Array = NDArray[np.float64]

_FEW_PLACES = 2
"""Half width up to which windows are summed place by place; a running sum is slower, one element waits for the last."""

_PADDED, _PADDED_FREE = 3, 4096
"""Entries of a padded table for each row, and for free, up to which one is laid out."""

_BEHIND = 1e300
"""Stands for a missing entry where all are sorted: behind the others, and without a warning when it is subtracted."""

_PARTITION_FROM = 400
"""Length from which a partition is faster than a whole sort."""


def median(values: ArrayLike) -> float:
    """Median of a one-dimensional array without NaN; NaN when it is empty.

    numpy's own takes some 40 microseconds before it looks at the first value, which some hundred calls per run make the
    better part of a triage.
    """
    ordered = np.array(values).ravel()
    n = ordered.size
    if not n:
        return float("nan")
    if n > _PARTITION_FROM:
        ordered.partition(n // 2)
        high = ordered[n // 2]
        return float(high if n % 2 else 0.5 * (ordered[: n // 2].max() + high))
    ordered.sort()
    return float(ordered[n // 2] if n % 2 else 0.5 * (ordered[n // 2 - 1] + ordered[n // 2]))


def nan_median(values: Array, axis: int) -> Array:
    """Median of the finite entries along ``axis``; NaN where there is none.

    Parameters
    ----------
    values
        Any shape; NaN is missing, infinities are not expected.
    axis
        The axis that disappears.
    """
    ordered = _sorted_last(values, axis)
    m = ordered.shape[-1]
    if m and np.isfinite(ordered[..., -1]).all():  # nothing is missing: the same places in every row
        low = ordered[..., (m - 1) // 2]
        return np.array(low) if m % 2 else np.asarray(low + 0.5 * (ordered[..., m // 2] - low))
    return sorted_quantile(ordered, _finite_count(ordered), 0.5)


def _sorted_last(values: Array, axis: int) -> Array:
    """Copy with ``axis`` moved to the end and sorted along it."""
    last = values.ndim - 1
    if axis in {-1, last}:
        ordered = np.array(values, order="C")
    else:
        axis %= values.ndim
        ordered = np.array(values.transpose(*(i for i in range(last + 1) if i != axis), axis), order="C")
    ordered.sort(axis=-1)
    return ordered


def _finite_count(ordered: Array) -> NDArray[np.intp]:
    """Finite entries per sorted row; the ends of the rows tell whether any is missing at all."""
    if not ordered.shape[-1] or np.isfinite(ordered[..., -1]).all():
        return np.full(ordered.shape[:-1], ordered.shape[-1], dtype=np.intp)
    return np.asarray(np.isfinite(ordered).sum(axis=-1))


def nan_mean(values: Array) -> Array:
    """Mean of the finite entries along the last axis; NaN where there is none."""
    good = np.isfinite(values)
    count = good.sum(axis=-1)
    return np.where(count > 0, np.where(good, values, 0.0).sum(axis=-1) / np.maximum(count, 1), np.nan)


def sorted_quantile(ordered: Array, count: NDArray[np.intp], q: float) -> Array:
    """Quantile of rows that are sorted along the last axis with NaN behind ``count`` finite entries (linear rule).

    Parameters
    ----------
    ordered
        Shape (..., m).
    count
        Shape (...,).
    q
        Between 0 and 1.
    """
    top = np.maximum(count - 1, 0)
    at = q * top
    low = at.astype(np.intp)
    high = np.minimum(low + 1, top)
    first = np.arange(count.size).reshape(count.shape) * ordered.shape[-1]
    flat = ordered.reshape(-1)
    a = flat.take(first + low)
    b = flat.take(first + high)
    return np.asarray(a + (at - low) * (b - a))


def sorted_bins(value: Array, at: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]] | None:
    """Lay contiguous bins of rows under each other and sort each.

    Parameters
    ----------
    value
        Shape (n,); NaN is missing.
    at
        First row of each bin and one past the last, shape (B + 1,).

    Returns
    -------
    ordered, count
        Shape (B, m) with NaN behind the finite values, and their number, shape (B,). None when a few
        bins hold nearly all rows, so that the table would be much larger than the rows, or when there is no row.
    """
    sizes = at[1:] - at[:-1]
    longest = int(sizes.max(initial=0))
    if not longest or sizes.size * longest > _PADDED * value.size + _PADDED_FREE:
        return None
    columns = np.arange(longest)
    ordered = value.take(at[:-1, None] + columns, mode="clip")
    ordered[columns >= sizes[:, None]] = np.nan
    ordered.sort(axis=1)
    return ordered, np.asarray(np.isfinite(ordered).sum(axis=1))


def shortest_half(values: Array, axis: int) -> tuple[Array, Array]:
    """Mean and width of the shortest half of the finite entries along ``axis``.

    The centre of the shortest half stays with the majority when up to half of the entries are elsewhere, on one side or
    on both; the median already leaves when all of them are on one side.

    Returns
    -------
    centre, width
        Each of ``values``' shape without ``axis``; NaN where there is no entry. The width of one entry is 0.

    References
    ----------
    Andrews et al. (1972), Robust Estimates of Location, the "shorth"; Grübel (1988), Annals of Statistics 16, 619-628.
    """
    ordered = _sorted_last(values, axis)
    shape, m = ordered.shape[:-1], ordered.shape[-1]
    rows = ordered.reshape(-1, m)
    count = _finite_count(rows)
    centre, width = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    sizes = np.flatnonzero(np.bincount(count))
    for size in sizes[sizes > 0].tolist():
        # rows with equally many entries at once; nearly always there is one such group
        chosen = slice(None) if sizes.size == 1 else np.flatnonzero(count == size)
        centre[chosen], width[chosen] = _shortest_half_of(rows[chosen, :size])
    return centre.reshape(shape), width.reshape(shape)


def shortest_width(values: Array, axis: int) -> Array:
    """Width alone of the shortest half of the finite entries along ``axis``; see :func:`shortest_half`."""
    m = values.shape[axis]
    if not 1 < m <= FEW_PLANES:
        return shortest_half(values, axis)[1]
    planes = np.array(np.moveaxis(values, axis, 0), order="C")
    finite = np.isfinite(planes)
    count = finite.sum(axis=0, dtype=np.uint8)
    planes[~finite] = _BEHIND
    sort_planes(planes)
    width = _least_span(planes)
    for size in np.flatnonzero(np.bincount(count.reshape(-1), minlength=m)[:m]).tolist():
        chosen = count == size
        width[chosen] = _least_span(planes[:size, chosen]) if size else np.nan
    return width


def _least_span(planes: Array) -> Array:
    """Smallest distance over half of the planes, which are in order along the first axis."""
    half = len(planes) // 2 + 1
    return np.asarray((planes[half - 1 :] - planes[: len(planes) - half + 1]).min(axis=0))


def _shortest_half_of(ordered: Array) -> tuple[Array, Array]:
    """Mean and width of the shortest half of sorted rows without missing entries, shape (n, size)."""
    n, size = ordered.shape
    half = size // 2 + 1
    widths = ordered[:, half - 1 :] - ordered[:, : size - half + 1]
    best = widths.argmin(axis=1)
    total = np.zeros((n, size + 1))
    np.cumsum(ordered, axis=1, out=total[:, 1:])
    first = np.arange(n) * (size + 1) + best
    flat = total.reshape(-1)
    width = widths.reshape(-1).take(np.arange(n) * widths.shape[1] + best)
    return (flat.take(first + half) - flat.take(first)) / half, width


def moving_mean(values: Array, half_width: int) -> Array:
    """Mean of the finite entries within ``half_width`` places along the last axis; NaN where there is none."""
    good = np.isfinite(values)
    if good.all():
        return _windowed(values, half_width) / _window_sizes(values.shape[-1], half_width)
    total = _windowed(np.where(good, values, 0.0), half_width)
    whole = np.uint8 if half_width <= _FEW_PLACES else np.float64
    count = _windowed(good.astype(whole), half_width).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        total /= count
    total[count < 0.5] = np.nan
    return total


def _windowed(values: NDArray[Any], half_width: int) -> NDArray[Any]:
    """Sum within ``half_width`` places along the last axis."""
    m = values.shape[-1]
    if half_width <= _FEW_PLACES:
        few = values.copy()
        for away in range(1, min(half_width, m - 1) + 1):
            few[..., away:] += values[..., :-away]
            few[..., :-away] += values[..., away:]
        return few
    reach = min(half_width, m)
    total = np.empty((*values.shape[:-1], m + 1 + 2 * reach))
    total[..., : reach + 1] = 0.0
    np.cumsum(values, axis=-1, out=total[..., reach + 1 : reach + 1 + m])
    total[..., reach + 1 + m :] = total[..., reach + m : reach + m + 1]
    return np.asarray(total[..., 2 * reach + 1 :] - total[..., :m])


@lru_cache(maxsize=64)
def _window_sizes(m: int, half_width: int) -> Array:
    """Places within ``half_width`` of each of ``m`` places, as float64."""
    at = np.arange(m)
    sizes = (np.minimum(at + half_width + 1, m) - np.maximum(at - half_width, 0)).astype(np.float64)
    sizes.flags.writeable = False
    return sizes


def moving_median(values: Array, half_width: int) -> Array:
    """Median of the finite entries within ``half_width`` places along the last axis (short axes: bins, not rows)."""
    m, width = values.shape[-1], 2 * half_width + 1
    if m <= width or not np.isfinite(values).all():
        return nan_median(_windows(_padded(values, half_width), width), -1)
    if half_width == 1:
        return _median_of_three(values)
    out = np.empty(values.shape)
    inner = np.array(_windows(values, width))
    inner.sort(axis=-1)
    out[..., half_width : m - half_width] = inner[..., half_width]
    # only windows at the ends are cut short; both ends at once, the last one turned round
    ends = np.array([values[..., : width - 1], values[..., : -width : -1]])
    short = nan_median(_windows(_padded(ends, half_width), width)[..., :half_width, :], -1)
    out[..., :half_width] = short[0]
    out[..., : -half_width - 1 : -1] = short[1]
    return out


def _median_of_three(values: Array) -> Array:
    """Median of each place and its neighbours along the last axis, of two at the ends; nothing is missing."""
    out = np.empty(values.shape)
    a, b, c = values[..., :-2], values[..., 1:-1], values[..., 2:]
    np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c), out=out[..., 1:-1])
    for end, other in ((0, 1), (-1, -2)):
        low = np.minimum(values[..., end], values[..., other])
        out[..., end] = low + 0.5 * (np.maximum(values[..., end], values[..., other]) - low)
    return out


def _padded(values: Array, half_width: int) -> Array:
    """Copy with ``half_width`` missing places on either side."""
    out = np.full((*values.shape[:-1], values.shape[-1] + 2 * half_width), np.nan)
    out[..., half_width : half_width + values.shape[-1]] = values
    return out


def _windows(values: Array, width: int) -> Array:
    """View of all windows along the last axis, shape (..., m - width + 1, width), without numpy's own checks."""
    values = np.ascontiguousarray(values)
    shape = (*values.shape[:-1], values.shape[-1] - width + 1, width)
    return np.ndarray(shape, values.dtype, values, strides=(*values.strides, values.itemsize))


def runs_true(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Half-open index spans in which a one-dimensional mask is true."""
    if not mask.any():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]

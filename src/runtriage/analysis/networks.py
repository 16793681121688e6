"""Sorting networks: a few large arrays put in order against each other, place by place."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FEW_PLANES = 16
"""Planes that are sorted against each other whole; with more the number of comparisons outgrows a sort of rows."""


def sort_planes(planes: NDArray[np.float64]) -> None:
    """Sort a few large planes along their first axis, in place: much faster than many short rows.

    Parameters
    ----------
    planes
        Shape (m, ...), without NaN.
    """
    low = np.empty(planes.shape[1:])
    for i, j in _comparators(len(planes)):
        np.minimum(planes[i], planes[j], out=low)
        np.maximum(planes[i], planes[j], out=planes[j])
        planes[i] = low


@lru_cache(maxsize=FEW_PLANES)
def _comparators(m: int) -> tuple[tuple[int, int], ...]:
    """Pairs to put in order so that ``m`` entries are sorted: Batcher's merge exchange (Knuth 5.2.2, algorithm M)."""
    pairs: list[tuple[int, int]] = []
    top = 1 << max(m - 1, 1).bit_length() - 1
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(m - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return tuple(pairs)

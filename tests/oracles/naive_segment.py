"""Readable, slow twins of the kernels in ``runtriage.analysis``: loops only, no shared code."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def line_cost(x: Floats, y: Floats, w: Floats, start: int, stop: int) -> float:
    """Weighted squared residuals of the least-squares line over [start, stop), by solving it."""
    root = np.sqrt(w[start:stop])
    design = np.column_stack([np.ones(stop - start), x[start:stop]]) * root[:, None]
    target = y[start:stop] * root
    rest = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(rest @ rest)


def cheapest_breaks(x: Floats, y: Floats, w: Floats, penalty: float, min_length: int) -> tuple[float, list[int]]:
    """Optimal partitioning without pruning: best total cost and its breaks."""
    n = len(x)
    best = [float("inf")] * (n + 1)
    path: list[list[int]] = [[] for _ in range(n + 1)]
    best[0] = -penalty
    for t in range(min_length, n + 1):
        for s in [0, *range(min_length, t - min_length + 1)]:
            cost = best[s] + line_cost(x, y, w, s, t) + penalty
            if cost < best[t]:
                best[t], path[t] = cost, path[s] + ([s] if s else [])
    return best[n], path[n]


def total_cost(x: Floats, y: Floats, w: Floats, penalty: float, breaks: list[int]) -> float:
    """Cost of one given partition."""
    ends = [0, *breaks, len(x)]
    return sum(line_cost(x, y, w, a, b) for a, b in pairwise(ends)) + penalty * len(breaks)


def contrast(x: Floats, y: Floats, w: Floats, t: int, width: int) -> float:
    """Right line minus left line half way between blocks t - 1 and t, each fitted to ``width`` blocks."""
    at = (x[min(t, len(x) - 1)] + x[t - 1]) / 2
    ends = []
    for start, stop in ((t - width, t), (t, t + width)):
        slope, intercept = np.polyfit(x[start:stop], y[start:stop], 1, w=np.sqrt(w[start:stop]))
        ends.append(intercept + slope * at)
    return float(ends[1] - ends[0])


def running_median(values: Floats, k: int) -> Floats:
    """Sorted windows, mirrored at the ends without repeating the end point."""
    n, out = len(values), []
    k = min(k, (n - 1) // 2)
    for i in range(n):
        window = []
        for j in range(i - k, i + k + 1):
            inside = -j if j < 0 else j
            window.append(values[2 * (n - 1) - inside if inside >= n else inside])
        out.append(sorted(window)[k])
    return np.array(out)

"""What the kernels over rows compute, written as the plain loop: slow, and there to be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def along(step: Sequence[float], mid: Sequence[float], level: Sequence[float]) -> list[float]:
    """Interpolate a level at each step: straight between known middles of bins, constant beyond them."""
    known = [(m, v) for m, v in zip(mid, level, strict=True) if np.isfinite(v)]
    out = []
    for s in step:
        if s <= known[0][0]:
            out.append(known[0][1])
        elif s >= known[-1][0]:
            out.append(known[-1][1])
        else:
            i = max(k for k, (m, _) in enumerate(known) if m <= s)
            (a, low), (b, high) = known[i], known[i + 1]
            out.append(low + (high - low) * (s - a) / (b - a))
    return out


def averaged(unit: Sequence[float], width: int, cap: float) -> list[float]:
    """Average each row with those behind it, in units of the average's own spread; the last rows share one value."""
    n = len(unit)
    means = [sum(min(u, cap) for u in unit[i : i + width]) / width for i in range(n - width + 1)]
    means += [means[-1]] * (width - 1)
    ratio = _mad(means) / max(_mad(unit), 1e-12)
    return [m / min(max(ratio, width**-0.5), 1.0) for m in means]


def sharing(events: Sequence[Sequence[int]], step: float, tolerance: float) -> int:
    """Count the members with an event near a step."""
    return sum(any(abs(e - step) <= tolerance for e in own) for own in events)


def correlation(x: Sequence[float], y: Sequence[float], cut: float) -> float:
    """Correlate two series about their medians, each cut at some robust standard deviations."""
    a, b = _cut(x, cut), _cut(y, cut)
    power = (sum(v * v for v in a) * sum(v * v for v in b)) ** 0.5
    return sum(v * w for v, w in zip(a, b, strict=True)) / power


def _cut(values: Sequence[float], cut: float) -> list[float]:
    middle, limit = float(np.median(values)), cut * max(1.4826 * _mad(values), 1e-12)
    return [min(max(v - middle, -limit), limit) for v in values]


def _mad(values: Sequence[float]) -> float:
    middle = float(np.median(values))
    return float(np.median([abs(v - middle) for v in values]))

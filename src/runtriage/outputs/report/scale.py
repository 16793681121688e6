"""Axes: from data to pixels, and where to put ticks. Pure.

A logarithmic axis is chosen where values are positive and spread widely: losses and norms are read in ratios. On a
linear axis a few wild values must not flatten the rest, so it ends at the quantiles and what lies beyond is drawn at
its edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

LOG_RATIO = 5.0
"""Largest over smallest value from which on an axis is logarithmic."""

_WILD = 20.0
_PAD = 0.06
_BAND_ROOM = 0.6
_HEADS = ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10)))
_SUFFIXES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear or logarithmic map from ``low … high`` to ``start … stop`` pixels."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def at(self, values: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return pixels, shape as given; values beyond the ends are put at them, NaN stays NaN."""
        given = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            given = np.log(np.maximum(given, low * 1e-3))
            low, high = math.log(low), math.log(high)
        part = (given - low) / (high - low)
        return self.start + np.clip(part, -0.02, 1.02) * (self.stop - self.start)

    def inside(self, value: float) -> bool:
        """Tell whether a value lies on the axis."""
        return self.low <= value <= self.high

    def ticks(self, most: int) -> list[float]:
        """Return round values on the axis, at most about ``most``."""
        if not self.log:
            return _linear_ticks(self.low, self.high, most)
        fitting = [found for heads in _HEADS if 2 <= len(found := self._heads(heads, most)) <= most]
        return fitting[-1] if fitting else _linear_ticks(self.low, self.high, most)

    def _heads(self, heads: tuple[int, ...], most: int) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        every = max(1, math.ceil((last - first) / most)) if len(heads) == 1 else 1
        found = [head * 10.0**power for power in range(first, last + 1, every) for head in heads]
        return [value for value in found if self.inside(value)]


def value_scale(
    values: NDArray[np.float64], band: NDArray[np.float64] | None, *, start: float, stop: float, zero: bool = False
) -> Scale:
    """Return the axis for values and the band around them.

    Parameters
    ----------
    values
        float64, shape (n,); what is not finite is left out.
    band
        Lower and upper edge in one array, or None. It widens the axis, but never by more than 60 % to either side.
    start, stop
        Pixels of the low and the high end.
    zero
        True to begin at zero, linearly.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(low=0.0, high=1.0, start=start, stop=stop)
    low, high = float(finite.min()), float(finite.max())
    if zero and low >= 0:
        return Scale(low=0.0, high=high * (1 + _PAD) or 1.0, start=start, stop=stop)
    log = low > 0 and high / low > LOG_RATIO
    if not log:
        near, far = (float(q) for q in np.quantile(finite, (0.01, 0.99)))
        if high - low > _WILD * max(far - near, 1e-300) and far > near:
            low, high = near - 2 * (far - near), far + 2 * (far - near)
            low, high = max(low, float(finite.min())), min(high, float(finite.max()))
    return _padded(low, high, band, Scale(low=low, high=high, start=start, stop=stop, log=log))


def step_text(step: float) -> str:
    """Return a step in few characters.

    Examples
    --------
    >>> step_text(0), step_text(1500), step_text(2_000_000), step_text(12)
    ('0', '1.5k', '2M', '12')
    """
    for unit, suffix in _SUFFIXES:
        if abs(step) >= unit:
            return f"{step / unit:.6g}{suffix}"
    return f"{step:.6g}"


def value_text(value: float) -> str:
    """Return a tick label.

    Examples
    --------
    >>> value_text(0.0003), value_text(2.5), value_text(1e6), value_text(0.0)
    ('3e-4', '2.5', '1e6', '0')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}"
    head, _, power = f"{value:.3e}".partition("e")
    return f"{float(head):g}e{int(power)}"


def _padded(low: float, high: float, band: NDArray[np.float64] | None, scale: Scale) -> Scale:
    if scale.log:
        low, high = math.log(low), math.log(high)
        band = np.log(band[band > 0]) if band is not None else None
    if not high > low:
        spread = max(abs(high) * 0.1, 1e-12)
        low, high = low - spread, high + spread
    room = _BAND_ROOM * (high - low)
    if band is not None and np.isfinite(band).any():
        edges = band[np.isfinite(band)]
        low, high = max(min(low, float(edges.min())), low - room), min(max(high, float(edges.max())), high + room)
    pad = _PAD * (high - low)
    low, high = low - pad, high + pad
    if scale.log:
        low, high = math.exp(low), math.exp(high)
    return replace(scale, low=low, high=high)


def _linear_ticks(low: float, high: float, most: int) -> list[float]:
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return [low] if math.isfinite(low) else []
    raw = span / max(most, 1)
    unit = 10.0 ** math.floor(math.log10(raw))
    size = next((head * unit for head in (1, 2, 2.5, 5, 10) if head * unit >= raw), 10 * unit)
    count = int(min((high - math.ceil(low / size) * size) / size + 1e-9, 50)) + 1
    first = math.ceil(low / size) * size
    return [0.0 if abs(first + i * size) < size * 1e-9 else first + i * size for i in range(max(count, 0))]

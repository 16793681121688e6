"""Curves in characters: two by four dots a cell. Pure.

Written here because terminal plotting packages keep the figure in a global, which a library must not share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runtriage.outputs.report.scale import Scale

Dots = NDArray[np.bool_]

_BASE = 0x2800
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A field of ``columns`` by ``rows`` cells over steps ``low … high`` with a value axis.

    The axis maps values to dots, zero at the top.
    """

    columns: int
    rows: int
    low: float
    high: float
    axis: Scale

    def dots(self, step: NDArray[np.int64], value: NDArray[np.float64]) -> Dots:
        """Return the dots of a curve, shape (4 * rows, 2 * columns); what is not finite leaves a gap."""
        height, width = 4 * self.rows, 2 * self.columns
        out = np.zeros((height, width), dtype=np.bool_)
        if not step.size:
            return out
        lowest, highest = self._spread(step, value, width)
        known = np.flatnonzero(np.isfinite(lowest))
        top = np.clip(np.round(self.axis.at(highest[known])), 0, height - 1).astype(np.int64)
        bottom = np.clip(np.round(self.axis.at(lowest[known])), 0, height - 1).astype(np.int64)
        for i, column in enumerate(known.tolist()):
            first, last = int(top[i]), int(bottom[i])
            if i and known[i - 1] == column - 1:  # close the jump from the neighbour
                first, last = min(first, int(bottom[i - 1])), max(last, int(top[i - 1]))
            out[first : last + 1, column] = True
        return out

    def column(self, step: float) -> int:
        """Return the cell that holds a step, from 0 to ``columns - 1``."""
        part = (step - self.low) / (self.high - self.low)
        return int(min(max(part * self.columns, 0), self.columns - 1))

    def _spread(
        self, step: NDArray[np.int64], value: NDArray[np.float64], width: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the smallest and largest value per column of dots; NaN where there is none."""
        value = np.where(np.isfinite(value), value, np.nan)
        centres = self.low + (np.arange(width) + 0.5) * (self.high - self.low) / width
        if step.size <= width:
            between = np.interp(centres, step.astype(np.float64), value, left=np.nan, right=np.nan)
            return between, between
        at = np.clip(((step - self.low) / (self.high - self.low) * width).astype(np.int64), 0, width - 1)
        lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
        np.minimum.at(lowest, at, np.where(np.isnan(value), np.inf, value))
        np.maximum.at(highest, at, np.where(np.isnan(value), -np.inf, value))
        empty = lowest > highest
        return np.where(empty, np.nan, lowest), np.where(empty, np.nan, highest)


def cells(dots: Dots) -> list[str]:
    """Return dots as lines of text, a blank for a cell without any.

    Examples
    --------
    >>> cells(np.eye(4, 4, dtype=bool))
    ['⠑⢄']
    """
    rows, columns = dots.shape[0] // 4, dots.shape[1] // 2
    codes = (dots.reshape(rows, 4, columns, 2) * _BITS[None, :, None, :]).sum(axis=(1, 3))
    return ["".join(chr(_BASE + code) if code else " " for code in row) for row in codes.tolist()]

"""Rows of one metric: what the store did to their values is undone, overlapping pages are joined. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runtriage.model.history import Track

SECONDS_BELOW = 100_000_000_000
"""Time stamps below are seconds, the others milliseconds: 1e11 ms is the year 1973, 1e11 s the year 5138."""

_DBL_MAX = 1.7976931348623157e308


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one metric as the server sent them: three arrays of shape (n,), time stamps as given."""

    step: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.step)

    def part(self, start: int, stop: int | None = None) -> Rows:
        """Return rows ``start`` to ``stop``."""
        return Rows(self.step[start:stop], self.timestamp[start:stop], self.value[start:stop])

    def same_as(self, other: Rows) -> bool:
        """Return True if both hold the same rows in the same order (NaN equals NaN)."""
        return bool(
            np.array_equal(self.step, other.step)
            and np.array_equal(self.timestamp, other.timestamp)
            and np.array_equal(self.value, other.value, equal_nan=True)
        )


def track(parts: Sequence[Rows]) -> Track:
    """Join pages into one metric in logged order, each (step, time stamp, value) once.

    Parameters
    ----------
    parts
        Pages in the order they were read; they may overlap.

    Returns
    -------
    Track
        Ordered by time, then by position as read. ``wall`` is None if the client sent no time stamps.
    """
    step = np.concatenate([part.step for part in parts]) if parts else np.empty(0, np.int64)
    stamp = np.concatenate([part.timestamp for part in parts]) if parts else np.empty(0, np.int64)
    value = np.concatenate([part.value for part in parts]) if parts else np.empty(0, np.float64)
    keep = _first_of_each(step, stamp, value)
    step, stamp, value = step[keep], stamp[keep], value[keep]
    wall = np.where(stamp < SECONDS_BELOW, stamp, stamp / 1000.0).astype(np.float64)
    order = np.argsort(wall, kind="stable")
    for array in (ordered := (step[order], value[order], wall[order])):
        array.flags.writeable = False
    return Track(step=ordered[0], value=ordered[1], wall=ordered[2] if bool(np.any(stamp)) else None)


def as_logged(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Undo the store's stand-in for infinity; make every NaN the same NaN and every zero positive."""
    value[np.abs(value) >= _DBL_MAX] *= np.inf
    value[np.isnan(value)] = np.nan
    return value + 0.0


def _first_of_each(
    step: NDArray[np.int64], stamp: NDArray[np.int64], value: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return the mask, shape (n,), of rows that are the first of their kind."""
    bits = value.view(np.int64)
    order = np.lexsort((bits, step, stamp))  # stable: among equals the first read comes first
    keep = np.ones(len(step), dtype=np.bool_)
    again = np.ones(max(len(step) - 1, 0), dtype=np.bool_)
    for column in (step[order], stamp[order], bits[order]):
        again &= column[1:] == column[:-1]
    keep[order[1:][again]] = False
    return keep

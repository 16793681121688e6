"""Where what was read before and what was read now meet: parts of tracks, compared, joined. Pure."""

from __future__ import annotations

import numpy as np

from runtriage.model.history import Track


def part(track: Track, start: int, stop: int | None = None) -> Track:
    """Return points ``start`` to ``stop`` of a track; the arrays are views."""
    where = slice(start, stop)
    wall = None if track.wall is None else track.wall[where]
    return Track(step=track.step[where], value=track.value[where], wall=wall)


def same(one: Track, other: Track) -> bool:
    """Tell whether two tracks hold the same points in the same order, with a clock or without (NaN equals NaN)."""
    if (one.wall is None) != (other.wall is None) or not np.array_equal(one.step, other.step):
        return False
    clocks = one.wall is None or other.wall is None or np.array_equal(one.wall, other.wall, equal_nan=True)
    return clocks and np.array_equal(one.value, other.value, equal_nan=True)


def joined(old: Track, new: Track) -> Track:
    """Return one track, the other behind it; both or neither have a clock. Its arrays cannot be written to."""
    step, value = np.concatenate([old.step, new.step]), np.concatenate([old.value, new.value])
    wall = None if old.wall is None or new.wall is None else np.concatenate([old.wall, new.wall])
    for array in (step, value, wall):
        if array is not None:
            array.flags.writeable = False
    return Track(step=step, value=value, wall=wall)

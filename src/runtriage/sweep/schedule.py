"""When the next round is due. Pure: the clock is an argument."""

from __future__ import annotations

import math


def next_due(start: float, every: float, now: float) -> float:
    """Return the first moment after ``now`` that is a whole number of periods after the start.

    Rounds keep to the beats of one clock: none comes late because the one before began late, and those that a long
    round slept through are left out instead of being made up for.

    Parameters
    ----------
    start, now
        Seconds of one clock.
    every
        Seconds from beat to beat, positive.

    Examples
    --------
    >>> next_due(100.0, 60.0, 161.5)
    220.0
    >>> next_due(100.0, 60.0, 400.0)
    460.0
    """
    beat = math.floor((now - start) / every) + 1
    due = start + beat * every
    return due if due > now else start + (beat + 1) * every  # the division may have been rounded down

"""How long a job still takes, told only as far as it is known. Pure: the clock is an argument."""

from __future__ import annotations

from bisect import bisect_right

_AT_ONCE = 0.01
"""Seconds within which pieces count as done together: a cohort is judged as one, and comes out run by run."""

_SOON = 2.0
"""Seconds before which nothing is said."""

_STEP = 1.02
"""Growth of the work done from one remembered moment to the next, which bounds how many there are."""


class Estimate:
    """The time that is left, from the pace of the newer half of what is done.

    That half is long enough that bursts even out, and it forgets a slow beginning. Waiting counts: while nothing comes,
    the pace falls.

    Parameters
    ----------
    total
        Pieces in all.
    start
        Seconds of the clock when work began.
    """

    def __init__(self, total: int, start: float) -> None:
        self._total, self._start = total, start
        self._done, self._last = 0, start
        self._counts: list[int] = [0]
        self._times: list[float] = [start]

    def add(self, now: float) -> None:
        """Take note of a piece that is done."""
        if now - self._last > _AT_ONCE and self._done > self._counts[-1] * _STEP:
            self._counts.append(self._done)  # the end of a burst: what lies between two of them are whole ones
            self._times.append(self._last)
        self._done += 1
        self._last = now

    def seconds(self, now: float) -> float | None:
        """Return the seconds that are left, None while it is too early to tell."""
        if len(self._counts) < 2 or now - self._start < _SOON:
            return None
        at = bisect_right(self._counts, self._done // 2) - 1
        took = now - self._times[at]
        return (self._total - self._done) * took / (self._done - self._counts[at])


def about(seconds: float) -> str:
    """Return a time as one says it of something that is not known exactly.

    Examples
    --------
    >>> about(34.0), about(200.0), about(9000.0)
    ('about 30 s left', 'about 3 min left', 'about 2.5 h left')
    """
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} s left" if seconds >= 5 else "a few seconds left"
    return f"about {seconds / 60:.0f} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"

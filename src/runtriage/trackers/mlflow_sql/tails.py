"""Continuing a run that was read before: what is known of its past, proved by counting. Pure.

Points are only ever added to a metric. If it has as many points before a moment as it had, these are the same points,
and only those since have to be pulled, wherever their steps lie. The rule is by the clock, as the tracks are in its
order. The last second known is pulled again, since points with its time may have come meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from runtriage.model.history import Track
from runtriage.trackers.joints import joined, part, same


def last_second(known: Mapping[str, Track]) -> int | None:
    """Return the newest whole second of these tracks, None if one of them has no clock, or there are no points."""
    if any(track.wall is None for track in known.values()):
        return None
    newest = [float(track.wall[-1]) for track in known.values() if track.wall is not None and len(track.wall)]
    return math.floor(max(newest)) if newest else None


def continued(
    known: Mapping[str, Track], since: Mapping[str, Track], before: Mapping[str, int], second: int
) -> dict[str, Track] | None:
    """Return whole tracks, or None if the past is not as it was.

    Parameters
    ----------
    known
        As read before, each in the order of its clock.
    since
        As they are now, from the second on.
    before
        Metric name to the number of points that it has now before that second; without those that have none.
    second
        Whole seconds since the epoch.
    """
    out: dict[str, Track] = {}
    for name in sorted({*since, *before}):
        old, new = known.get(name), since.get(name)
        start = 0 if old is None or old.wall is None else int(np.searchsorted(old.wall, second))
        if start != before.get(name, 0) or (new is not None and new.wall is None):
            return None
        if old is None or new is None:
            if (track := old if new is None else new) is None or (new is None and start < len(track.step)):
                return None
            out[name] = track
            continue
        again = len(old.step) - start
        if not same(part(new, 0, again), part(old, start)):
            return None
        out[name] = old if len(new.step) == again else joined(old, part(new, again))
    return out if set(known) <= set(out) else None


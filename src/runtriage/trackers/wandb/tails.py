"""Continuing a run that was read before: what is known of its past, proved by counting rows and by the last ones. Pure.

W&B counts the rows of a run. Rows are only appended, except after a rewind, which removes the last ones, and then the
row at the last known step is another one, if only by its time. So if the last rows known stand again, and exactly as
many rows have come since as there are behind them, nothing else has changed. A run that was started again under its id
has appended rows at lower steps: they are counted, and do not stand behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from runtriage.model.history import RunHistory, Track
from runtriage.trackers.joints import joined, part, same
from runtriage.trackers.wandb.rows import tracks_of_rows
from runtriage.trackers.wandb.wire import CLOCK, STEP

_OVERLAP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a cursor says of the time at which a run was read.

    Attributes
    ----------
    rows, last
        Rows counted, and the last step.
    digest
        Of what makes the run another one: its id, its start, its config.
    """

    rows: int
    last: int
    digest: str

    @property
    def start(self) -> int:
        """First step of the rows to ask for again."""
        return max(self.last - _OVERLAP + 1, 0)


def past_of(cursor: str) -> Past | None:
    """Return what a cursor says, None if it does not say enough, or nothing was logged then."""
    try:
        _, rows, last, _, digest = cursor.split(":")
        found = Past(rows=int(rows), last=int(last), digest=digest)
    except ValueError:
        return None
    return found if found.rows > 0 and found.last >= 0 else None


def continued(
    known: RunHistory, past: Past, rows: Sequence[Mapping[str, Any]], counted: int
) -> dict[str, Track] | None:
    """Return whole tracks, or None if it cannot be shown that the past is as it was.

    Parameters
    ----------
    known
        As read before, without notes of what was missing.
    past
        From its cursor.
    rows
        All rows from :attr:`Past.start` on, as they are now.
    counted
        Rows of the run that the server counts now.
    """
    steps: list[Any] = [row.get(STEP) for row in rows]
    clocks: list[Any] = [row.get(CLOCK) for row in rows]
    if not _are_whole(steps) or any(type(clock) not in (int, float) for clock in clocks):
        return None
    behind = [clock for step, clock in zip(steps, clocks, strict=True) if step > past.last]
    if len(behind) != counted - past.rows or any(track.wall is None for track in known.tracks.values()):
        return None
    walls = [track.wall for track in known.tracks.values() if track.wall is not None and track.wall.size]
    if behind and walls and min(behind) < max(float(np.max(wall)) for wall in walls):
        return None  # rows of several attempts are put into the order of their clocks
    tail, notes, _ = tracks_of_rows([dict(row) for row in rows])
    return None if notes else _joined(known.tracks, tail, past)


def _are_whole(steps: Sequence[Any]) -> bool:
    return set(map(type, steps)) <= {int} and all(a < b for a, b in pairwise(steps))


def _joined(known: Mapping[str, Track], tail: Mapping[str, Track], past: Past) -> dict[str, Track] | None:
    out: dict[str, Track] = {}
    stood = False
    for name in dict.fromkeys((*known, *tail)):
        old, new = known.get(name), tail.get(name)
        again = 0 if old is None else int(np.count_nonzero(old.step >= past.start))
        found = 0 if new is None else int(np.count_nonzero(new.step <= past.last))
        if again != found:
            return None
        if old is None or new is None:
            out[name] = old if new is None else new  # type: ignore[assignment]
            continue
        if not same(part(new, 0, again), part(old, len(old.step) - again)):
            return None
        stood = stood or again > 0
        out[name] = old if len(new.step) == again else joined(old, part(new, again))
    return out if stood else None

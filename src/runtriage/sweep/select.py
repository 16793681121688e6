"""Which runs a sweep looks at, and in which groups. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from runtriage.model.history import RunInfo
from runtriage.model.vocab import RunState
from runtriage.pipeline import MAX_COHORT, fingerprint

LONERS_TOGETHER = 16
"""Runs without a usable config are handed on in parts of this size, so that none waits for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which runs.

    Attributes
    ----------
    since
        Seconds since the epoch; runs known to have started earlier are left out.
    limit
        At most so many, in the order of the listing; None for all.
    only
        Only runs in this state; None for all.
    """

    since: float | None = None
    limit: int | None = None
    only: RunState | None = None


def choose(listing: Iterable[RunInfo], selection: Selection) -> list[RunInfo]:
    """Return the runs a sweep looks at, in the order of the listing; nothing beyond the limit is asked for."""
    return list(islice((info for info in listing if _wanted(info, selection)), selection.limit))


def group(infos: Sequence[RunInfo], ignore_keys: tuple[str, ...] = ()) -> list[list[RunInfo]]:
    """Return the runs grouped by what their configs train, first come first; those without a config in small parts.

    Notes
    -----
    One group is in memory at a time, so the order of groups is the order in which results appear. A config with more
    runs than are compared with each other makes several groups of about equal size: neighbours of the listing, which
    are neighbours in time where the tracker knows an order.
    """
    groups: dict[str, list[RunInfo]] = {}
    for info in infos:
        groups.setdefault(fingerprint(info.config, ignore_keys), []).append(info)
    loners = groups.pop("", [])
    cohorts = (part for members in groups.values() for part in _parts(members, MAX_COHORT))
    return [*cohorts, *_parts(loners, LONERS_TOGETHER)]


def _parts(infos: Sequence[RunInfo], most: int) -> Iterator[list[RunInfo]]:
    """Yield parts of about equal size, none larger than ``most``: an odd run at the end would have no siblings."""
    count = -(-len(infos) // most)
    for i in range(count):
        yield list(infos[i * len(infos) // count : (i + 1) * len(infos) // count])


def _wanted(info: RunInfo, selection: Selection) -> bool:
    if selection.only is not None and info.state != selection.only:
        return False
    return selection.since is None or info.started is None or info.started >= selection.since

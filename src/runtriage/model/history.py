"""A run as its tracker delivered it: facts about it, and its metrics in the order they were logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtriage.model.vocab import RunState

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a listing tells about a run, without its history.

    Attributes
    ----------
    source
        Canonical address of the source the run came from, without the run and without credentials.
    id
        The tracker's own, stable id.
    name
        Display name; hostile input.
    state
        Folded state.
    config
        Hyper-parameters, nested as logged; keys and values are hostile input.
    tags
        All tags of the run, ours and others'.
    url
        Where a person can look at the run, or None.
    started
        Start, seconds since the epoch UTC, or None if the tracker does not know.
    cursor
        Opaque text that differs once the run has more history, another state or another config; empty if the tracker
        cannot tell from a listing. Equal cursors mean that the run need not be read again.
    """

    source: str
    id: str
    name: str = ""
    state: RunState = RunState.UNKNOWN
    config: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    started: float | None = None
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Track:
    """One metric, in logged order (steps may repeat or go back: that is evidence).

    Attributes
    ----------
    step
        int64, shape (n,).
    value
        float64, shape (n,). NaN and infinities were logged as such; what was not logged has no entry.
    wall
        float64 seconds since the epoch, shape (n,), or None when the source has no clock.
    """

    step: NDArray[np.int64]
    value: NDArray[np.float64]
    wall: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunHistory:
    """A run with its metrics.

    Attributes
    ----------
    info
        The run.
    tracks
        Metric name to track. Names are hostile input.
    notes
        Sentences about what reading could not deliver (a truncated tail, a corrupt block, values that were text).
        They travel into the report's ``missing``.
    """

    info: RunInfo
    tracks: Mapping[str, Track]
    notes: tuple[str, ...] = ()

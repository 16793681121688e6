"""What is normal for one configuration: its healthy runs on a common axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """One run of a baseline, reduced to bins.

    Attributes
    ----------
    run_id
        The run.
    level
        Role to log level per bin, shape (B,); NaN where the run has no rows or is not trusted.
    peak
        Spike channel to the largest standardised excursion per bin, shape (B,).
    event
        Role to the steps of the run's largest excursions, int64, rising: they tell a shared batch.
    rows
        Role to (step, log value) at full resolution; kept only where siblings share the data order, and for the lr.
    """

    run_id: str
    level: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    peak: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    event: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    rows: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Baseline:
    """The members of one cohort with their axis and provenance.

    Attributes
    ----------
    fingerprint
        Of the config they share.
    edges
        float64 steps of the bins, shape (B + 1,).
    members
        Those that may be compared with.
    excluded
        Ids of runs of the config that were left out.
    paired
        True when the members share the data order (their residuals agree row by row).
    formed_by
        How the cohort was formed.
    """

    fingerprint: str
    edges: NDArray[np.float64]
    members: tuple[Member, ...]
    excluded: tuple[str, ...] = ()
    paired: bool = False
    formed_by: str = "equal config"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaselineSet:
    """All baselines learned from one source.

    Attributes
    ----------
    cohorts
        Fingerprint to baseline.
    source
        Canonical address they were learned from.
    tool
        Version that learned them.
    """

    cohorts: Mapping[str, Baseline]
    source: str = ""
    tool: str = ""

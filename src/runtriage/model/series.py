"""A run made ready for analysis: one clean series per metric, and what cleaning found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtriage.model.history import RunInfo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One metric on the run's step axis.

    Attributes
    ----------
    metric
        Name as logged; hostile input.
    role
        What it means (a :class:`~runtriage.model.vocab.Role`, ``layer_grad_norm/NAME``), or empty.
    step
        int64, shape (n,), strictly rising.
    value
        float64, shape (n,). Not finite where the run logged something that is not finite, or hid it (``masked``).
    duplicates
        Rows dropped because a later one had the same step.
    restarts
        Steps at which the log went back: the first step of each further attempt, in logged order.
    masked
        Rows where a logger wrote 0.0 in the place of a value that was not finite.
    """

    metric: str
    role: str
    step: NDArray[np.int64]
    value: NDArray[np.float64]
    duplicates: int = 0
    restarts: tuple[int, ...] = ()
    masked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedRun:
    """All series of a run.

    Attributes
    ----------
    info
        The run.
    by_role
        Role to the one series chosen for it.
    others
        Series without a role, or that lost against a better one for the same role.
    notes
        Sentences about what was not logged, dropped or read in a particular way.
    """

    info: RunInfo
    by_role: Mapping[str, Series]
    others: tuple[Series, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    def last_step(self) -> int:
        """Return the largest step of any series with a role; -1 for none."""
        return max((int(s.step[-1]) for s in self.by_role.values() if s.step.size), default=-1)

"""What a detector sees and what it leaves: the view of one run, and the forms found in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.excursions import Excursions
from runtriage.analysis.order_stats import Array
from runtriage.analysis.sketch import NOISE, Axis, Sketch
from runtriage.analysis.tails import Tail
from runtriage.model.phrase import Phrase
from runtriage.model.report import Phase
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

T = TypeVar("T")
_JOINT = 0.5
"""Share of loss and norm departing together in one way, in shares of the loss: there are two ways."""

DRIFT_RANK = 35
"""Rank of a level that drifts: weaker than anything that names a mechanism."""

LAST_RESORT = 60
"""Rank of a form that is told only when nothing else is there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunView:
    """One run beside its cohort; all that a detector may look at.

    Attributes
    ----------
    run, axis, sketch, own
        The run, its bins, its binned levels and its rows' excursions.
    raw, paired
        Excursions before what siblings of equal data order have in common was subtracted, and whether it was.
    z, r, centre, sd
        Role to departure z, residual, cohort centre and standard deviation of the residual per bin, shape (B,); empty
        without a cohort.
    members
        Number of other runs compared with; below 2 there is no cohort.
    limits
        Role to the z that three bins in a row must pass for the role's share of the false-alarm budget.
    share
        Role to its share of the budget, all roles together one.
    level_p, noise_p
        Log chance that a healthy run passes a given z in one role, as (z, log p) points with z rising; of levels, and
        of noise.
    tails
        Spike channel to the tail of the cohort (or of the run itself).
    events
        Role to each member's steps of largest excursions.
    schedule
        The cohort's (step, log lr), or None.
    phases, usual_phases
        From the run's own lr, and from the cohort's schedule.
    memory
        What a detector worked out from the run alone; kept between the rounds of a comparison.
    """

    run: PreparedRun
    axis: Axis
    sketch: Sketch
    own: Excursions
    raw: Excursions
    paired: bool
    z: Mapping[str, Array]
    r: Mapping[str, Array]
    centre: Mapping[str, Array]
    sd: Mapping[str, Array]
    members: int
    limits: Mapping[str, float]
    share: Mapping[str, float]
    level_p: tuple[Array, Array]
    noise_p: tuple[Array, Array]
    tails: Mapping[str, Tail]
    spike_budget: float
    events: Mapping[str, list[NDArray[np.int64]]]
    schedule: tuple[Array, Array] | None
    phases: tuple[Phase, ...]
    usual_phases: tuple[Phase, ...] = ()
    memory: dict[str, object] = field(default_factory=dict)

    @property
    def has_cohort(self) -> bool:
        """True with at least two other runs."""
        return self.members >= 2

    def once(self, key: str, make: Callable[[], T]) -> T:
        """Return what depends on the run alone: made in the first round of a comparison and kept for the others.

        Parameters
        ----------
        key
            Its name in :attr:`memory`.
        make
            Called when it is not there yet.
        """
        if key not in self.memory:
            self.memory[key] = make()
        return cast("T", self.memory[key])

    def limit(self, role: str) -> float:
        """Return the z that three bins in a row must pass; infinite for a role that is not compared."""
        return self.limits.get(role, np.inf)

    def stricter_limit(self, role: str, part: float) -> float:
        """Return the z that three bins in a row must pass for a part of the role's share of the budget."""
        limit = self.limit(role)
        grid, log_p = self.noise_p if role.startswith(NOISE) else self.level_p
        wanted = np.interp(limit, grid, log_p) + np.log(part)
        return max(limit, float(np.interp(-wanted, -log_p, grid)))

    def joint_limit(self) -> float:
        """Return the z that two independent levels pass together, each to one side, half as often as the loss its."""
        grid, log_p = self.level_p
        alone = np.interp(self.limit(Role.LOSS), grid, log_p) + np.log(_JOINT)
        return float(np.interp(-(0.5 * alone + np.log(2.0)), -log_p, grid))

    def p_joint(self, z: float) -> float:
        """Chance that two independent levels of a healthy run pass ``z`` together, over their share."""
        grid, log_p = self.level_p
        both = 2.0 * (np.interp(abs(z), grid, log_p) - np.log(2.0))
        return min(1.0, float(np.exp(both)) / max(_JOINT * self.share.get(Role.LOSS, 1.0), 1e-6))

    def p_level(self, role: str, z: float) -> float:
        """Chance that a healthy run passes ``z`` for three bins in this role, or as rare a size in any other."""
        return min(1.0, self.expected(role, z))

    def expected(self, role: str, z: float) -> float:
        """Chance that a healthy run passes ``z`` for three bins in this role, over the role's share of the budget."""
        grid, log_p = self.noise_p if role.startswith(NOISE) else self.level_p
        return float(np.exp(np.interp(abs(z), grid, log_p)) / max(self.share.get(role, 1.0), 1e-6))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form at a place, before causes and words.

    Attributes
    ----------
    kind, role
        What and in which role.
    start, detected
        First step of the form, and the step at which it became certain: ramps reach back, and order goes by
        ``detected``.
    end, peak
        End of the span (None: lasts) and strongest step.
    z, p
        Size, and chance that a healthy run shows it.
    outcome, explained_by
        As in a finding.
    mild
        True when it is told without an alarm.
    rank
        Which form is the root when several begin together; smaller is nearer to the root.
    measures
        Numbers the diagnosis weighs.
    evidence
        What was seen, not yet in words.
    """

    kind: FindingKind
    role: str
    start: int
    detected: int
    peak: int
    end: int | None = None
    z: float = 0.0
    p: float = 1.0
    outcome: Outcome | None = None
    explained_by: Explanation | None = None
    rank: int = 50
    mild: bool = False
    measures: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[Phrase, ...] = ()


def rows_against_centre(view: RunView, role: str) -> tuple[Array, Array]:
    """Return steps and log residuals of a role's rows from the cohort's centre, shape (n,) each."""
    step, value = view.sketch.rows[role]
    return step, value - view.sketch.along(role, view.axis, view.centre[role])

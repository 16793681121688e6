"""The rules a project should have, and how each takes its limits from healthy runs of one config.

A recipe sees each run once (``facts``) and then makes a condition from the facts of any subset of runs (``make``), so
that leave-one-out costs no second look. ``widen`` multiplies the margin between what healthy runs did and the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from runtriage.model.history import RunHistory
from runtriage.model.rule import Backwards, Condition, Drop, Jump, NonFinite, OverBest, ShareAbove, Stalled
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import Role, Severity
from runtriage.rules.signal import Array, log_of, logged, over_best, preceding_median, preceding_top, share_on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A healthy run as rules see it: prepared, and as logged."""

    run: PreparedRun
    history: RunHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A condition, and for how many points in a row it must hold."""

    condition: Condition
    for_points: int = 1


class Recipe(Protocol):
    """How one kind of rule is made. ``guard`` keeps it silent during warm-up."""

    @property
    def name(self) -> str:
        """First part of the id."""
        ...

    @property
    def about(self) -> str:
        """One sentence for the person who is woken."""
        ...

    @property
    def role(self) -> str:
        """What is watched."""
        ...

    @property
    def severity(self) -> Severity:
        """How urgent."""
        ...

    @property
    def guard(self) -> bool:
        """Whether warm-up is left out."""
        ...

    def facts(self, member: Member, after: int) -> Any:
        """Return what ``make`` needs of a run (rows from step ``after`` on), or None if it does not log enough."""
        ...

    def make(self, facts: Sequence[Any], widen: float) -> Made | str:
        """Return the condition that these runs allow, or the reason why there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    name: str
    about: str
    role: str
    severity: Severity = Severity.WARNING
    guard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNumber(_Base):
    """Values that are not finite; where healthy runs have some (fp16), only for longer than theirs last."""

    def facts(self, member: Member, after: int) -> int | None:
        """Return the length of the longest stretch without a finite value."""
        series = member.run.by_role.get(self.role)
        if series is None or not series.step.size:
            return None
        bad = ~np.isfinite(series.value[series.step >= after])
        edge = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]).astype(np.int8)))
        return int((edge[1::2] - edge[::2]).max(initial=0))

    def make(self, facts: Sequence[int], widen: float) -> Made | str:
        """Allow what healthy runs do."""
        longest = max(facts)
        points = 1 if longest == 0 and widen <= 1 else math.ceil((longest + 1) * widen)
        return Made(condition=NonFinite(), for_points=points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess(_Base):
    """A statistic of each point, in log units, larger than it ever was in a healthy run."""

    statistic: Callable[[Array], Array]
    condition: Callable[[float], Condition]
    floor: float
    for_points: int = 1

    def facts(self, member: Member, after: int) -> float | None:
        """Return the largest value that was held for ``for_points`` points."""
        series = member.run.by_role.get(self.role)
        if series is None or series.step.size < 2:
            return None
        found = self.statistic(series.value)[series.step >= after]
        found = np.where(np.isfinite(found), found, -np.inf)
        if found.size < self.for_points:
            return 0.0
        held = np.lib.stride_tricks.sliding_window_view(found, self.for_points).min(axis=1)
        return max(0.0, float(held.max()))

    def make(self, facts: Sequence[float], widen: float) -> Made | str:
        """Put the limit above the largest, by the spread between runs."""
        spread = float(np.std(facts, ddof=1)) if len(facts) > 1 else 0.0
        limit = max(facts) + widen * (self.floor + spread)
        if limit > _HOPELESS:
            return f"healthy runs reach {math.exp(min(max(facts), _LARGEST)):.3g} times: no limit above says anything"
        return Made(condition=self.condition(_up(math.exp(limit))), for_points=self.for_points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Often(_Base):
    """A flag that is on more often than it ever was in a healthy run."""

    window: int

    def facts(self, member: Member, after: int) -> float | None:
        """Return the largest share within a window."""
        series = member.run.by_role.get(self.role)
        if series is None or series.step.size < 2 * self.window:
            return None
        share = share_on(series.value, self.window)[series.step >= after]
        known = share[np.isfinite(share)]
        return float(known.max()) if known.size else None

    def make(self, facts: Sequence[float], widen: float) -> Made | str:
        """Put the limit between the largest share and one."""
        seen = max(facts)
        top = min(max(seen, 0.5 / self.window), 1 - 0.5 / self.window)
        odds = math.log(top / (1 - top))
        share = 1 / (1 + math.exp(-(odds + widen * _ODDS)))
        if share > _NEARLY_ALL:
            return f"healthy runs have it on for {top:.0%} of {self.window} points: nothing is left to tell"
        return Made(condition=ShareAbove(window=self.window, share=math.ceil(share * 100) / 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBack(_Base):
    """The step counter goes back."""

    def facts(self, member: Member, after: int) -> bool | None:  # noqa: ARG002  the log is looked at from its start
        """Tell whether it does in this run."""
        series = member.run.by_role.get(self.role)
        if series is None:
            return None
        return bool(logged(Backwards(), member.history.tracks[series.metric]).holds.any())

    def make(self, facts: Sequence[bool], widen: float) -> Made | str:  # noqa: ARG002  nothing to widen
        """Make it unless healthy runs do the same."""
        return "steps go back in healthy runs of this config" if any(facts) else Made(condition=Backwards())


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence(_Base):
    """No new point for far longer than healthy runs ever paused."""

    def facts(self, member: Member, after: int) -> float | None:  # noqa: ARG002  the clock runs from the start
        """Return the longest pause in seconds."""
        series = member.run.by_role.get(self.role)
        wall = member.history.tracks[series.metric].wall if series is not None else None
        if wall is None or wall.size < 3:
            return None
        pause = float(np.diff(wall).max())
        return pause if math.isfinite(pause) else None

    def make(self, facts: Sequence[float], widen: float) -> Made | str:
        """Wait several times as long as the longest pause, and ten minutes at least."""
        longest = max(facts)
        seconds = max(600.0, 3.0 * widen * longest)
        if seconds > _MONTH:
            return "healthy runs pause for days: no silence is a sign"
        return Made(condition=Stalled(seconds=60.0 * math.ceil(seconds / 60.0)))


_HOPELESS = math.log(1e4)
_LARGEST = 690.0
_MONTH = 30 * 86400.0
_ODDS = 0.7
_NEARLY_ALL = 0.98
WINDOW = 30


def _up(factor: float) -> float:
    """Round a factor up to a multiple of 0.02, or to three digits where it is large, so that it rarely moves."""
    return math.ceil(factor * 50) / 50 if factor < 10 else float(f"{factor * 1.005:.3g}")


def jumps(value: Array) -> Array:
    """Log of each value over the median of those before it, shape (n,)."""
    return log_of(value) - preceding_median(log_of(value), WINDOW)


def drops(value: Array) -> Array:
    """Log of the largest of the values before over each, shape (n,)."""
    return preceding_top(log_of(value), WINDOW) - log_of(value)


def plain_recipes() -> tuple[Recipe, ...]:
    """Return all recipes but those of bands."""
    loss, norm, val = Role.LOSS, Role.GRAD_NORM, Role.VAL_LOSS
    critical = Severity.CRITICAL
    return (
        NoNumber(name="loss-non-finite", about="The loss is NaN or infinite.", role=loss, severity=critical),
        NoNumber(name="grad-norm-non-finite", about="The grad norm is NaN or infinite.", role=norm, severity=critical),
        Excess(
            name="loss-spike", about="The loss is far above its own recent trend.", role=loss, guard=True,
            statistic=jumps, condition=lambda factor: Jump(window=WINDOW, factor=factor), floor=0.05,
        ),
        Excess(
            name="grad-norm-spike", about="The grad norm is far above its own recent trend.", role=norm, guard=True,
            statistic=jumps, condition=lambda factor: Jump(window=WINDOW, factor=factor), floor=0.2,
        ),
        Excess(
            name="loss-scale-halvings", about="The loss scale was halved again and again.", role=Role.LOSS_SCALE,
            statistic=drops, condition=lambda factor: Drop(window=WINDOW, factor=factor), floor=1.0,
        ),
        Excess(
            name="val-loss-rise", about="The validation loss rises away from its best.", role=val, for_points=2,
            guard=True, statistic=over_best, condition=lambda factor: OverBest(factor=factor), floor=0.02,
        ),
        Often(
            name="clip-rate", about="Clipping fires on far more points than in healthy runs.", role=Role.CLIP_RATE,
            guard=True, window=200,
        ),
        StepBack(name="step-backwards", about="The step counter went back.", role=loss),
        Silence(name="stalled", about="The run logs no new points.", role=loss, severity=critical),
    )

"""Alert rules, in words no tracker owns: what is watched, when it speaks, and how far it can be trusted.

A rule watches one metric of the runs of one config (or of all runs) and fires once its condition has held for
``for_points`` points in a row. Conditions are told apart by their key ``is``.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from runtriage.model.vocab import Severity

RULES_SCHEMA = "runtriage.rules/1"

Positive = Annotated[float, msgspec.Meta(gt=0.0)]
Points = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Window = Annotated[int, msgspec.Meta(ge=2, le=100_000)]
Share = Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
Factor = Annotated[float, msgspec.Meta(gt=1.0)]
EndState = Literal["failed", "killed", "finished"]


class _Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="is"):
    """What all conditions share: the key that tells them apart, and that unknown keys are mistakes."""


class NonFinite(_Condition, frozen=True, tag="non_finite"):
    """The value is NaN or infinite."""


class Above(_Condition, frozen=True, tag="above"):
    """The value is larger than a limit, in the metric's own units."""

    value: float


class Below(_Condition, frozen=True, tag="below"):
    """The value is smaller than a limit, in the metric's own units."""

    value: float


class Knot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The band at one step; between knots its logarithm is interpolated.

    Attributes
    ----------
    step
        Where.
    low, high
        In the metric's own units; None leaves that side open.
    """

    step: int
    low: Positive | None = None
    high: Positive | None = None


class OutsideBand(_Condition, frozen=True, tag="outside_band"):
    """The median of the last ``window`` points is outside the cohort's band; says nothing before or behind the knots.

    Attributes
    ----------
    window
        Points of the median; 1 takes each point as it is.
    knots
        At rising steps.
    """

    window: Points
    knots: Annotated[tuple[Knot, ...], msgspec.Meta(min_length=2)]


class Jump(_Condition, frozen=True, tag="jump"):
    """The value is more than ``factor`` times the median of the ``window`` points before it."""

    window: Window
    factor: Factor


class Drop(_Condition, frozen=True, tag="drop"):
    """The value is less than the largest of the ``window`` points before it divided by ``factor``."""

    window: Window
    factor: Factor


class OverBest(_Condition, frozen=True, tag="over_best"):
    """The value is more than ``factor`` times the smallest so far."""

    factor: Factor


class ShareAbove(_Condition, frozen=True, tag="share_above"):
    """Among the last ``window`` points, more than ``share`` are larger than one half (a flag that is on)."""

    window: Window
    share: Share


class ZScore(_Condition, frozen=True, tag="z_score"):
    """The value is more than ``limit`` standard deviations from the mean of the ``window`` points before it."""

    window: Window
    limit: Positive


class Backwards(_Condition, frozen=True, tag="backwards"):
    """The step of a row is smaller than that of a row logged before it."""


class Stalled(_Condition, frozen=True, tag="stalled"):
    """No further point for so many seconds while the run should be running."""

    seconds: Positive


class Ended(_Condition, frozen=True, tag="ended"):
    """The run ended in one of these states. It watches the run itself: neither role nor metric is needed."""

    states: Annotated[tuple[EndState, ...], msgspec.Meta(min_length=1)] = ("failed",)


Condition = (
    NonFinite | Above | Below | OutsideBand | Jump | Drop | OverBest | ShareAbove | ZScore | Backwards | Stalled | Ended
)


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """On how many of how many runs a rule fired."""

    fired: Annotated[int, msgspec.Meta(ge=0)]
    runs: Annotated[int, msgspec.Meta(ge=0)]

    @property
    def rate(self) -> float:
        """Share of the runs; 0.0 of none."""
        return self.fired / self.runs if self.runs else 0.0


class Provenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a derived rule comes from and what it was measured to do.

    Attributes
    ----------
    runs
        Healthy runs of the config from which the limits come.
    false_alarms
        Leave-one-out: each healthy run replayed against limits from the others.
    pooled
        The same for the rules of this kind of all configs of the source.
    at_most
        Upper end of the 95 % interval of the pooled false-alarm rate: few runs cannot promise much.
    hits
        Runs of the config known to be bad on which it fires.
    widened
        How many times wider than first tried the margin had to become to keep the budget; 1 for not at all.
    """

    runs: int
    false_alarms: Measured
    pooled: Measured
    at_most: float
    hits: Measured
    widened: float = 1.0


class AlertRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One rule.

    Attributes
    ----------
    id
        Stable name: what it watches and the config's fingerprint. Letters, digits, ``_`` and ``-``.
    about
        One sentence for the person who is woken by it.
    role, metric
        What is watched: the role decides where it is given, else the metric's exact name (hostile input).
    config
        Fingerprint of the runs it is for; empty for all runs.
    condition
        When it speaks.
    for_points
        How many points in a row the condition must hold.
    after_step
        First step at which it may fire: the guard over warm-up.
    severity
        How urgent.
    expires
        ISO date after which the rule should be derived again; empty for never.
    keep
        True for a rule that re-derivation must leave as it is.
    measured
        Provenance of a derived rule, None for one written by hand.
    """

    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
    about: str
    role: str = ""
    metric: str = ""
    config: str = ""
    condition: Condition
    for_points: Points = 1
    after_step: int = 0
    severity: Severity = Severity.WARNING
    expires: str = ""
    keep: bool = False
    measured: Provenance | None = None


class Dropped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule that was not made, and why."""

    id: str
    reason: str


class RuleSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rules of one source, as they stand in a file."""

    schema: str
    source: str = ""
    budget: float = 0.02
    rules: tuple[AlertRule, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One episode in which a rule spoke.

    Attributes
    ----------
    rule, run_id
        Which rule, on which run.
    step
        Where it fired: the last of the first ``for_points`` points; for the end of a run, the step after its last.
    last_step
        The last point at which the condition held.
    value
        Of the metric at ``step``; NaN for the end of a run.
    ongoing
        True while the condition holds at the newest point.
    """

    rule: str
    run_id: str
    step: int
    last_step: int
    value: float
    ongoing: bool

"""What is said about one run: schema ``runtriage.report/1``.

The field names and their meaning are a contract that others script against: extend, never rename.
"""

from __future__ import annotations

import msgspec

from runtriage.model.vocab import (
    BaselineKind,
    CauseId,
    Explanation,
    FindingKind,
    Lang,
    Level,
    Outcome,
    RunState,
    Severity,
)

REPORT_SCHEMA = "runtriage.report/1"


def stated(lang: Lang) -> Lang | msgspec.UnsetType:
    """Return a language as a report states it: English goes without saying."""
    return msgspec.UNSET if lang is Lang.EN else lang


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate cause of a finding.

    Attributes
    ----------
    id
        The cause.
    weight
        Share of belief among the candidates of this finding; they sum to one.
    because
        The numbers in this run that raised or lowered it.
    verify
        Steps that would confirm or refute it.
    try_
        Remedies to try once it is confirmed (``try`` in JSON).
    """

    id: CauseId
    weight: float
    because: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    try_: tuple[str, ...] = msgspec.field(default=(), name="try")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An abnormal form at a place in a curve.

    Attributes
    ----------
    kind
        The form.
    metric
        Name of the metric as logged.
    role
        What the metric means (a :class:`~runtriage.model.vocab.Role`, or ``layer_grad_norm/NAME``).
    start_step, end_step
        Half-open span; ``end_step`` is None while it lasts to the end of the history.
    peak_step
        Where it is strongest.
    severity
        How much it matters.
    z
        Size in robust standard deviations, positive for larger than expected. May be infinite.
    p_false_alarm
        Chance that a healthy run shows this or more, over all positions and detectors of its kind.
    outcome
        What became of it.
    explained_by
        Why it is by design, or None.
    evidence
        Sentences with the numbers seen.
    causes
        Candidates, likeliest first.
    """

    kind: FindingKind
    metric: str
    role: str
    start_step: int
    end_step: int | None = None
    peak_step: int
    severity: Severity
    z: float
    p_false_alarm: float | None = None
    outcome: Outcome | None = None
    explained_by: Explanation | None = None
    evidence: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of training with one behaviour of the learning rate: ``warmup``, ``main`` or ``decay``."""

    name: str
    start_step: int
    end_step: int


class BaselineUse(msgspec.Struct, frozen=True, kw_only=True):
    """Which baseline a verdict rests on.

    Attributes
    ----------
    kind
        Cohort, the run's own past, or none.
    runs
        Number of other runs in it after exclusions.
    fingerprint
        Of the config the cohort shares; empty without a cohort.
    paired
        True when the siblings share the data order and were subtracted row by row.
    excluded
        Ids of members left out because they behave differently.
    formed_by
        How the cohort was formed, in a few words.
    """

    kind: BaselineKind
    runs: int = 0
    fingerprint: str = ""
    paired: bool = False
    excluded: tuple[str, ...] = ()
    formed_by: str = ""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The run a report is about."""

    source: str
    id: str
    name: str
    state: RunState
    url: str | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """Who wrote the report."""

    name: str = "runtriage"
    version: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one run with everything it rests on.

    Attributes
    ----------
    verdict
        The level; ``withheld`` when nothing can be said, with the reason.
    reason
        One plain sentence.
    p_false_alarm
        Chance that a healthy run would get this verdict or a worse one; None when withheld.
    missing
        What is not logged, or could not be read, and would have helped.
    series
        Metric name to role, as each series was read.
    lang
        Language of its sentences, where that is not English; see :attr:`language`.
    """

    schema: str = REPORT_SCHEMA
    run: RunSummary
    verdict: Level
    reason: str
    p_false_alarm: float | None = None
    baseline: BaselineUse
    phases: tuple[Phase, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()
    series: dict[str, str] = msgspec.field(default_factory=dict)
    tool: Tool = Tool()
    lang: Lang | msgspec.UnsetType = msgspec.UNSET

    @property
    def language(self) -> Lang:
        """Language of the report's sentences, and thus of everything that is put around them."""
        return Lang.EN if self.lang is msgspec.UNSET else self.lang

"""Words for the vocabularies, the same in every report; and names from outside made harmless.

Nothing here knows why a curve looks as it does: causes, checks and remedies come with the report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from runtriage.model.report import BaselineUse, Finding, Report
from runtriage.model.vocab import LEVEL_ORDER, BaselineKind, CauseId, Explanation, FindingKind, Level, Severity

NAME_LIMIT = 80
SENTENCE_LIMIT = 400

TROUBLE = (Level.BROKEN, Level.SUSPICIOUS, Level.WATCH, Level.WITHHELD, Level.HEALTHY)
"""Levels in the order in which people want to see runs."""

_TITLES = {
    FindingKind.NON_FINITE: "Non-finite values",
    FindingKind.LR_DISCONTINUITY: "Learning rate jump",
    FindingKind.SCOPE_CHANGE: "Change of scale",
    FindingKind.GRAD_SPIKE: "Gradient spike",
}
_ROLES = {"lr": "learning rate", "grad_norm": "gradient norm", "val_loss": "validation loss"}
_EXPLAINED = {
    Explanation.LR_DECAY: "a planned drop of the learning rate",
    Explanation.WARMUP: "warm-up",
    Explanation.DATA_SWITCH: "a logged switch of the data source",
    Explanation.EPOCH_BOUNDARY: "an epoch boundary",
    Explanation.SHARED_BATCH: "a batch that sibling runs stumble over too",
    Explanation.RESUME: "a resume",
    Explanation.BATCH_NOISE: "batch noise",
}
_SEVERITIES = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)


def one_line(text: str, limit: int = NAME_LIMIT) -> str:
    r"""Return text from outside without control, bidirectional or other unprintable characters, cut to a length.

    Examples
    --------
    >>> one_line("a\x1b[31mb\n\u202ec"), one_line("abcdef", 4)
    ('a?[31mb??c', 'abc…')
    """
    flat = "".join(c if c.isprintable() else "?" for c in text[: limit + 1])
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def title(kind: FindingKind) -> str:
    """Return a form in words."""
    return _TITLES.get(kind, kind.value.replace("_", " ").capitalize())


def role_name(role: str) -> str:
    """Return a role in words; the layer of a layer's norm comes from outside and is made harmless."""
    base, _, layer = role.partition("/")
    name = _ROLES.get(base, base.replace("_", " "))
    return f"{one_line(name)} of {one_line(layer)}" if layer else one_line(name)


def cause_name(cause: CauseId) -> str:
    """Return a cause in words."""
    words = cause.value.replace("_", " ")
    return "LR" + words[2:] if words.startswith("lr ") else words[:1].upper() + words[1:]


def explanation(why: Explanation) -> str:
    """Return in words why a finding is by design."""
    return _EXPLAINED[why]


def span(finding: Finding) -> str:
    """Return where a finding is: the first step and the last step that shows it."""
    if finding.end_step is None:
        return f"from step {finding.start_step} on"
    last = finding.end_step - 1
    first = finding.start_step
    return f"at step {first}" if last <= first else f"from step {first} to {last}"


def size(z: float) -> str:
    """Return a robust z for people."""
    if math.isnan(z):
        return "z unknown"
    return f"z {z:+.1f}" if math.isfinite(z) else "beyond any scale"


def chance(p: float | None) -> str:
    """Return a chance of false alarm for people; empty if there is none.

    Examples
    --------
    >>> chance(0.0123), chance(3e-8), chance(None)
    ('1.2 %', 'under 0.001 %', '')
    """
    if p is None or math.isnan(p):
        return ""
    return "under 0.001 %" if p < 1e-5 else f"{100 * p:.2g} %" if p < 0.995 else "100 %"


def share(weight: float) -> str:
    """Return a weight as a percentage."""
    return f"{100 * weight:.0f} %" if math.isfinite(weight) else "?"


def compared(use: BaselineUse) -> str:
    """Return what a run was compared with."""
    if use.kind == BaselineKind.COHORT:
        return f"{use.runs} run{'' if use.runs == 1 else 's'} of the same config"
    return "its own past" if use.kind == BaselineKind.SELF else "nothing"


def telling(report: Report) -> list[Finding]:
    """Return the findings that are not explained, worst first, then earliest."""
    found = [f for f in report.findings if f.explained_by is None]
    return sorted(found, key=lambda f: (_SEVERITIES.index(f.severity), f.start_step))


def explained(report: Report) -> list[Finding]:
    """Return the findings that are by design, in order of training."""
    return sorted((f for f in report.findings if f.explained_by is not None), key=lambda f: f.start_step)


def is_flagged(report: Report) -> bool:
    """Tell whether a person should look at the run."""
    return report.verdict in LEVEL_ORDER and report.verdict != Level.HEALTHY


def by_trouble(reports: Iterable[Report]) -> list[Report]:
    """Return reports, worst first, then by name and id."""
    return sorted(reports, key=lambda r: (TROUBLE.index(r.verdict), r.run.name, r.run.id))


def tally(levels: Sequence[Level]) -> str:
    """Return how many runs have which verdict, worst first."""
    counts = [(levels.count(level), level) for level in TROUBLE]
    return ", ".join(f"{n} {level}" for n, level in counts if n)

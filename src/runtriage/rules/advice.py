"""What a rule that fires may mean before anybody has looked at the run: its likely causes, and how to check. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from runtriage.analysis.diagnose import CAUSES
from runtriage.analysis.remedies import REMEDIES
from runtriage.model.rule import AlertRule, Backwards, Below, Drop, NonFinite, OutsideBand, Stalled
from runtriage.model.vocab import CauseId, FindingKind, Role

_SHOWN = 3

_FORMS: dict[str, FindingKind] = {
    Role.LOSS: FindingKind.LOSS_SPIKE, Role.GRAD_NORM: FindingKind.GRAD_SPIKE,
    Role.GRAD_NORM_CLIPPED: FindingKind.GRAD_SPIKE, Role.VAL_LOSS: FindingKind.OVERFIT,
    Role.LR: FindingKind.LR_DISCONTINUITY, Role.CLIP_RATE: FindingKind.CLIP_SATURATION,
    Role.LOSS_SCALE: FindingKind.LOSS_SCALE_COLLAPSE, Role.SKIPPED_STEPS: FindingKind.LOSS_SCALE_COLLAPSE,
    Role.PARAM_NORM: FindingKind.BASELINE_DRIFT, Role.UPDATE_RATIO: FindingKind.BASELINE_DRIFT,
    Role.ATTENTION_LOGIT: FindingKind.BASELINE_DRIFT, Role.LAYER_GRAD_NORM: FindingKind.LAYER_IMBALANCE,
}
_BANDS: dict[str, FindingKind] = {
    Role.LOSS: FindingKind.DIVERGENCE, Role.GRAD_NORM: FindingKind.BASELINE_DRIFT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Candidates from the table of causes, likeliest first, in our own words.

    Attributes
    ----------
    causes
        With the weight each has before any clue of the run is known.
    checks
        The first check of each, in the same order.
    """

    causes: tuple[tuple[CauseId, float], ...]
    checks: tuple[str, ...]


def advise(rule: AlertRule) -> Advice:
    """Return what a rule may mean."""
    form = _form(rule)
    table = CAUSES[form] if form is not None else ((CauseId.UNKNOWN, 1.0, ()),)
    causes = tuple((cause, prior) for cause, prior, _ in sorted(table, key=lambda row: -row[1])[:_SHOWN])
    return Advice(causes=causes, checks=tuple(REMEDIES[cause].verify[0] for cause, _ in causes))


def _form(rule: AlertRule) -> FindingKind | None:
    """Return the form of an abnormal curve that a rule looks for."""
    role = rule.role.partition("/")[0]
    match rule.condition:
        case NonFinite():
            return FindingKind.NON_FINITE
        case Stalled():
            return FindingKind.LOGGING_GAP
        case Backwards():
            return FindingKind.RESUME_DISCONTINUITY
        case Below() if role == Role.GRAD_NORM:
            return FindingKind.VANISHING_GRADIENT
        case OutsideBand() if role in _BANDS:
            return _BANDS[role]
        case Drop() if role != Role.LOSS_SCALE:
            return None
        case _:
            return _FORMS.get(role)

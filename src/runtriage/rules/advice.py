"""What a rule that fires may mean before anybody has looked at the run: its likely causes, and how to check. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from runtriage.analysis.diagnose import CAUSES
from runtriage.analysis.remedies import REMEDIES
from runtriage.model.rule import AlertRule, Backwards, Below, Ended, NonFinite, OutsideBand, Stalled
from runtriage.model.texts import term, text
from runtriage.model.vocab import CauseId, FindingKind, Lang, Role

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

    causes: tuple[tuple[str, float], ...]
    checks: tuple[str, ...]


def advise(rule: AlertRule, lang: Lang = Lang.EN) -> Advice:
    """Return what a rule may mean."""
    form = _form(rule)
    table = CAUSES[form] if form is not None else ((CauseId.UNKNOWN, 1.0, ()),)
    likely = [(cause, prior) for cause, prior, _ in sorted(table, key=lambda row: -row[1])[:_SHOWN]]
    return Advice(
        causes=tuple((term("cause", cause, lang), prior) for cause, prior in likely),
        checks=tuple(text(REMEDIES[cause].verify[0], lang) for cause, _ in likely),
    )


def _form(rule: AlertRule) -> FindingKind | None:
    """Return the form of an abnormal curve that a rule looks for."""
    role = rule.role.partition("/")[0]
    form = _FORMS.get(role)
    match rule.condition:
        case NonFinite():
            form = FindingKind.NON_FINITE
        case Stalled():
            form = FindingKind.LOGGING_GAP
        case Backwards():
            form = FindingKind.RESUME_DISCONTINUITY
        case Ended():
            form = None
        case Below() if role == Role.GRAD_NORM:
            form = FindingKind.VANISHING_GRADIENT
        case OutsideBand() if role in _BANDS:
            form = _BANDS[role]
    return form

"""From a form to its candidate causes: a table of what makes each likelier or less likely, and how to check it.

Each candidate of a kind starts from a prior weight and is multiplied by the likelihood ratio of every clue that holds
in this run. The ratios are judgements from the published cases in ``DIAGNOSIS`` terms (an isolated grad spike at the
same step speaks for the batch, growth before the spike for an instability of the model, and so on), kept to 1/4 ... 8
so that no clue decides alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtriage.analysis.form import Form
from runtriage.analysis.remedies import REMEDIES
from runtriage.model.phrase import phrase
from runtriage.model.report import Cause
from runtriage.model.texts import say, text
from runtriage.model.vocab import CauseId, FindingKind, Lang


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A number of a form that, within ``[low, high)``, multiplies the weight of a cause.

    Attributes
    ----------
    measure
        Key into :attr:`Form.measures`.
    low, high
        Range in which the clue holds.
    ratio
        Likelihood ratio.
    text
        Key of what is told, with ``{x}`` for the number.
    """

    measure: str
    low: float = float("-inf")
    high: float = float("inf")
    ratio: float = 1.0
    text: str = ""


_GROWS_AHEAD = Clue(
    measure="lead", low=1.5, ratio=4.0, text="clue.grows_ahead"
)
_ALONE = Clue(
    measure="lead", high=1.0, ratio=1.5,
    text="clue.alone"
)
_WITH_NORM = Clue(measure="other_z", low=5.0, ratio=2.5, text="clue.with_norm")
_ONCE = Clue(measure="recurs", high=3.0, ratio=2.0, text="clue.once")
_OFTEN = Clue(
    measure="recurs", low=6.0, ratio=3.0, text="clue.often"
)
_STAYS = Clue(measure="stays", low=0.3, ratio=2.5, text="clue.stays")
_LOW_LR = Clue(
    measure="lr_ratio", high=-0.15, ratio=8.0, text="clue.other_lr"
)
_HIGH_LR = Clue(
    measure="lr_ratio", low=0.15, ratio=8.0, text="clue.other_lr"
)
_SAME_LR = Clue(measure="lr_ratio", low=-0.15, high=0.15, ratio=2.0, text="clue.same_lr")
_FROM_START = Clue(measure="from_start", low=0.5, ratio=2.0, text="clue.from_start")
_ATTENTION = Clue(
    measure="attention", low=0.4, ratio=8.0, text="clue.attention"
)
_LASTS_SAME_LR = Clue(
    measure="final", low=0.3, ratio=2.0,
    text="clue.settles"
)
_ATTENTION_GROWS = Clue(measure="attention", low=1.0, ratio=4.0, text="clue.keeps_growing")
_NORM_JUMPS = Clue(measure="norm_jump", low=0.4, ratio=2.0, text="clue.norm_jumps")
_NORM_CALM = Clue(
    measure="norm_jump", high=0.2, ratio=1.5, text="clue.norm_calm"
)
_OVERFLOWS = Clue(measure="scale_drop", low=2.0, ratio=5.0, text="clue.overflows")
_ROSE = Clue(measure="rise_before", low=0.2, ratio=3.0, text="clue.rose")
_SUDDEN = Clue(measure="rise_before", high=0.1, ratio=1.5, text="clue.sudden")
_FIRST_ROW = Clue(measure="first_row", low=0.5, ratio=8.0, text="clue.first_row")
_LOWER_CLIP = Clue(measure="clip_value", high=0.6, ratio=6.0, text="clue.lower_clip")
_PINNED = Clue(measure="pinned", low=0.5, ratio=2.0, text="clue.pinned")
_EXPLODES = Clue(
    measure="explodes", low=1.0, ratio=4.0, text="clue.explodes"
)
_DEAD_LAYER = Clue(measure="dead_layer", low=0.5, ratio=6.0, text="clue.dead_layer")
_UPDATES_JUMP = Clue(
    measure="update_jump", low=0.7, ratio=4.0, text="clue.updates_jump"
)
_EPOCH_BACK = Clue(measure="epoch_back", low=1e-6, ratio=6.0, text="clue.epoch_back")
_BEGAN_ANEW = Clue(
    measure="jump", low=0.4, ratio=8.0, text="clue.began_anew"
)
_VAL_JUMPS = Clue(measure="val_jump", low=0.03, ratio=4.0, text="clue.val_jumps")

CAUSES: Mapping[FindingKind, tuple[tuple[CauseId, float, tuple[Clue, ...]], ...]] = {
    FindingKind.NON_FINITE: (
        (CauseId.NUMERICAL_OVERFLOW, 0.45, (_OVERFLOWS, _SUDDEN)),
        (CauseId.LR_TOO_LARGE, 0.25, (_ROSE,)),
        (CauseId.BAD_BATCH, 0.2, (_SUDDEN,)),
        (CauseId.CODE_BUG, 0.1, (_FIRST_ROW,)),
    ),
    FindingKind.LOSS_SPIKE: (
        (CauseId.BAD_BATCH, 0.4, (_ALONE, _WITH_NORM, _ONCE)),
        (CauseId.LR_TOO_LARGE, 0.25, (_OFTEN, _STAYS, _GROWS_AHEAD)),
        (CauseId.NUMERICAL_OVERFLOW, 0.15, ()),
        (CauseId.DATA_SWITCH, 0.12, (_STAYS, _LASTS_SAME_LR)),
        (CauseId.ATTENTION_LOGIT_GROWTH, 0.13, (_GROWS_AHEAD, _ATTENTION, _ATTENTION_GROWS)),
    ),
    FindingKind.GRAD_SPIKE: (
        (CauseId.BAD_BATCH, 0.3, (_ONCE, _WITH_NORM)),
        (
            CauseId.CLIPPING_HIDES_EXPLOSION, 0.3,
            (Clue(measure="late", low=1.0, ratio=3.0, text="clue.norm_stays"), _OFTEN)
        ),
        (CauseId.LAYER_FAULT, 0.2, ()),
        (CauseId.ATTENTION_LOGIT_GROWTH, 0.1, (_ATTENTION, _ATTENTION_GROWS)),
        (CauseId.WEIGHT_GROWTH, 0.1, ()),
    ),
    FindingKind.DIVERGENCE: (
        (CauseId.LR_TOO_LARGE, 0.4, (_HIGH_LR, _NORM_JUMPS)),
        (CauseId.WEIGHT_GROWTH, 0.25, (_SAME_LR,)),
        (CauseId.ATTENTION_LOGIT_GROWTH, 0.15, (_ATTENTION, _ATTENTION_GROWS)),
        (CauseId.MISLABELLED_DATA, 0.1, (_NORM_CALM,)),
        (CauseId.DATA_SWITCH, 0.1, ()),
    ),
    FindingKind.OSCILLATION: (
        (CauseId.LR_TOO_LARGE, 0.8, ()),
        (CauseId.DATA_ORDER_CHANGED, 0.1, ()),
        (CauseId.UNKNOWN, 0.1, ()),
    ),
    FindingKind.STEP_UP: (
        (CauseId.DATA_SWITCH, 0.4, (_NORM_CALM,)),
        (CauseId.OPTIMIZER_STATE_LOST, 0.25, (_NORM_JUMPS,)),
        (CauseId.DATA_ORDER_CHANGED, 0.2, ()),
        (CauseId.LOSS_REDUCTION_CHANGED, 0.15, (_NORM_CALM,)),
    ),
    FindingKind.STEP_DOWN: (
        (CauseId.DATA_SWITCH, 0.5, (_VAL_JUMPS,)),
        (CauseId.REPEATED_DATA, 0.3, ()),
        (CauseId.LOSS_REDUCTION_CHANGED, 0.2, ()),
    ),
    FindingKind.PLATEAU: (
        (CauseId.LR_TOO_SMALL, 0.3, (_LOW_LR,)),
        (CauseId.FROZEN_MODULES, 0.25, (_SAME_LR, _FROM_START)),
        (CauseId.LR_TOO_LARGE, 0.1, (_HIGH_LR,)),
        (CauseId.BAD_INITIALISATION, 0.1, (_FROM_START,)),
        (CauseId.CAPACITY_OR_DONE, 0.15, ()),
        (CauseId.REPEATED_DATA, 0.1, ()),
        (CauseId.ATTENTION_LOGIT_GROWTH, 0.03, (_ATTENTION, _ATTENTION_GROWS)),
    ),
    FindingKind.VANISHING_GRADIENT: (
        (CauseId.BAD_INITIALISATION, 0.35, (_FROM_START,)),
        (CauseId.LAYER_FAULT, 0.3, ()),
        (CauseId.FROZEN_MODULES, 0.2, ()),
        (CauseId.LR_TOO_SMALL, 0.15, ()),
    ),
    FindingKind.LR_DISCONTINUITY: ((CauseId.SCHEDULER_RESET, 0.85, ()), (CauseId.CODE_BUG, 0.15, ())),
    FindingKind.RESUME_DISCONTINUITY: (
        (CauseId.OPTIMIZER_STATE_LOST, 0.45, (_UPDATES_JUMP,)),
        (CauseId.DATA_ORDER_CHANGED, 0.3, (_EPOCH_BACK,)),
        (CauseId.SCHEDULER_RESET, 0.15, ()),
        (CauseId.MODEL_REINITIALISED, 0.1, (_BEGAN_ANEW,)),
    ),
    FindingKind.CLIP_SATURATION: (
        (CauseId.CLIP_TOO_LOW, 0.35, (_LOWER_CLIP, _PINNED)),
        (CauseId.CLIPPING_HIDES_EXPLOSION, 0.35, (_EXPLODES,)),
        (CauseId.LR_TOO_LARGE, 0.2, ()),
        (CauseId.LOGGING_SCOPE_CHANGED, 0.1, ()),
    ),
    FindingKind.LAYER_IMBALANCE: (
        (CauseId.LAYER_FAULT, 0.6, ()),
        (CauseId.FROZEN_MODULES, 0.3, (_DEAD_LAYER,)),
        (CauseId.LOGGING_SCOPE_CHANGED, 0.1, ()),
    ),
    FindingKind.OVERFIT: (
        (CauseId.REPEATED_DATA, 0.65, (_FROM_START,)),
        (CauseId.CAPACITY_OR_DONE, 0.2, ()),
        (CauseId.DATA_SWITCH, 0.15, ()),
    ),
    FindingKind.WARMUP_RISE: (
        (CauseId.LR_TOO_LARGE, 0.6, (_HIGH_LR,)),
        (CauseId.BAD_INITIALISATION, 0.25, (_SAME_LR,)),
        (CauseId.NUMERICAL_OVERFLOW, 0.15, ()),
    ),
    FindingKind.LOSS_SCALE_COLLAPSE: (
        (
            CauseId.NUMERICAL_OVERFLOW, 0.75,
            (Clue(measure="halvings", low=4.0, ratio=1.5, text="clue.halvings"),)
        ),
        (CauseId.LR_TOO_LARGE, 0.15, ()),
        (CauseId.BAD_BATCH, 0.1, ()),
    ),
    FindingKind.LOGGING_GAP: ((CauseId.CODE_BUG, 0.6, ()), (CauseId.UNKNOWN, 0.4, ())),
    FindingKind.SCOPE_CHANGE: (
        (
            CauseId.LOSS_REDUCTION_CHANGED, 0.5,
            (Clue(measure="final", low=0.3, ratio=3.0, text="clue.loss_factor"),)
        ),
        (
            CauseId.LOGGING_SCOPE_CHANGED, 0.5,
            (Clue(measure="late", ratio=3.0, text="clue.norm_factor"),),
        ),
    ),
    FindingKind.BASELINE_DRIFT: (
        (CauseId.WEIGHT_GROWTH, 0.35, ()),
        (CauseId.DATA_SWITCH, 0.3, ()),
        (CauseId.ATTENTION_LOGIT_GROWTH, 0.15, (_ATTENTION, _ATTENTION_GROWS)),
        (CauseId.UNKNOWN, 0.2, ()),
    ),
}
"""Kind of finding to (cause, prior, clues)."""


def diagnose(form: Form, lang: Lang = Lang.EN) -> tuple[Cause, ...]:
    """Rank the candidate causes of a form; weights sum to one.

    Parameters
    ----------
    form
        With the measures its detector left; a clue whose measure is missing neither raises nor lowers.
    lang
        Language of what is told.
    """
    scored: list[tuple[float, CauseId, tuple[str, ...]]] = []
    for cause, prior, clues in CAUSES.get(form.kind, ((CauseId.UNKNOWN, 1.0, ()),)):
        weight, because = prior, []
        for clue in clues:
            x = form.measures.get(clue.measure)
            if x is not None and clue.low <= x < clue.high:
                weight *= clue.ratio
                because.append(say(phrase(clue.text, x=x), lang))
        scored.append((weight, cause, tuple(because)))
    total = sum(w for w, _, _ in scored)
    scored.sort(key=lambda s: -s[0])
    return tuple(
        Cause(
            id=cause, weight=round(weight / total, 4), because=because,
            verify=tuple(text(key, lang) for key in REMEDIES[cause].verify),
            try_=tuple(text(key, lang) for key in REMEDIES[cause].try_),
        )
        for weight, cause, because in scored
    )

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
from runtriage.model.report import Cause
from runtriage.model.vocab import CauseId, FindingKind


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
        What is told, with ``{x}`` for the number.
    """

    measure: str
    low: float = float("-inf")
    high: float = float("inf")
    ratio: float = 1.0
    text: str = ""


_GROWS_AHEAD = Clue(
    measure="lead", low=1.5, ratio=4.0, text="the grad norm already ran {x:.1f} local sd high over the ten rows before"
)
_ALONE = Clue(
    measure="lead", high=1.0, ratio=1.5,
    text="nothing announced it: grad norm {x:+.1f} local sd over the ten rows before"
)
_WITH_NORM = Clue(measure="other_z", low=5.0, ratio=2.5, text="the other curve spikes at the same place (z {x:.1f})")
_ONCE = Clue(measure="recurs", high=3.0, ratio=2.0, text="it happens {x:.0f} time(s) in the run")
_OFTEN = Clue(
    measure="recurs", low=6.0, ratio=3.0, text="{x:.0f} bins of the run hold an excursion at least half as large"
)
_STAYS = Clue(measure="stays", low=0.3, ratio=2.5, text="the level stays {x:.2f} log units up")
_LOW_LR = Clue(
    measure="lr_ratio", high=-0.15, ratio=8.0, text="log lr is {x:+.2f} against the cohort's schedule from the start"
)
_HIGH_LR = Clue(
    measure="lr_ratio", low=0.15, ratio=8.0, text="log lr is {x:+.2f} against the cohort's schedule from the start"
)
_SAME_LR = Clue(measure="lr_ratio", low=-0.15, high=0.15, ratio=2.0, text="the lr is the cohort's (log ratio {x:+.2f})")
_FROM_START = Clue(measure="from_start", low=0.5, ratio=2.0, text="it is there from the first steps")
_ATTENTION = Clue(
    measure="attention", low=0.4, ratio=8.0, text="attention logits rise {x:.2f} log units over the cohort's"
)
_LASTS_SAME_LR = Clue(
    measure="final", low=0.3, ratio=2.0,
    text="the loss settles {x:.2f} log units up, neither coming back nor running away"
)
_ATTENTION_GROWS = Clue(measure="attention", low=1.0, ratio=4.0, text="and keep growing")
_NORM_JUMPS = Clue(measure="norm_jump", low=0.4, ratio=2.0, text="the grad norm jumps with it, by {x:.2f} log units")
_NORM_CALM = Clue(
    measure="norm_jump", high=0.2, ratio=1.5, text="the grad norm does not move with it ({x:+.2f} log units)"
)
_OVERFLOWS = Clue(measure="scale_drop", low=2.0, ratio=5.0, text="the loss scale was halved {x:.0f} times just before")
_ROSE = Clue(measure="rise_before", low=0.2, ratio=3.0, text="it rose {x:.2f} log units over the ten rows before")
_SUDDEN = Clue(measure="rise_before", high=0.1, ratio=1.5, text="the rows before show no rise ({x:+.2f} log units)")
_FIRST_ROW = Clue(measure="first_row", low=0.5, ratio=8.0, text="it is not finite from the first row on")
_LOWER_CLIP = Clue(measure="clip_value", high=0.6, ratio=6.0, text="the clip value is x {x:.2g} of the cohort's")
_PINNED = Clue(measure="pinned", low=0.5, ratio=2.0, text="the logged norm sits on one value on {x:.0%} of the rows")
_EXPLODES = Clue(
    measure="explodes", low=1.0, ratio=4.0, text="the norm before clipping is {x:.2f} log units over the cohort's"
)
_DEAD_LAYER = Clue(measure="dead_layer", low=0.5, ratio=6.0, text="the layer's gradient is next to nothing")
_UPDATES_JUMP = Clue(
    measure="update_jump", low=0.7, ratio=4.0, text="the update ratio jumps {x:.2f} log units at unchanged lr and norm"
)
_EPOCH_BACK = Clue(measure="epoch_back", low=1e-6, ratio=6.0, text="the epoch counter goes back by {x:.4g}")
_BEGAN_ANEW = Clue(
    measure="jump", low=0.4, ratio=8.0, text="the loss is {x:.2f} log units up at once, back where the run began"
)
_OVER = Clue(measure="over", low=0.26, ratio=8.0, text="the lr is {x:.2f} log units above anything the cohort used")
_VAL_JUMPS = Clue(measure="val_jump", low=0.03, ratio=4.0, text="validation jumps by {x:.2f} log units at one point")

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
            (Clue(measure="late", low=1.0, ratio=3.0, text="the norm stays {x:.2f} log units up"), _OFTEN)
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
            (Clue(measure="halvings", low=4.0, ratio=1.5, text="{x:.0f} halvings in one short stretch"),)
        ),
        (CauseId.LR_TOO_LARGE, 0.15, ()),
        (CauseId.BAD_BATCH, 0.1, ()),
    ),
    FindingKind.LOGGING_GAP: ((CauseId.CODE_BUG, 0.6, ()), (CauseId.UNKNOWN, 0.4, ())),
    FindingKind.SCOPE_CHANGE: (
        (
            CauseId.LOSS_REDUCTION_CHANGED, 0.5,
            (Clue(measure="final", low=0.3, ratio=3.0, text="the loss itself changes by a constant {x:.2f} log units"),)
        ),
        (
            CauseId.LOGGING_SCOPE_CHANGED, 0.5,
            (Clue(measure="late", ratio=3.0, text="the norm changes by a constant {x:.2f} log units alone"),),
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


def diagnose(form: Form) -> tuple[Cause, ...]:
    """Rank the candidate causes of a form; weights sum to one.

    Parameters
    ----------
    form
        With the measures its detector left; a clue whose measure is missing neither raises nor lowers.
    """
    scored: list[tuple[float, CauseId, tuple[str, ...]]] = []
    for cause, prior, clues in CAUSES.get(form.kind, ((CauseId.UNKNOWN, 1.0, ()),)):
        weight, because = prior, []
        for clue in clues:
            x = form.measures.get(clue.measure)
            if x is not None and clue.low <= x < clue.high:
                weight *= clue.ratio
                because.append(clue.text.format(x=x))
        scored.append((weight, cause, tuple(because)))
    total = sum(w for w, _, _ in scored)
    scored.sort(key=lambda s: -s[0])
    return tuple(
        Cause(
            id=cause, weight=round(weight / total, 4), because=because, verify=REMEDIES[cause].verify,
            try_=REMEDIES[cause].try_
        )
        for weight, cause, because in scored
    )

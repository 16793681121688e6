"""The level of the loss against the cohort's: steps, slow rises, early saturation, constant factors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from runtriage.analysis.context import attention_rise, data_switch_near, lr_above, lr_ratio
from runtriage.analysis.derived import MOVE
from runtriage.analysis.form import DRIFT_RANK, LAST_RESORT, Form, RunView, rows_against_centre
from runtriage.analysis.locate import episode, locate, middle, ramp_start
from runtriage.analysis.order_stats import Array, moving_mean, moving_median
from runtriage.analysis.shapes import Shape, best_shape, climbs
from runtriage.model.phrase import Phrase, phrase
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

_PERSIST = 3
_LEAST_STEP = 0.02
_LONG_BEFORE = 0.03
_SCOPE_JUMP = 0.62
_FACTOR_SPREAD = 0.25
_SMALL = 0.3
_PASSING = 0.12
_BACK = 0.3
_DOWNWARD = 0.1
"""Part of the loss's budget for departures downwards, which harm a run less often and rarely in a small way."""

_NO_CHANCE = 25.0
"""Weighted sum of squares by which one shape fits better than another and no chance makes it: five deviations."""

_JOINT_RANK = 12
"""Rank of what loss and norm say together: what either says alone comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A departure of the loss, measured: places in bins, rows and steps; sizes in log units."""

    bin: int
    shape: Shape | None
    soon: float
    row: int
    step: int
    is_step: bool
    jump: float
    final: float
    rise: float
    norm_jump: float
    constant: bool
    z: float
    detected: int


def detect(view: RunView) -> list[Form]:
    """Report the first lasting departure of the loss from the cohort, upwards and else downwards."""
    z = view.z.get(Role.LOSS)
    if z is None or not view.has_cohort:
        return []
    last = int(np.flatnonzero(np.isfinite(z))[-1]) + 1 if np.isfinite(z).any() else 0
    up = episode(z[:last], view.limit(Role.LOSS), _PERSIST, 1)
    if up is not None:
        return [_upward(view, _measure(view, up[0], last, 1), up, last)]
    moved = _move(view, last)
    if moved is not None:
        return [moved]
    down = episode(z[:last], view.stricter_limit(Role.LOSS, _DOWNWARD), _PERSIST, -1)
    if down is not None and down[0] > 2:
        return [_downward(view, _measure(view, down[0], last, -1))]
    joint = _joint(view, last)
    return [joint] if joint is not None else []


def _joint(view: RunView, last: int) -> Form | None:
    """Look for a loss that gets worse where the grad norm departs as well, which it would not be told for alone.

    A run that stands still has a higher loss and a lower norm than its siblings; one that steps or climbs moves up with
    a higher norm. Levels of healthy runs know little of each other's, and where they do, they differ to the same side:
    there the move of the loss is taken, which knows nothing of levels.
    """
    norm = view.z.get(Role.GRAD_NORM)
    if norm is None:
        return None
    limit = view.joint_limit()
    for role, sign in ((Role.LOSS, -1), (MOVE, 1)):
        if role not in view.z:
            continue
        both = np.minimum(view.z[role], sign * norm)[:last]
        hit = episode(both, limit, _PERSIST, 1)
        if hit is not None:
            form = _upward(view, _measure(view, hit[0], last, 1), hit, last)
            kind, rank = form.kind, max(form.rank, _JOINT_RANK)
            if kind == FindingKind.PLATEAU and sign > 0:  # a run that stands still has no higher norm
                kind, rank = FindingKind.STEP_UP, LAST_RESORT
            z = float(np.nanmax(both[hit[0] : hit[1]]))
            seen = float(np.nanmax(sign * norm[hit[0] : hit[1]])) * sign
            return dataclasses.replace(
                form, kind=kind, rank=rank, z=z, p=view.p_joint(z),
                evidence=(*form.evidence, phrase("joint.norm", z=seen)),
            )
    return None


def _moves(r: Array) -> Array:
    """Median of three bins from a place on less that of the three that end two bins before it; 0 at the start."""
    three = moving_median(r, 1)
    out = np.zeros(r.size)
    out[5:-1] = three[6:] - three[2 : r.size - 4]
    return np.nan_to_num(out)


def _move(view: RunView, last: int) -> Form | None:
    """Look for a step that stays, seen in how the level moves: smaller than the spread of levels between runs."""
    z, r = view.z.get(MOVE), view.r[Role.LOSS]
    hit = episode(z[:last], view.limit(MOVE), _PERSIST, 1) if z is not None else None
    if z is None or hit is None or hit[0] <= 3 or last - hit[1] < 4:
        return None
    at = hit[0] + int(np.nanargmax(z[hit[0] : hit[1]]))
    before, after = middle(r, at - 6, at - 1), middle(r, at + 1, at + 7)
    late = middle(r, at + 7, at + 13)
    if after - before < _LEAST_STEP or late - before < 0.5 * (after - before):
        return None
    change = _measure(view, at, last, 1)
    extreme = float(z[at])
    explained = Explanation.DATA_SWITCH if data_switch_near(view, change.step) else None
    return Form(
        kind=FindingKind.STEP_UP, role=Role.LOSS, start=change.step,
        detected=max(change.step, int(view.axis.edges[at])), peak=change.step,
        z=extreme, p=view.p_level(MOVE, extreme), outcome=Outcome.ONGOING, explained_by=explained, rank=14,
        evidence=(
            phrase("level.moves", factor=np.exp(after - before), members=view.members, z=extreme),
        ),
        measures={"jump": after - before, "final": late - before, "norm_jump": change.norm_jump},
    )


def _measure(view: RunView, at: int, last: int, sign: int) -> _Change:
    step, rows = rows_against_centre(view, Role.LOSS)
    r, edges, bins = view.r[Role.LOSS], view.axis.edges, view.axis.bins
    back = max(4, min(6, bins // 8))
    tail = max(3, bins // 10)
    before = middle(r, at - 8, max(1, at - 2)) if at > 2 else 0.0
    final = middle(r, max(at, last - tail), last) - before
    # the largest single move of the level decides where to look: a smooth start may hide the step that follows it
    moves = sign * _moves(r)[at:last]
    wanted = 0.5 * max(abs(final), 0.1)
    if moves.size and moves.max() > wanted and not (moves[:3] > wanted).any():
        at += int(moves.argmax())
        before = middle(r, at - 8, max(1, at - 2))
        final = middle(r, max(at, last - tail), last) - before
    lo, hi = np.searchsorted(step, [edges[max(0, at - back)], edges[min(bins, at + back)]])
    onset = locate(rows, int(lo), int(hi))
    k, n = onset.index, rows.size
    past = rows[max(0, k - 60) : k]
    jump = middle(rows, k, k + max(12, n // 100)) - middle(rows, k - 60, k) if np.isfinite(past).sum() > 4 else 0.0
    shape = best_shape(sign * r[:last], view.sd[Role.LOSS][:last], view.centre[Role.LOSS][:last], view.axis.mid[:last])
    if shape is not None and shape.name == "step":
        lo, hi = np.searchsorted(step, [edges[max(0, shape.bin - 2)], edges[min(bins, shape.bin + 2)]])
        near = locate(rows, int(lo), int(hi))
        if near.is_step:
            onset, k = near, near.index
            jump = middle(rows, k, k + max(12, n // 100)) - middle(rows, k - 60, k)
    first = int(np.clip(np.searchsorted(edges, step[min(k, n - 1)]) - 1, 0, bins - 1))
    soon = middle(r, first + 1, first + max(3, bins // 16)) - before
    level = view.sketch.level[Role.LOSS]
    rise = middle(level, max(at, last - tail), last) - middle(level, at - 3, at + 1)
    norm_jump = 0.0
    if Role.GRAD_NORM in view.r:
        norm_step, norm = rows_against_centre(view, Role.GRAD_NORM)
        g = int(np.searchsorted(norm_step, step[min(k, n - 1)]))
        norm_jump = max(middle(norm, g, g + 10), middle(norm, g, g + 40)) - middle(norm, g - 60, g)
    z = view.z[Role.LOSS][at:last]
    return _Change(
        bin=at, row=k, shape=shape, soon=soon, step=int(step[min(k, n - 1)]), is_step=onset.is_step, jump=jump,
        final=final, rise=rise,
        norm_jump=norm_jump, constant=abs(final - jump) < _FACTOR_SPREAD * abs(jump),
        z=float(np.nanmax(z * sign)) * sign if z.size else 0.0, detected=int(edges[at]),
    )


def _upward(view: RunView, change: _Change, hot: tuple[int, int], last: int) -> Form:
    explained = Explanation.DATA_SWITCH if data_switch_near(view, change.step) else None
    back_at = hot[1]
    returned = back_at < last and abs(middle(view.r[Role.LOSS], last - 3, last)) < 0.35 * max(
        middle(view.r[Role.LOSS], hot[0], hot[1]), 1e-9
    )
    start_level = middle(view.sketch.rows[Role.LOSS][1], 0, max(5, view.sketch.rows[Role.LOSS][1].size // 50))
    now = middle(view.sketch.rows[Role.LOSS][1], change.row - 60, max(change.row, 1))
    calm = change.is_step and change.constant and change.final < _SMALL and change.norm_jump < _SMALL
    way_back = change.final > 0.5 * max(start_level - now, 0.2) and not calm
    kind, start, rank, outcome = FindingKind.DIVERGENCE, change.step, 9, Outcome.ONGOING
    early = change.bin <= 3 or change.step - view.axis.edges[0] < 0.04 * view.axis.span
    stalls = change.shape is not None and change.shape.name == "stall"
    sharp = change.jump > 0.4 * max(change.final, 0.05)
    if early:
        kind, start, rank = FindingKind.PLATEAU, int(view.axis.edges[0]), 16
    elif change.jump > _SCOPE_JUMP and change.constant and abs(change.norm_jump) < 0.35 * change.jump:
        kind, rank = FindingKind.SCOPE_CHANGE, 7
    elif explained is None and (
        (way_back and not stalls and change.soon > 0.4 * change.final)
        or (sharp and change.final > 0.3 and change.norm_jump > 0.9)
    ):
        kind, rank, outcome = FindingKind.LOSS_SPIKE, 8, Outcome.DIVERGED
        raised = lr_above(view)
        if raised is not None and raised < change.step - _LONG_BEFORE * view.axis.span:
            kind, rank, start = FindingKind.DIVERGENCE, 9, raised
    else:
        kind, rank, start = _by_shape(view, change, last)
    if _passes(view, hot, last):
        outcome, kind, rank, returned = Outcome.RECOVERED, FindingKind.LOSS_SPIKE, 31, True
        start = _left(view, change, hot)
    elif returned:
        outcome = Outcome.RECOVERED
        if kind in {FindingKind.STEP_UP, FindingKind.LOSS_SPIKE}:
            kind, rank = FindingKind.LOSS_SPIKE, 30
    return Form(
        kind=kind, role=Role.LOSS, start=start, detected=max(start, change.detected),
        peak=int(view.axis.mid[min(last - 1, change.bin + int(np.nanargmax(view.z[Role.LOSS][change.bin : last])))]),
        end=int(view.axis.edges[back_at]) if returned else None, z=change.z, p=view.p_level(Role.LOSS, change.z),
        outcome=outcome,
        explained_by=explained, rank=rank,
        evidence=(
            _against(view, change),
            phrase("loss.at_once", factor=np.exp(change.jump), step=change.step) if change.is_step
            else phrase("loss.gradual", step=start),
        ),
        measures={
            "jump": change.jump, "final": change.final, "rise": change.rise, "norm_jump": change.norm_jump,
            "from_start": float(early), "lr_ratio": lr_ratio(view), "attention": attention_rise(view, change.bin),
            "is_step": float(change.is_step),
        },
    )


def _passes(view: RunView, hot: tuple[int, int], last: int) -> bool:
    """Tell whether the loss left the cohort for a short while and was back for at least as long."""
    r = view.r[Role.LOSS]
    width, after = hot[1] - hot[0], last - hot[1]
    if hot[0] <= 3 or width > _PASSING * view.axis.bins or after < 2 * width:
        return False
    before = min(middle(r, hot[0] - 8, hot[0] - 1), middle(r, 0, hot[0]))  # it may have left before it was certain
    return middle(r, hot[1] + width, last) - before < _BACK * (middle(r, *hot) - before)


def _left(view: RunView, change: _Change, hot: tuple[int, int]) -> int:
    """Return the step at which a short departure begins: where the change was placed, or else in the bins before it."""
    first, stop = view.axis.edges[hot[0] - 3], view.axis.edges[hot[1]]
    if first <= change.step < stop:
        return change.step
    step, rows = rows_against_centre(view, Role.LOSS)
    lo, hi = np.searchsorted(step, [first, stop])
    return int(step[lo + int(np.nanargmax(rows[lo:hi]))]) if np.isfinite(rows[lo:hi]).any() else change.detected


def _by_shape(view: RunView, change: _Change, last: int) -> tuple[FindingKind, int, int]:
    """Name a departure that is no catastrophe by the template that fits its bins best, and say where it begins."""
    r, mid = view.r[Role.LOSS][:last], view.axis.mid[:last]
    shape = change.shape
    sharp = change.is_step and change.jump > 0.5 * change.final and change.jump > 0
    name = shape.name if shape is not None else ("step" if sharp else "rise")
    above = lr_above(view)
    if above is not None and above <= max(change.detected, change.step):
        if sharp and abs(change.step - above) < 0.03 * view.axis.span:
            return FindingKind.LOSS_SPIKE, 8, change.step
        return FindingKind.DIVERGENCE, 9, min(change.step, above)
    if name == "step":
        return FindingKind.STEP_UP, 14, change.step
    reach = max(0, change.bin - int(0.35 * view.axis.bins))
    begun = ramp_start(mid[reach:], moving_mean(r, 1)[reach:])
    start = min(int(begun) if shape is None else int(view.axis.edges[shape.bin]), change.step)
    if name == "rise" and climbs(change.rise, change.final):
        return FindingKind.DIVERGENCE, 9, start
    # a run that stands still falls behind by what its siblings gain, and no fit is better by more than chance
    stands = shape is None or shape.error["stall"] - shape.error["rise"] < _NO_CHANCE
    return FindingKind.PLATEAU if stands else FindingKind.DIVERGENCE, 16, start


def _downward(view: RunView, change: _Change) -> Form:
    explained = Explanation.DATA_SWITCH if data_switch_near(view, change.step) else None
    kind, rank = FindingKind.STEP_DOWN, 15
    if change.jump < -_SCOPE_JUMP and change.constant:
        kind, rank = FindingKind.SCOPE_CHANGE, 7
    elif not change.is_step and change.jump > 0.5 * change.final:
        kind, rank = FindingKind.BASELINE_DRIFT, DRIFT_RANK
    return Form(
        kind=kind, role=Role.LOSS, start=change.step, detected=change.detected, peak=change.step, z=change.z,
        p=view.p_level(Role.LOSS, change.z), outcome=Outcome.ONGOING, explained_by=explained, rank=rank,
        evidence=(_against(view, change),),
        measures={"jump": change.jump, "final": change.final, "norm_jump": change.norm_jump},
    )


def _against(view: RunView, change: _Change) -> Phrase:
    return phrase("level.against", role=Role.LOSS, factor=np.exp(change.final), members=view.members, z=change.z)

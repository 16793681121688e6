"""Validation against training: a gap that opens slowly is memorising, one that opens at once is other data."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.context import data_switch_near
from runtriage.analysis.derived import VAL_GAP
from runtriage.analysis.form import Form, RunView, rows_against_centre
from runtriage.analysis.locate import episode, middle
from runtriage.analysis.order_stats import Array, median, moving_median
from runtriage.model.phrase import phrase
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

_PERSIST = 3
_LEAST_GAP = 0.1
_LEAST_VAL = 0.03
_AT_ONCE = 0.4
_BEGUN = 0.5


def detect(view: RunView) -> list[Form]:
    """Report an overfitting gap, or the data switch that looks like one."""
    if not view.has_cohort or VAL_GAP not in view.z or Role.VAL_LOSS not in view.r:
        return []
    switch = _switch(view)
    if switch is not None:
        return [switch]
    z, gap, val = view.z[VAL_GAP], view.r[VAL_GAP], view.r[Role.VAL_LOSS]
    hit = episode(z, view.limit(VAL_GAP), _PERSIST, 1)
    if hit is None:
        return []
    a = hit[0]
    train = view.r[Role.LOSS]
    last = view.axis.bins
    late = max(3, last // 8)
    if np.nanmax(gap[a:]) < _LEAST_GAP or _ending(val, late) < _LEAST_VAL or middle(train, a, last) > -_LEAST_VAL:
        return []
    b = a
    while b > 0 and np.nan_to_num(z[b - 1]) > 1.5:
        b -= 1
    start = int(view.axis.edges[0] if b <= 2 else view.axis.edges[b])
    extreme = float(np.nanmax(z[a:]))
    return [
        Form(
            kind=FindingKind.OVERFIT, role=Role.VAL_LOSS, start=start, detected=start, peak=int(view.axis.mid[a]),
            z=extreme, p=view.p_level(VAL_GAP, extreme), outcome=Outcome.ONGOING, rank=5,
            evidence=(
                phrase("val.gap", factor=np.exp(np.nanmax(gap[a:])), z=extreme),
                phrase("val.both", train=np.exp(middle(train, a, last)), val=np.exp(_ending(val, late))),
            ),
            measures={"gap": float(np.nanmax(gap[a:])), "from_start": float(b <= 2), "train": middle(train, a, last)},
        )
    ]


def _ending(values: Array, count: int) -> float:
    good = values[np.isfinite(values)]
    return float(median(good[-count:])) if good.size else 0.0


def _largest_move(off: Array) -> tuple[int | None, float, float]:
    """Find the evaluation that leaves the three before it most, at once and for good: index, size, noise."""
    moves = off[3:] - moving_median(off[:-1], 1)[1:-1]
    noise = max(1.4826 * float(median(np.abs(np.diff(off)))), 0.004)
    k = int(np.argmax(moves)) + 3
    behind = off[k:]
    final = float(median(behind[-max(2, behind.size // 2) :]) - median(off[max(0, k - 4) : k]))
    jump = float(moves[k - 3])
    stays = jump >= max(6 * noise, 0.04) and jump >= _AT_ONCE * final and final >= 0.5 * jump
    # The median of three still holds the old level at the second evaluation behind the change.
    while k > 3 and moves[k - 4] >= _BEGUN * jump:
        k -= 1
    return (k if stays else None), jump, noise


def _switch(view: RunView) -> Form | None:
    """Look for validation that leaves the cohort within one interval while training goes below: exchanged data."""
    val = view.run.by_role.get(Role.VAL_LOSS)
    if val is None or Role.VAL_LOSS not in view.z:
        return None
    if not any((np.abs(view.z[role]) > view.limit(role)).any() for role in (Role.VAL_LOSS, VAL_GAP)):
        return None
    good = np.isfinite(val.value) & (val.value > 0)
    step, centre = val.step[good].astype(float), view.centre[Role.VAL_LOSS]
    known = np.isfinite(centre)
    if good.sum() < 8 or known.sum() < 3:
        return None
    off = np.log(val.value[good]) - np.interp(step, view.axis.mid[known], centre[known])
    k, jump, noise = _largest_move(off)
    if k is None:
        return None
    b = int(np.clip(np.searchsorted(view.axis.edges, step[k]) - 1, 0, view.axis.bins - 1))
    train = middle(view.r[Role.LOSS], b, view.axis.bins)
    gap = view.z.get(VAL_GAP, np.empty(0))[: max(0, b - 1)]
    if train > -0.01 or episode(gap, view.limit(VAL_GAP), _PERSIST, 1) is not None:  # it had left long before
        return None
    at, rows = rows_against_centre(view, Role.LOSS)
    lo, hi = (int(x) for x in np.searchsorted(at, [step[k - 1], step[k]]))
    lo = max(lo, 8)
    jumps = [
        abs(middle(rows, t, t + 8) - middle(rows, t - 40, t)) for t in range(lo, max(lo + 1, min(hi, rows.size - 8)))
    ]
    start = int(at[min(lo + int(np.argmax(jumps)), at.size - 1)])
    return Form(
        kind=FindingKind.STEP_DOWN, role=Role.LOSS, start=start, detected=start, peak=start, z=jump / noise,
        p=view.p_level(Role.VAL_LOSS, float(np.nanmax(np.abs(np.nan_to_num(view.z[Role.VAL_LOSS]))))),
        outcome=Outcome.ONGOING, rank=5,
        explained_by=Explanation.DATA_SWITCH if data_switch_near(view, start) else None,
        evidence=(phrase("val.leaves", factor=np.exp(jump), train=np.exp(train)),),
        measures={"val_jump": jump, "final": train},
    )

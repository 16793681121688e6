"""The level of the grad norm (and of the update ratio and parameter norm) against the cohort's."""

from __future__ import annotations

import dataclasses

import numpy as np

from runtriage.analysis.context import attention_rise, lr_ratio
from runtriage.analysis.form import DRIFT_RANK, Form, RunView, rows_against_centre
from runtriage.analysis.locate import episode, locate, middle, ramp_start
from runtriage.analysis.order_stats import moving_mean, runs_true
from runtriage.analysis.shapes import best_shape
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_PERSIST = 3
_VANISHED, _GONE, _REACH = -1.2, -4.0, 8
_BESIDE_PLATEAU = 17
"""Rank of a norm that is some times smaller, as in a run that stands still; one that is gone comes first."""

_EXPLODED = 1.1
_LOSS_CALM = 0.05
_SECOND = 2.0


def detect(view: RunView) -> list[Form]:
    """Report a grad norm that vanishes, or the first lasting departure of its level; else one of the slower norms."""
    if not view.has_cohort:
        return []
    found: list[Form] = []
    if Role.GRAD_NORM in view.z:
        gone = _vanishing(view)
        moved = _moved(view, Role.GRAD_NORM)
        moved = moved and (_stalled(view, moved) or moved)
        found += [f for f in (gone, moved) if f is not None and not (f is moved and gone is not None)]
    for role in (Role.UPDATE_RATIO, Role.PARAM_NORM):
        if role in view.z and (form := _moved(view, role)) is not None:
            found.append(_slow_start(view, form) or form)
    return found


def _slow_start(view: RunView, form: Form) -> Form | None:
    """Join updates too small from the first steps on with a loss that tends to lag: one plateau seen twice."""
    z, r = view.z.get(Role.LOSS), view.r.get(Role.LOSS)
    if z is None or r is None or form.z > 0 or not form.measures.get("from_start"):
        return None
    if middle(z, 0, view.axis.bins) < 1.0 and middle(r, view.axis.bins // 2, view.axis.bins) < 0.01:
        return None
    lag = middle(r, view.axis.bins // 2, view.axis.bins)
    return dataclasses.replace(
        form, kind=FindingKind.PLATEAU, role=Role.LOSS, rank=16,
        evidence=(*form.evidence, phrase("norm.lag", factor=np.exp(lag))),
        measures={**form.measures, "lr_ratio": lr_ratio(view), "final": lag},
    )


def _stalled(view: RunView, form: Form) -> Form | None:
    """Join a norm that drifts down with a loss that stands still beside it: one plateau seen twice.

    The norm has raised the alarm; the loss only says what it is: a level that one healthy run in forty has decides.
    """
    z, r = view.z.get(Role.LOSS), view.r.get(Role.LOSS)
    if z is None or r is None or form.z > 0 or form.kind != FindingKind.BASELINE_DRIFT:
        return None
    last = int(np.flatnonzero(np.isfinite(z))[-1]) + 1 if np.isfinite(z).any() else 0
    shape = best_shape(r[:last], view.sd[Role.LOSS][:last], view.centre[Role.LOSS][:last], view.axis.mid[:last])
    if shape is None or shape.name != "stall" or middle(z, (shape.bin + last) // 2, last) < _SECOND:
        return None
    lag = middle(r, (shape.bin + last) // 2, last)
    return dataclasses.replace(
        form, kind=FindingKind.PLATEAU, role=Role.LOSS, start=int(view.axis.edges[shape.bin]),
        evidence=(*form.evidence, phrase("norm.lag", factor=np.exp(lag))),
        measures={**form.measures, "lr_ratio": lr_ratio(view), "final": lag},
    )


def _vanishing(view: RunView) -> Form | None:
    r, level_z = view.r[Role.GRAD_NORM], view.z[Role.GRAD_NORM]
    bins = view.axis.bins
    for a, b in runs_true(r < _VANISHED):
        if b - a < max(3, bins // 8) or np.nanmedian(level_z[a:b]) > -3.0:
            continue
        loss = view.z.get(Role.LOSS)
        loss_up = bool(np.nanmedian(loss[a:b]) > 1.5) if loss is not None and np.isfinite(loss[a:b]).any() else True
        shallow = bool(np.nanmin(r[a:b]) > _GONE)
        if not loss_up and shallow:
            continue
        start = int(view.axis.edges[0])
        if a > 2:
            step, rows = rows_against_centre(view, Role.GRAD_NORM)
            lo, hi = np.searchsorted(step, [view.axis.edges[max(0, a - _REACH)], view.axis.edges[min(a + 2, bins)]])
            start = int(step[min(locate(rows, int(lo), int(hi)).index, step.size - 1)])
        z = float(np.nanmin(level_z[a:b]))
        return Form(
            kind=FindingKind.VANISHING_GRADIENT, role=Role.GRAD_NORM, start=start, detected=int(view.axis.edges[a]),
            peak=int(view.axis.mid[a + int(np.nanargmin(r[a:b]))]), z=z, p=view.p_level(Role.GRAD_NORM, z),
            outcome=Outcome.ONGOING, rank=_BESIDE_PLATEAU if shallow and a > 2 else 11,
            evidence=(phrase("norm.vanished", factor=np.exp(np.nanmedian(r[a:b])), count=b - a, bins=bins),),
            measures={"depth": float(np.nanmin(r[a:b])), "from_start": float(a <= 2), "loss_up": float(loss_up)},
        )
    return None


def _moved(view: RunView, role: str) -> Form | None:
    z, r, edges, bins = view.z[role], view.r[role], view.axis.edges, view.axis.bins
    if not np.isfinite(z).any():
        return None
    last = int(np.flatnonzero(np.isfinite(z))[-1]) + 1
    ups, downs = (episode(z[:last], view.limit(role), _PERSIST, s) for s in (1, -1))
    hit = min((e for e in (ups, downs) if e is not None), default=None)
    if hit is None:
        return None
    a = hit[0]
    back, tail = max(4, min(6, bins // 8)), max(3, bins // 10)
    step, rows = rows_against_centre(view, role)
    lo, hi = np.searchsorted(step, [edges[max(0, a - back)], edges[min(bins, a + back)]])
    onset = locate(rows, int(lo), int(hi))
    k, n = onset.index, rows.size
    jump = middle(rows, k, k + max(12, n // 100)) - middle(rows, k - 60, k)
    late = middle(r, max(a, last - tail), last) - (middle(r, a - 8, a - 2) if a > 2 else 0.0)
    extreme = float(z[a:last][np.nanargmax(np.abs(z[a:last]))])
    kind, rank, outcome = FindingKind.BASELINE_DRIFT, DRIFT_RANK, Outcome.ONGOING
    start = int(step[min(k, n - 1)])
    if role == Role.GRAD_NORM and a > 2:
        kind, rank, outcome, start = _kind(
            view, a, jump, late, start, sudden=abs(middle(rows, k, k + 5) - middle(rows, k - 8, k)) > 0.6 * abs(late)
        )
    if kind == FindingKind.BASELINE_DRIFT:
        if a <= 2:
            start = int(edges[0])
        elif not (onset.is_step and abs(jump) > 0.5 * abs(late)):
            start = _drift_start(view, role, a, last, start)
    return Form(
        kind=kind, role=role, start=start, detected=max(start, int(edges[a])), peak=int(view.axis.mid[a]), z=extreme,
        p=view.p_level(role, extreme), outcome=outcome, rank=rank,
        evidence=(phrase("level.against", role=role, factor=np.exp(late), members=view.members, z=extreme),),
        measures={"jump": jump, "late": late, "from_start": float(a <= 2), "attention": attention_rise(view, a)},
    )


def _kind(
    view: RunView, a: int, jump: float, late: float, start: int, *, sudden: bool
) -> tuple[FindingKind, int, Outcome, int]:
    """Tell a constant factor (a matter of logging) from an explosion, by what else moved."""
    others = [(Role.UPDATE_RATIO, 0.15), (Role.LOSS, 0.03)]
    calm = all(
        abs(middle(view.r[o], a + 1, a + 5) - middle(view.r[o], a - 6, a - 1)) < limit
        for o, limit in others
        if o in view.r
    )
    loss = view.r.get(Role.LOSS)
    if loss is not None:
        ends = loss[np.isfinite(loss)]
        late_loss = middle(ends, ends.size - max(3, ends.size // 10), ends.size)
        calm = calm and abs(late_loss - middle(loss, a - 6, a - 1)) < _LOSS_CALM
    layers = [o for o in view.r if o.startswith(Role.LAYER_GRAD_NORM)]
    calm = calm and all(abs(middle(view.r[o], a + 1, a + 6) - middle(view.r[o], a - 7, a - 1)) < 0.35 for o in layers)
    if abs(jump) > 0.4 and abs(late - jump) < 0.35 * abs(jump) and calm and sudden:
        return FindingKind.SCOPE_CHANGE, 10, Outcome.ONGOING, start
    if late > _EXPLODED:
        return FindingKind.GRAD_SPIKE, 18, Outcome.ONGOING, start
    return FindingKind.BASELINE_DRIFT, DRIFT_RANK, Outcome.ONGOING, start


def _drift_start(view: RunView, role: str, a: int, last: int, start: int) -> int:
    """Go back along a ramp to where it began; never later than where the rows place the change."""
    reach = max(0, a - int(0.35 * view.axis.bins))
    return min(start, int(ramp_start(view.axis.mid[reach:last], moving_mean(view.r[role], 1)[reach:last])))

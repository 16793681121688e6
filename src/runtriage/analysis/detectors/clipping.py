"""Clipping that fires nearly always where it did not, at a lower value, or that pins the logged norm."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.context import attention_rise, lr_ratio
from runtriage.analysis.derived import CLIP_TOP, CLIPPED_SHARE, fired_rows
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.locate import middle
from runtriage.analysis.order_stats import Array, runs_true
from runtriage.analysis.shapes import best_shape, climbs
from runtriage.model.phrase import Phrase, phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_LOWER = 0.5
_ALWAYS, _RARELY = np.log(4.0), 0.0
_EXPLODED = 1.0
_LATE = 8
_TIED_SHARE = 0.5
_TIED_BEFORE = 0.2
_MOST = 0.5
_TIED = 1e-3


def detect(view: RunView) -> list[Form]:
    """Report the first of: another clip value, a pinned norm, clipping that became the rule while the loss suffers."""
    if not view.has_cohort:
        return []
    for look in (_lower_value, _pinned, _fires_always):
        form = look(view)
        if form is not None:
            return [form]
    return []


def _lower_value(view: RunView) -> Form | None:
    """Look for a clipped norm whose upper edge lies well below the cohort's for a sixth of the run or more."""
    z, r = view.z.get(CLIP_TOP), view.r.get(CLIP_TOP)
    share = view.sketch.level.get(CLIPPED_SHARE)
    if z is None or r is None or share is None:
        return None
    hot = (z < -view.limit(CLIP_TOP)) & (r < -_LOWER) & (share > _ALWAYS)
    for a, b in runs_true(hot):
        if b - a < max(3, view.axis.bins // 6):
            continue
        start = _since(view, a)
        factor = float(np.exp(np.nanmedian(r[a:b])))
        worst = float(np.nanmin(z[a:b]))
        return _form(
            view, a, start, worst,
            (phrase("clip.lower", factor=factor),),
            {
                "clip_value": factor, "from_start": float(a <= 2),
                "explodes": middle(view.r.get(Role.GRAD_NORM, r * 0), a, b)
            },
        )
    return None


def _pinned(view: RunView) -> Form | None:
    """Look for a logged norm that equals one value on most rows: it is logged behind a clip that always fires.

    Beside siblings either its level departs, or the clip became the rule where theirs rarely fires. Siblings that
    differ in level hide the first, and a run that clips at its start, as all do, hides the second in its own past.
    """
    norm, z = view.run.by_role.get(Role.GRAD_NORM), view.z.get(Role.GRAD_NORM)
    if norm is None or z is None or norm.value.size < 100:
        return None
    away, alone = np.abs(z) >= view.limit(Role.GRAD_NORM), _clips_alone(view)
    if not (away.any() or alone.any()):
        return None
    found = view.once("pin", lambda: _pin(norm.value))
    if found is None:
        return None
    first, top, share, before = found
    start = int(norm.step[first])
    bin_ = int(np.clip(np.searchsorted(view.axis.edges, start) - 1, 0, view.axis.bins - 1))
    if alone[bin_:].mean() > _MOST:
        role, extreme = CLIPPED_SHARE, float(np.nanmax(view.z[CLIPPED_SHARE][bin_:]))
    elif away[bin_:].any() and (first <= 20 or before <= _TIED_BEFORE):
        role, extreme = Role.GRAD_NORM, float(np.nanmax(np.abs(z[bin_:])))
    else:
        return None
    return _form(
        view, bin_, start if first > 3 else int(view.axis.edges[0]), extreme,
        (phrase("clip.pinned", top=top, share=share),),
        {"pinned": float(share), "from_start": float(first <= 3)}, role=role,
    )


def _pin(value: Array) -> tuple[int, float, float, float] | None:
    """First row of the last stretch tied to one value, the value, the shares of rows tied to it since and before."""
    last = value[-value.size // 5 :]
    top = float(np.nanmedian(last)) if np.isfinite(last).any() else 0.0
    if top <= 0:
        return None
    tied = np.abs(value / top - 1.0) < _TIED
    if tied[-value.size // 5 :].mean() < _TIED_SHARE:
        return None
    first = int(np.argmin(np.cumsum(tied - _TIED_SHARE)))
    first += int(np.argmax(tied[first:]))
    return first, top, float(tied[first:].mean()), float(tied[:first].mean()) if first else 0.0


def _clips_alone(view: RunView) -> NDArray[np.bool_]:
    """Bins in which clipping is the rule, is rare among the siblings, and departs from them; shape (B,)."""
    z, level = view.z.get(CLIPPED_SHARE), view.sketch.level.get(CLIPPED_SHARE)
    centre = view.centre.get(CLIPPED_SHARE)
    if z is None or level is None or centre is None:
        return np.zeros(view.axis.bins, dtype=bool)
    return np.asarray((z > view.limit(CLIPPED_SHARE)) & (level > _ALWAYS) & (centre < _RARELY))


def _fires_always(view: RunView) -> Form | None:
    """Clipping fires on most rows where the cohort's rarely did, the norm has exploded and the loss is worse."""
    norm, loss = view.r.get(Role.GRAD_NORM), view.z.get(Role.LOSS)
    if norm is None or loss is None:
        return None
    for a, b in runs_true(_clips_alone(view)):
        if b - a < (_LATE if b == view.axis.bins else max(3, view.axis.bins // 6)):
            continue
        if middle(norm, a, b) < _EXPLODED or middle(loss, a, b) < 2.0:
            continue
        usual, factor = 1 / (1 + np.exp(-middle(view.centre[CLIPPED_SHARE], a, b))), np.exp(middle(norm, a, b))
        form = _form(
            view, a, _since(view, a), float(np.nanmax(view.z[CLIPPED_SHARE][a:b])),
            (phrase("clip.always", usual=usual, factor=factor),),
            {"explodes": middle(norm, a, b), "from_start": float(a <= 2)},
        )
        rising = _rising(view, form, b)
        return rising or dataclasses.replace(form, rank=13)  # what blew the norm up is nearer to the root
    return None


def _rising(view: RunView, form: Form, last: int) -> Form | None:
    """Return the slow rise of the loss that brings the clipping about, if there is one."""
    r, own = view.r[Role.LOSS], view.sketch.level[Role.LOSS]
    at = _rise_of_both(view, last)
    if at is None:
        return None
    start, late = int(view.axis.edges[at]), last - _LATE // 2
    final = middle(r, late, last) - middle(r, at - _LATE, at)
    rise = middle(own, late, last) - middle(own, at - 2, at + 2)
    if start > form.start or not climbs(rise, final):
        return None
    return dataclasses.replace(
        form, kind=FindingKind.DIVERGENCE, role=Role.LOSS, start=start, rank=9,
        evidence=(*form.evidence, phrase("loss.gradual", step=start)),
        measures={
            **form.measures, "final": final, "rise": rise, "lr_ratio": lr_ratio(view),
            "attention": attention_rise(view, at),
        },
    )


def _rise_of_both(view: RunView, last: int) -> int | None:
    """Bin at which the loss begins to rise, by its own shape and by the norm's where that rises too."""
    shapes = [
        best_shape(view.r[role][:last], view.sd[role][:last], view.centre[role][:last], view.axis.mid[:last])
        for role in (Role.LOSS, Role.GRAD_NORM)
    ]
    if shapes[0] is None or shapes[0].name != "rise":
        return None
    return int(np.mean([shape.bin for shape in shapes if shape is not None and shape.name == "rise"]))


def _since(view: RunView, a: int) -> int:
    """First row since when clipping fires on most rows, near bin ``a``."""
    rows = fired_rows(view.run)
    if a <= 2 or rows is None:
        return int(view.axis.edges[0])
    step, fired = rows
    lo, hi = (
        int(x)
        for x in np.searchsorted(step, [view.axis.edges[max(0, a - 2)], view.axis.edges[min(a + 1, view.axis.bins)]])
    )
    part: Array = fired[lo:hi] - 0.5
    at = lo + int(np.argmin(np.cumsum(part))) + 1 if part.size else lo
    return int(step[min(at, step.size - 1)])


def _form(
    view: RunView, a: int, start: int, z: float, evidence: tuple[Phrase, ...], measures: dict[str, float],
    role: str | None = None,
) -> Form:
    compared = role or (CLIPPED_SHARE if CLIPPED_SHARE in view.z else Role.GRAD_NORM)
    return Form(
        kind=FindingKind.CLIP_SATURATION, role=Role.CLIP_RATE if CLIPPED_SHARE in view.z else Role.GRAD_NORM,
        start=start,
        detected=max(start, int(view.axis.edges[a])), peak=int(view.axis.mid[a]), z=z,
        p=view.p_level(compared, z), outcome=Outcome.ONGOING,
        rank=6, evidence=evidence, measures=measures,
    )

"""Clipping that fires nearly always where it did not, at a lower value, or that pins the logged norm."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.derived import CLIP_TOP, CLIPPED_SHARE, fired_rows
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.locate import middle
from runtriage.analysis.order_stats import Array, runs_true
from runtriage.model.phrase import Phrase, phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_LOWER = 0.5
_ALWAYS, _RARELY = np.log(4.0), 0.0
_EXPLODED = 1.0
_TIED_SHARE = 0.5
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
    """Look for a logged norm that equals one value on most rows: it is logged behind a clip that always fires."""
    norm = view.run.by_role.get(Role.GRAD_NORM)
    z = view.z.get(Role.GRAD_NORM)
    if norm is None or z is None or norm.value.size < 100 or not (np.abs(z) >= view.limit(Role.GRAD_NORM)).any():
        return None
    found = view.once("pin", lambda: _pin(norm.value))
    if found is None:
        return None
    first, top, share = found
    start = int(norm.step[first])
    bin_ = int(np.clip(np.searchsorted(view.axis.edges, start) - 1, 0, view.axis.bins - 1))
    extreme = float(np.nanmax(np.abs(z[bin_:]))) if np.isfinite(z[bin_:]).any() else 0.0
    if extreme < view.limit(Role.GRAD_NORM):
        return None
    return _form(
        view, bin_, start if first > 3 else int(view.axis.edges[0]), extreme,
        (phrase("clip.pinned", top=top, share=share),),
        {"pinned": float(share), "from_start": float(first <= 3)},
    )


def _pin(value: Array) -> tuple[int, float, np.float64] | None:
    """First row of the last stretch that is tied to one value, the value, and the share of rows tied to it since."""
    last = value[-value.size // 5 :]
    top = float(np.nanmedian(last)) if np.isfinite(last).any() else 0.0
    if top <= 0:
        return None
    tied = np.abs(value / top - 1.0) < _TIED
    if tied[-value.size // 5 :].mean() < _TIED_SHARE:
        return None
    first = int(np.argmin(np.cumsum(tied - _TIED_SHARE)))
    first += int(np.argmax(tied[first:]))
    before = value[:first]
    if first > 20 and np.mean(np.abs(before / top - 1.0) < _TIED) > 0.2:
        return None
    return first, top, tied[first:].mean()


def _fires_always(view: RunView) -> Form | None:
    """Clipping fires on most rows where the cohort's rarely did, the norm has exploded and the loss is worse."""
    z, level = view.z.get(CLIPPED_SHARE), view.sketch.level.get(CLIPPED_SHARE)
    centre, norm, loss = view.centre.get(CLIPPED_SHARE), view.r.get(Role.GRAD_NORM), view.z.get(Role.LOSS)
    if z is None or level is None or centre is None or norm is None or loss is None:
        return None
    hot = z > view.limit(CLIPPED_SHARE)
    hot &= (level > _ALWAYS) & (centre < _RARELY)
    for a, b in runs_true(hot):
        if b - a < max(3, view.axis.bins // 6):
            continue
        if middle(norm, a, b) < _EXPLODED or middle(loss, a, b) < 2.0:
            continue
        return _form(
            view, a, _since(view, a), float(np.nanmax(z[a:b])),
            (
                phrase(
                    "clip.always", usual=1 / (1 + np.exp(-middle(centre, a, b))), factor=np.exp(middle(norm, a, b))
                ),
            ),
            {"explodes": middle(norm, a, b), "from_start": float(a <= 2)}, rank=13,
        )
    return None


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
    view: RunView, a: int, start: int, z: float, evidence: tuple[Phrase, ...], measures: dict[str, float], rank: int = 6
) -> Form:
    return Form(
        kind=FindingKind.CLIP_SATURATION, role=Role.CLIP_RATE if CLIPPED_SHARE in view.z else Role.GRAD_NORM,
        start=start,
        detected=max(start, int(view.axis.edges[a])), peak=int(view.axis.mid[a]), z=z,
        p=view.p_level(CLIPPED_SHARE if CLIPPED_SHARE in view.z else Role.GRAD_NORM, z), outcome=Outcome.ONGOING,
        rank=rank, evidence=evidence, measures=measures,
    )

"""One layer's gradient against the other layers', and against what that balance is in the cohort."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.derived import BALANCE, layer_rows
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.locate import episode, locate, middle
from runtriage.analysis.order_stats import median
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_LEAST = 0.35
_PERSIST = 4
_DEAD = -2.0
_OTHERS = 0.6


def detect(view: RunView) -> list[Form]:
    """Report the layer that leaves its balance most clearly, unless the others moved as much."""
    found = []
    for role in view.z:
        if role.startswith(BALANCE):
            form = _layer(view, role)
            if form is not None:
                found.append(form)
    return [max(found, key=lambda f: (f.kind == FindingKind.VANISHING_GRADIENT, abs(f.z)))] if found else []


def _layer(view: RunView, role: str) -> Form | None:
    layer = role.removeprefix(BALANCE)
    z, r = view.z[role], view.r[role]
    telling = np.where(np.abs(np.nan_to_num(r)) > _LEAST, z, 0.0)
    hits = [e for e in (episode(telling, view.limit(role), _PERSIST, s) for s in (1, -1)) if e is not None]
    if not hits:
        return None
    a, b = min(hits)
    name = f"{Role.LAYER_GRAD_NORM}/{layer}"
    extreme = float(z[a:][np.nanargmax(np.abs(np.nan_to_num(z[a:])))])
    depth = middle(r, a, b)
    if a <= 2:
        if middle(r, 0, 5) > _DEAD:
            return None
        return _form(view, FindingKind.VANISHING_GRADIENT, name, int(view.axis.edges[0]), a, extreme, depth)
    others = [
        abs(middle(view.r[o], a + 2, view.axis.bins))
        for o in view.r
        if o.startswith(Role.LAYER_GRAD_NORM) and o != name
    ]
    if others and float(median(others)) > _OTHERS * abs(middle(r, a + 2, view.axis.bins)):
        return None
    rows = layer_rows(view.run, layer)
    start = int(view.axis.edges[a])
    if rows is not None:
        step, value = rows
        known = np.isfinite(view.centre[role])
        residual = value - np.interp(step, view.axis.mid[known], view.centre[role][known])
        lo, hi = np.searchsorted(step, [view.axis.edges[max(0, a - 5)], view.axis.edges[min(view.axis.bins, a + 5)]])
        start = int(step[min(locate(residual, int(lo), int(hi)).index, step.size - 1)])
    return _form(view, FindingKind.LAYER_IMBALANCE, name, start, a, extreme, depth)


def _form(view: RunView, kind: FindingKind, role: str, start: int, a: int, z: float, depth: float) -> Form:
    layer = role.partition("/")[2]
    return Form(
        kind=kind, role=role, start=start, detected=max(start, int(view.axis.edges[a])), peak=int(view.axis.mid[a]),
        z=z, p=view.p_level(BALANCE + layer, z), outcome=Outcome.ONGOING,
        rank=11 if kind == FindingKind.VANISHING_GRADIENT else 12,
        evidence=(phrase("layer.off", layer=layer, factor=np.exp(depth), members=view.members, z=z),),
        measures={"depth": depth, "from_start": float(a <= 2), "dead_layer": float(depth < -6.0)},
    )

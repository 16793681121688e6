"""Loss or grad norm that stops being a number, including a loss of 0.0 that a logger put in its place."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import LAST_RESORT, Form, RunView
from runtriage.analysis.order_stats import median, runs_true
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_FEW = 5


def detect(view: RunView) -> list[Form]:
    """Report the first lasting stretch of rows that are not finite.

    With dynamic loss scaling a few grad norms overflow by design (the step is skipped and the scale halved), so short
    stretches are left alone and the norm alone counts only without a loss scale.
    """
    by_role = view.run.by_role
    for role in (Role.LOSS, Role.GRAD_NORM):
        series = by_role.get(role)
        if series is None or not series.value.size:
            continue
        if role == Role.GRAD_NORM and Role.LOSS_SCALE in by_role:
            continue
        bad = ~np.isfinite(series.value)
        n = bad.size
        enough = min(_FEW, n // 100 + 1)
        for a, b in runs_true(bad):
            lasts = b >= n - 1
            if b - a < enough and not lasts:
                continue
            if role == Role.GRAD_NORM and (a == 0 or (b - a) < enough):
                continue
            evidence = [phrase("nan.rows", count=b - a, rows=n, role=role)]
            if series.masked:
                evidence.append(phrase("nan.masked", count=series.masked))
            return [
                Form(
                    kind=FindingKind.NON_FINITE, role=role, start=int(series.step[a]), detected=int(series.step[a]),
                    peak=int(series.step[a]), end=None if b >= n else int(series.step[b]), z=float("inf"), p=1e-9,
                    outcome=Outcome.DIVERGED if b >= n else Outcome.RECOVERED, rank=0, evidence=tuple(evidence),
                    measures={
                        "first_row": float(a == 0), "rise_before": _rise(view, role, a), "lasts": float(b >= n),
                        "scale_drop": _scale_drop(view, int(series.step[a])),
                    },
                )
            ]
    return _passing(view)


def _passing(view: RunView) -> list[Form]:
    """Tell of loss rows that were not finite and passed: no alarm, and never silence."""
    series = view.run.by_role.get(Role.LOSS)
    if series is None or np.isfinite(series.value).all():
        return []
    bad = np.flatnonzero(~np.isfinite(series.value))
    first = int(series.step[bad[0]])
    return [
        Form(
            kind=FindingKind.NON_FINITE, role=Role.LOSS, start=first, detected=first, peak=first,
            end=int(series.step[min(int(bad[-1]) + 1, series.step.size - 1)]), z=float("inf"), p=1.0,
            outcome=Outcome.RECOVERED, rank=LAST_RESORT, mild=True,
            evidence=(phrase("nan.passing", count=bad.size, rows=series.value.size),),
            measures={
                "first_row": float(bad[0] == 0), "rise_before": _rise(view, Role.LOSS, int(bad[0])), "lasts": 0.0,
            },
        )
    ]


def _rise(view: RunView, role: str, row: int) -> float:
    """Rise of log value over the ten rows before the stretch against the fifty before those."""
    if role not in view.sketch.rows:
        return 0.0
    value = view.sketch.rows[role][1]
    near, far = value[max(0, row - 10) : row], value[max(0, row - 60) : max(0, row - 10)]
    near, far = near[np.isfinite(near)], far[np.isfinite(far)]
    return float(near.max() - median(far)) if near.size and far.size else 0.0


def _scale_drop(view: RunView, step: int) -> float:
    """Halvings of the loss scale in the twenty rows before a step."""
    scale = view.run.by_role.get(Role.LOSS_SCALE)
    if scale is None:
        return 0.0
    at = int(np.searchsorted(scale.step, step, side="right"))
    part = scale.value[max(0, at - 20) : at]
    part = part[np.isfinite(part) & (part > 0)]
    return float(np.log2(part[0] / part[-1])) if part.size > 1 else 0.0

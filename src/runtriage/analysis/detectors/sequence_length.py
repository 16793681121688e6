"""Logged settings that are noise-free and must agree within a cohort: the sequence length."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import Form, RunView
from runtriage.analysis.locate import middle
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_FACTOR = 0.2
_STEADY = 0.02


def detect(view: RunView) -> list[Form]:
    """Report a sequence length, constant before, that changes by a fifth or more at once and stays changed."""
    series = view.run.by_role.get(Role.SEQ_LEN)
    r = view.r.get(Role.SEQ_LEN)
    if series is None or series.value.size < 40 or r is None:
        return []
    good = np.isfinite(series.value) & (series.value > 0)
    step, value = series.step[good], np.log(series.value[good])
    if value.size < 40:
        return []
    jumps = np.flatnonzero(np.abs(np.diff(value)) > _FACTOR)
    if not 0 < jumps.size <= 2:
        return []
    row = int(jumps[0]) + 1
    if row < 10 or np.ptp(value[:row]) > _STEADY or np.ptp(value[row : row + 20]) > _STEADY:
        return []
    change = float(value[row] - value[row - 1])
    if abs(middle(r, int(np.searchsorted(view.axis.edges, step[row])), view.axis.bins)) < _FACTOR / 2:
        return []
    return [
        Form(
            kind=FindingKind.STEP_DOWN if change < 0 else FindingKind.STEP_UP, role=Role.SEQ_LEN, start=int(step[row]),
            detected=int(step[row]), peak=int(step[row]), z=float("inf"), p=1e-4, outcome=Outcome.ONGOING, rank=5,
            evidence=(phrase("length.changes", factor=np.exp(change), step=int(step[row])),),
            measures={"length_change": change},
        )
    ]

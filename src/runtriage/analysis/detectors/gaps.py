"""A hole in a log that is otherwise even: lost rows, or an attempt that began later than the last one ended."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import LAST_RESORT, Form, RunView
from runtriage.analysis.order_stats import Array, median
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_CADENCES = 20.0
_SHARE = 0.02
_EVEN = 0.9
_FEW = 3
_LEAST_ROWS = 50


def detect(view: RunView) -> list[Form]:
    """Report the widest hole of the loss log; a log without a cadence has none."""
    loss = view.run.by_role.get(Role.LOSS)
    if loss is None or loss.step.size < _LEAST_ROWS:
        return []
    if "gap" not in view.memory:
        view.memory["gap"] = _widest(loss.step.astype(np.float64), view.axis.span)
    hole = view.memory["gap"]
    if not isinstance(hole, tuple):
        return []
    row, width, cadence = hole
    start, end = int(loss.step[row]), int(loss.step[row + 1])
    return [
        Form(
            kind=FindingKind.LOGGING_GAP, role=Role.LOSS, start=start, detected=start, peak=start, end=end,
            z=width / cadence, p=1.0,
            outcome=Outcome.RECOVERED, rank=LAST_RESORT, mild=True,
            evidence=(phrase("gap.hole", start=start, end=end, cadence=cadence),),
            measures={"width": width / cadence},
        )
    ]


def _widest(step: Array, span: float) -> tuple[int, float, float] | None:
    gaps = np.diff(step)
    cadence = median(gaps)
    if cadence <= 0 or (np.abs(gaps - cadence) < 0.5 * cadence).mean() < _EVEN:
        return None
    wide = np.flatnonzero(gaps > max(_CADENCES * cadence, _SHARE * span))
    if not 0 < wide.size <= _FEW:
        return None
    row = int(wide[np.argmax(gaps[wide])])
    return row, float(gaps[row]), cadence

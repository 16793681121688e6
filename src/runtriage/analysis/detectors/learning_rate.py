"""A schedule that jumps where the cohort's does not, or that starts over."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.context import ABOVE, above, off_schedule
from runtriage.analysis.form import LAST_RESORT, Form, RunView
from runtriage.analysis.order_stats import Array
from runtriage.analysis.schedule import schedule_jumps
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_FEW_ROWS = 40


def detect(view: RunView) -> list[Form]:
    """Report the first row at which the lr leaves the cohort's schedule, or, without one, jumps up or warms up again.

    An lr above anything the cohort used is a cause rather than a schedule that starts over: what it does to the curves
    is then the finding, and the lr one of its own only if it did nothing.
    """
    lr = view.run.by_role.get(Role.LR)
    if lr is None or lr.value.size < 3 or not np.isfinite(lr.value).any():
        return []
    if view.schedule is not None and view.has_cohort:
        row, change = off_schedule(view, view.schedule, lr)
        against = "against.schedule"
    else:
        row, change = _alone(lr.step.astype(np.float64), lr.value)
        against = "against.neighbours"
    if row is None:
        return []
    step = int(lr.step[row])
    over = above(view.schedule, lr.value[row:]) if view.schedule is not None and view.has_cohort else 0.0
    return [
        Form(
            kind=FindingKind.LR_DISCONTINUITY, role=Role.LR, start=step, detected=step, peak=step, z=float("inf"),
            p=1e-6,
            outcome=Outcome.ONGOING, rank=LAST_RESORT if over > ABOVE else 3,
            evidence=(phrase("lr.jump", factor=np.exp(change), against=phrase(against), step=step),),
            measures={"change": change, "over": over},
        )
    ]


def _few_rows(value: Array) -> tuple[int | None, float]:
    """Look at an lr that is logged now and then: back at its largest value after a decay."""
    top = float(np.nanmax(value))
    for row in range(2, value.size):
        before = value[row - 1]
        if value[row] >= 0.98 * top and 0 < before < 0.97 * top and value[:row].max() >= 0.98 * top:
            return row, float(np.log(value[row] / before))
    return None, 0.0


def _alone(step: Array, value: Array) -> tuple[int | None, float]:
    """Jumps upwards only: downwards a jump is a planned decay more often than not."""
    top = float(np.nanmax(value))
    for row in schedule_jumps(step, value):
        before, after = value[row - 1], value[row]
        if after > before and after > 0.2 * top:
            return int(row), float(np.log(after / max(before, 1e-12 * top)))
    peak = int(np.nanargmax(value > 0.9 * top))
    lowest = np.minimum.accumulate(np.where(np.isfinite(value[peak:]), value[peak:], np.inf))
    again = np.flatnonzero(value[peak:] > np.maximum(3.0 * lowest, 0.05 * top))
    if value.size <= _FEW_ROWS:
        return _few_rows(value)
    if again.size:
        row = peak + int(np.nanargmin(value[peak : peak + again[0] + 1]))
        return min(row + 1, value.size - 1), 1.0
    return None, 0.0

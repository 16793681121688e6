"""A schedule that jumps where the cohort's does not, or that starts over."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import LAST_RESORT, Form, RunView
from runtriage.analysis.order_stats import Array, moving_median
from runtriage.analysis.schedule import schedule_jumps
from runtriage.model.vocab import FindingKind, Outcome, Role

_JUMP = 0.1
_AGAINST_NEIGHBOURS = 5.0
_NEGLIGIBLE = 0.02
_OFF = 0.1
_LEAST_ROWS = 40
_OVER = 0.26


def detect(view: RunView) -> list[Form]:
    """Report the first row at which the lr leaves the cohort's schedule, or, without one, jumps up or warms up again.

    An lr above anything the cohort used is a cause rather than a schedule that starts over: what it does to the curves is then the
    finding, and the lr one of its own only if it did nothing.
    """
    lr = view.run.by_role.get(Role.LR)
    if lr is None or lr.value.size < 3 or not np.isfinite(lr.value).any():
        return []
    if view.schedule is not None and view.has_cohort:
        row, change = _against(view.schedule, lr.step.astype(np.float64), lr.value)
        if row is None:
            row, change = _leaves(view.schedule, lr.step.astype(np.float64), lr.value)
        against = "the cohort's schedule"
    else:
        row, change = _alone(lr.step.astype(np.float64), lr.value)
        against = "its own neighbours"
    if row is None:
        return []
    step = int(lr.step[row])
    over = _over(view.schedule, lr.value[row:]) if view.schedule is not None and view.has_cohort else 0.0
    return [
        Form(
            kind=FindingKind.LR_DISCONTINUITY, role=Role.LR, start=step, detected=step, peak=step, z=float("inf"), p=1e-6,
            outcome=Outcome.ONGOING, rank=LAST_RESORT if over > _OVER else 3,
            evidence=(f"lr x {np.exp(change):.3g} against {against} at step {step}",),
            measures={"change": change, "over": over},
        )
    ]


def _against(schedule: tuple[Array, Array], step: Array, value: Array) -> tuple[int | None, float]:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((value > 0) & np.isfinite(value), np.log(value), np.nan)
    inside = (step >= schedule[0][0]) & (step <= schedule[0][-1])
    ratio = np.where(inside, ratio - np.interp(step, *schedule), np.nan)
    change = np.diff(ratio)
    size = np.abs(change)
    if not (size > _JUMP).any():
        return None, 0.0
    near = moving_median(size, 5)
    top = np.nanmax(value)
    for i in np.flatnonzero(size > _JUMP):
        after = ratio[i + 1 : i + 21]
        if (
            size[i] > _AGAINST_NEIGHBOURS * near[i]
            and max(value[i], value[i + 1]) > _NEGLIGIBLE * top
            and np.nanmedian(np.abs(after)) > _JUMP / 2
        ):
            return int(i) + 1, float(change[i])
    return None, 0.0


def lr_above(view: RunView) -> int | None:
    """Step from which the lr is above anything the cohort used; None when it never is, or was so from the start."""
    lr = view.run.by_role.get(Role.LR)
    if lr is None or view.schedule is None or not view.has_cohort or lr.value.size < _LEAST_ROWS:
        return None
    step = lr.step.astype(np.float64)
    row, _ = _against(view.schedule, step, lr.value)
    if row is None:
        row, _ = _leaves(view.schedule, step, lr.value)
    return int(lr.step[row]) if row is not None and _over(view.schedule, lr.value[row:]) > _OVER else None


def _leaves(schedule: tuple[Array, Array], step: Array, value: Array) -> tuple[int | None, float]:
    """First row from which the lr stays off the cohort's schedule for good, when it followed it before."""
    good = np.isfinite(value) & (value > 0) & (step >= schedule[0][0]) & (step <= schedule[0][-1])
    rows = np.flatnonzero(good)
    if rows.size < _LEAST_ROWS:
        return None, 0.0
    ratio = np.log(value[rows]) - np.interp(step[rows], *schedule)
    telling = value[rows] > _NEGLIGIBLE * np.max(value[rows])
    off = (np.abs(ratio) > _OFF) & telling
    first = int(np.argmax(off)) if off.any() else 0
    if first < max(5, rows.size // 50) or np.abs(np.median(ratio[:first])) > _OFF / 5:
        return None, 0.0
    behind = off[first : first + max(20, rows.size // 20)]
    if behind.size < 10 or behind.mean() < 0.9:  # noqa: PLR2004  nine rows of ten
        return None, 0.0
    while first > 0 and abs(ratio[first - 1]) > _OFF / 5:
        first -= 1
    return int(rows[first]), float(ratio[min(first + behind.size, ratio.size - 1)])


def _over(schedule: tuple[Array, Array], value: Array) -> float:
    """Log of the largest lr over the cohort's largest."""
    good = value[np.isfinite(value) & (value > 0)]
    return float(np.log(good.max()) - schedule[1].max()) if good.size else 0.0


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
    if value.size > 40 and again.size:
        row = peak + int(np.nanargmin(value[peak : peak + again[0] + 1]))
        return min(row + 1, value.size - 1), 1.0
    return None, 0.0

"""What else was going on: announced data switches, and the lr against the cohort's schedule."""

from __future__ import annotations

from typing import cast

import numpy as np

from runtriage.analysis.form import RunView
from runtriage.analysis.order_stats import Array, median, moving_median
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import Role

ABOVE = 0.26
"""Log of an lr over the cohort's largest from which it is not a schedule that starts over but too much."""

_JUMP = 0.1
_AGAINST_NEIGHBOURS = 5.0
_NEGLIGIBLE = 0.02
_OFF = 0.1
_LEAST_ROWS = 40


def data_switch_near(view: RunView, step: int) -> bool:
    """Tell whether the log announces another data source within 1 % of the run (at least five rows) of a step."""
    changed = data_switches(view.run)
    if not changed:
        return False
    cadence = float(median(np.diff(view.run.by_role[Role.DATA_SOURCE].step)))
    reach = max(5.0 * cadence, 0.01 * view.axis.span)
    return bool((np.abs(np.array(changed) - step) <= reach).any())


def data_switches(run: PreparedRun) -> tuple[float, ...]:
    """Return the steps at which the logged data source changes, unless it is a mixture that changes all the time."""
    source = run.by_role.get(Role.DATA_SOURCE)
    if source is None or source.step.size < 2:
        return ()
    changed = source.step[np.flatnonzero(np.diff(source.value) != 0) + 1]
    return tuple(float(s) for s in changed) if changed.size <= max(3, source.step.size // 100) else ()


def lr_ratio(view: RunView) -> float:
    """Median log ratio of the early lr to the cohort's schedule; NaN when either is not known."""
    lr = view.run.by_role.get(Role.LR)
    if lr is None or view.schedule is None:
        return float("nan")
    n = max(20, lr.value.size // 20)
    step, value = lr.step[:n].astype(np.float64), lr.value[:n]
    good = np.isfinite(value) & (value > 0)
    if not good.any():
        return float("nan")
    return float(median(np.log(value[good]) - np.interp(step[good], *view.schedule)))


def lr_above(view: RunView) -> int | None:
    """Step from which the lr is above anything the cohort used; None when it never is, or was so from the start."""
    lr = view.run.by_role.get(Role.LR)
    if lr is None or view.schedule is None or not view.has_cohort or lr.value.size < _LEAST_ROWS:
        return None
    row, _ = off_schedule(view, view.schedule, lr)
    return int(lr.step[row]) if row is not None and above(view.schedule, lr.value[row:]) > ABOVE else None


def off_schedule(view: RunView, schedule: tuple[Array, Array], lr: Series) -> tuple[int | None, float]:
    """Row at which the lr jumps off or leaves a schedule, and by how much; worked out once for each schedule.

    Parameters
    ----------
    view
        The run; its memory keeps the answer.
    schedule
        The cohort's (step, log lr).
    lr
        The run's own.
    """
    known = cast("tuple[object, int | None, float] | None", view.memory.get("off_schedule"))
    if known is None or known[0] is not schedule:
        step = lr.step.astype(np.float64)
        row, change = None, 0.0
        if not _follows(schedule, step, lr.value):
            row, change = jumps_off(schedule, step, lr.value)
            if row is None:
                row, change = leaves(schedule, step, lr.value)
        view.memory["off_schedule"] = known = (schedule, row, change)
    return known[1], known[2]


def _follows(schedule: tuple[Array, Array], step: Array, value: Array) -> bool:
    """Rule out quickly that an lr jumps off or leaves a schedule: it is so near that no two rows differ enough."""
    usual = schedule[1] if np.array_equal(step, schedule[0]) else np.interp(step, *schedule)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.abs(np.log(value) - usual)
    return not (away[np.isfinite(away)] > min(_JUMP / 2, _OFF)).any()


def leaves(schedule: tuple[Array, Array], step: Array, value: Array) -> tuple[int | None, float]:
    """Find the row from which the lr stays off the cohort's schedule for good, when it followed it before.

    Parameters
    ----------
    schedule
        Steps and log lr of the cohort, shape (m,) each.
    step, value
        The run's lr, shape (n,) each.

    Returns
    -------
    row, change
        First row off the schedule (None when there is none) and how far off, in log units.
    """
    good = np.isfinite(value) & (value > 0) & (step >= schedule[0][0]) & (step <= schedule[0][-1])
    rows = np.flatnonzero(good)
    if rows.size < _LEAST_ROWS:
        return None, 0.0
    ratio = np.log(value[rows]) - np.interp(step[rows], *schedule)
    telling = value[rows] > _NEGLIGIBLE * np.max(value[rows])
    off = (np.abs(ratio) > _OFF) & telling
    first = int(np.argmax(off)) if off.any() else 0
    if first < max(5, rows.size // 50) or np.abs(median(ratio[:first])) > _OFF / 5:
        return None, 0.0
    behind = off[first : first + max(20, rows.size // 20)]
    if behind.size < 10 or behind.mean() < 0.9:
        return None, 0.0
    while first > 0 and abs(ratio[first - 1]) > _OFF / 5:
        first -= 1
    return int(rows[first]), float(ratio[min(first + behind.size, ratio.size - 1)])


def above(schedule: tuple[Array, Array], value: Array) -> float:
    """Log of the largest lr over the cohort's largest."""
    good = value[np.isfinite(value) & (value > 0)]
    return float(np.log(good.max()) - schedule[1].max()) if good.size else 0.0


def jumps_off(schedule: tuple[Array, Array], step: Array, value: Array) -> tuple[int | None, float]:
    """Find the row at which the lr jumps off the cohort's schedule.

    Parameters
    ----------
    schedule
        Steps and log lr of the cohort, shape (m,) each.
    step, value
        The run's lr, shape (n,) each.

    Returns
    -------
    row, change
        First row after the jump (None when there is none) and its size in log units.
    """
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


def attention_rise(view: RunView, a: int) -> float:
    """Largest rise of the attention logits over the cohort's in the bins that follow."""
    r = view.r.get(Role.ATTENTION_LOGIT)
    if r is None or not np.isfinite(r[a:]).any():
        return 0.0
    return float(np.nanmax(r[a:]))

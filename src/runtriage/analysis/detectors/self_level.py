"""What a run's own past cannot explain: all there is without a cohort, and with one what harms in any company."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from runtriage.analysis.form import Form, RunView
from runtriage.analysis.levels import level_shifts
from runtriage.analysis.locate import middle
from runtriage.analysis.order_stats import Array, median, moving_mean, moving_median, nan_median
from runtriage.model.phrase import phrase
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

_LEAST_JUMP = 0.05
_LEAST_RISE = 0.25
_GREAT_RISE = 0.7
_LEARNED_SHARE = 0.5
_SHORT = 20
_MOST_ROWS = 4096
_NOISE_REACH = 12
_NOISES = 8.0
_WANDER, _WANDER_REACH = 1.5, 40
_LEAST_WIDTH = 2
_FEW_ROWS = 150
_LASTS = 0.4
_IN_STEP = 0.7
_PER_EPOCH = 24

SELF_CHANCE = 0.015
"""Upper bound of the chance that a healthy run shows such a form against its own past (measured: tests/statistical)."""


def detect(view: RunView) -> list[Form]:
    """Report upward level shifts and a lasting rise of the loss; downward shifts are progress or a planned decay."""
    if Role.LOSS not in view.sketch.rows:
        return []
    if view.has_cohort:
        if not _may_rise(view, _GREAT_RISE):
            return []
        form = view.once("great rise", lambda: _excursion(view, _GREAT_RISE))
        return [form] if form is not None and form.explained_by is None and not _shared(view, form) else []
    step, value = view.sketch.rows[Role.LOSS]
    if np.isfinite(value).sum() < _SHORT:
        return _short(step, value)
    return [f for f in (_excursion(view, _LEAST_RISE), _shift(view)) if f is not None]


def _shift(view: RunView) -> Form | None:
    series = view.run.by_role[Role.LOSS]
    result = level_shifts(series.step, series.value)
    for shift in result.shifts:
        if shift.jump < _LEAST_JUMP or shift.z <= 0:
            continue
        step = int(shift.step)
        return Form(
            kind=FindingKind.STEP_UP, role=Role.LOSS, start=step, detected=step, peak=step, z=float(shift.z),
            p=SELF_CHANCE,
            outcome=Outcome.ONGOING, rank=14, explained_by=_explained(view, step),
            evidence=(phrase("own.shift", factor=np.exp(shift.jump), step=step, z=shift.z),),
            measures={"jump": float(shift.jump), "final": float(shift.jump)},
        )
    return None


def _may_rise(view: RunView, least: float) -> bool:
    """Rule out quickly that an excursion is larger than ``least``: against the lowest row, not the lowest level."""
    if "most" not in view.memory:
        _, value = _thinned(view)
        if value.size < _SHORT:
            return True
        # the slow median looks ahead by its half width, so the lowest row must as well
        ahead = min(_slow_reach(value.size), value.size - 1)
        lowest = np.minimum.accumulate(np.append(value[ahead:], np.full(ahead, np.inf)))
        lowest = np.minimum(lowest, value[: ahead + 1].min())
        view.memory["most"] = float((moving_median(value, 1) - lowest).max())
    return cast("float", view.memory["most"]) > least


def _slow_reach(rows: int) -> int:
    return int(np.clip(rows // 40, 1, _NOISE_REACH))


def _excursion(view: RunView, least: float) -> Form | None:
    """Find the first stretch of rows far above the lowest level reached before, against the noise just before it.

    Lone rows are taken out by a median of three. What the stretch became in the end, and how fast it began, give its
    name.
    """
    curve = view.memory.get("excess")
    if not isinstance(curve, _Curve):
        curve = _curve(view)
        view.memory["excess"] = curve
    step, value, level, low, before = curve.step, curve.value, curve.level, curve.low, curve.before
    before = before if view.has_cohort else np.maximum(before, curve.wander)
    n = value.size
    if n < _SHORT:
        return None
    excess = level - low
    learned = np.maximum(level[: max(3, n // 100)].max() - low, 0.0)
    limit = np.maximum(np.maximum(least, _NOISES * before), _LEARNED_SHARE * learned if least > _LEAST_RISE else 0.0)
    hot = excess > limit
    hot[: max(4, n // 50)] = False
    if not hot.any():
        return None
    first = int(np.argmax(hot))
    calm = np.flatnonzero(excess[first:] < 0.5 * limit[first])
    stop = first + (int(calm[0]) if calm.size else n - first)
    if stop - first < (_LEAST_WIDTH if n >= _FEW_ROWS else 1):
        return None
    peak = first + int(np.argmax(excess[first:stop]))
    row = first
    while row > 1 and value[row - 1] - low[row - 1] > 0.5 * limit[first]:
        row -= 1
    top = float(excess[peak])
    stays = middle(excess, n - max(3, n // 6), n) if stop < n else top
    soon = middle(excess, row + n // 10, row + n // 10 + max(5, n // 50)) if row + n // 8 < n else top
    lasts = stays > _LASTS * top
    sharp = float(value[row : row + max(3, n // 50)].max() - low[row]) > 0.5 * top
    if sharp and stop - first >= n // 10 and soon > 0.6 * top and stays <= 0.5 * learned[first]:
        kind, outcome = FindingKind.STEP_UP, Outcome.ONGOING
    elif not lasts:
        kind, outcome = FindingKind.LOSS_SPIKE, Outcome.RECOVERED
    elif not sharp:
        kind, outcome = FindingKind.DIVERGENCE, Outcome.ONGOING
    elif stays > 0.5 * learned[first]:
        kind, outcome = FindingKind.LOSS_SPIKE, Outcome.DIVERGED
    else:
        kind, outcome = FindingKind.STEP_UP, Outcome.ONGOING
    start = int(step[row])
    return Form(
        kind=kind, role=Role.LOSS, start=start, detected=int(step[first]), peak=int(step[peak]),
        end=int(step[min(stop, n - 1)]) if not lasts else None, z=top / max(float(before[first]), 1e-3), p=SELF_CHANCE,
        outcome=outcome,
        rank=12, explained_by=_explained(view, start) or _every_epoch(view, step, level),
        evidence=(
            phrase(
                "own.rise", factor=np.exp(top), noises=top / max(float(before[first]), 1e-3), end=np.exp(stays)
            ),
        ),
        measures={"final": stays, "stays": stays, "rise": top, "jump": top if sharp else 0.0},
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Curve:
    """A loss ready to be searched: rows, level, lowest level, noise and wandering just before; shape (n,) each."""

    step: Array
    value: Array
    level: Array
    low: Array
    before: Array
    wander: Array


def _curve(view: RunView) -> _Curve:
    step, value = _thinned(view)
    n = value.size
    if n < _SHORT:
        return _Curve(step=step, value=value, level=value, low=value, before=value, wander=value)
    # in a short history a row is an average over an epoch or an evaluation: lone rows count
    level = value if n < _FEW_ROWS else moving_median(value, 1)
    # a wide median for the lowest level: the smallest of many noisy rows lies far below it
    slow = moving_median(value, _slow_reach(n))
    low = np.concatenate([[level[0]], np.minimum.accumulate(slow)[:-1]])
    # a mean of sizes, not a median: two-valued noise counts
    noise = 1.2533 * moving_mean(np.abs(value - moving_median(value, 4)), _NOISE_REACH)
    # neighbours that agree hide their noise from a narrow median: how far the level wanders counts as well
    wander = _WANDER * moving_mean(np.abs(level - slow), _WANDER_REACH)
    lag = min(n, _WANDER_REACH + _NOISE_REACH + 1)  # a steep start wanders, too: nothing is charged before it is over
    return _Curve(
        step=step, value=value, level=level, low=low, before=_past(noise, _NOISE_REACH + 1),
        wander=np.concatenate([np.zeros(lag), wander[: n - lag]]),
    )


def _past(sizes: Array, rows: int) -> Array:
    """Take each row's size from ``rows`` rows before it; the first rows have the largest of their own."""
    rows = min(rows, sizes.size)
    return np.concatenate([np.full(rows, np.nanmax(sizes[: 2 * _NOISE_REACH])), sizes[: sizes.size - rows]])


def _thinned(view: RunView) -> tuple[Array, Array]:
    """Finite rows of the log loss, as medians of blocks where there are more than some thousands."""
    step, value = view.sketch.rows[Role.LOSS]
    good = np.isfinite(value)
    step, value = step[good], value[good]
    size = -(-value.size // _MOST_ROWS)
    if size <= 1:
        return step, value
    whole = value.size // size * size
    return step[:whole:size], nan_median(value[:whole].reshape(-1, size), -1)


def _short(step: np.ndarray, value: np.ndarray) -> list[Form]:
    """Fewer than twenty rows: only a rise of a third over the running minimum says anything."""
    good = np.isfinite(value)
    step, value = step[good], value[good]
    if value.size < 3:
        return []
    excess = value - np.minimum.accumulate(value)
    hot = np.flatnonzero(excess > 0.3)
    if not hot.size:
        return []
    k = int(hot[0])
    recovered = excess[-1] < 0.5 * excess[k:].max()
    return [
        Form(
            kind=FindingKind.LOSS_SPIKE if recovered else FindingKind.DIVERGENCE, role=Role.LOSS, start=int(step[k]),
            detected=int(step[k]), peak=int(step[k + int(np.argmax(excess[k:]))]), z=float("inf"), p=2 * SELF_CHANCE,
            outcome=Outcome.RECOVERED if recovered else Outcome.DIVERGED, rank=12,
            evidence=(phrase("own.short", factor=np.exp(excess[k:].max()), rows=value.size),),
            measures={"stays": float(excess[-1]), "rise": float(excess[k:].max())},
        )
    ]


def _explained(view: RunView, step: int) -> Explanation | None:
    """Look for an epoch boundary or an announced data switch at the place."""
    cadence = 1.0
    for role, why in ((Role.EPOCH, Explanation.EPOCH_BOUNDARY), (Role.DATA_SOURCE, Explanation.DATA_SWITCH)):
        series = view.run.by_role.get(role)
        if series is None or series.step.size < 2:
            continue
        cadence = float(median(np.diff(series.step)))
        changed = series.step[1:][
            np.diff(np.floor(series.value)) > 0
        ] if role == Role.EPOCH else series.step[1:][np.diff(series.value) != 0]
        if 0 < changed.size < series.step.size / 3 and (
            np.abs(changed - step) <= max(3 * cadence, 0.01 * view.axis.span)
        ).any():
            return why
    return None


def _shared(view: RunView, form: Form) -> bool:
    """Tell whether at least half of the siblings have one of their largest excursions at the same place."""
    events = view.events.get(Role.LOSS, [])
    step = view.own.step.get(f"{Role.LOSS}/1", np.empty(0))
    reach = 3.0 * float(median(np.diff(step))) if step.size > 1 else 1.0
    near = sum(
        bool(e.size) and bool((np.abs(e - form.start) <= reach).any() or (np.abs(e - form.peak) <= reach).any())
        for e in events
    )
    return bool(events) and near >= max(1, (len(events) + 1) // 2)


def _every_epoch(view: RunView, step: Array, level: Array) -> Explanation | None:
    """Tell whether the level repeats itself from epoch to epoch: that is the order of the data."""
    epoch = view.run.by_role.get(Role.EPOCH)
    if epoch is None or epoch.step.size < 2:
        return None
    edges = epoch.step[1:][np.diff(np.floor(epoch.value)) > 0].astype(np.float64)
    if edges.size < 2:
        return None
    length = float(median(np.diff(edges)))
    grid = np.arange(step[0], step[-1], length / _PER_EPOCH)
    y = np.interp(grid, step, level)
    t = np.linspace(-1.0, 1.0, y.size)
    y = y - np.polyval(np.polyfit(t, y, 2), t)
    a, b = y[_PER_EPOCH:], y[:-_PER_EPOCH]
    if a.size < _PER_EPOCH or not a.any() or not b.any():
        return None
    return Explanation.EPOCH_BOUNDARY if float(np.corrcoef(a, b)[0, 1]) > _IN_STEP else None

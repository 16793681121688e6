"""Level changes of a run that has no cohort: only what its own past cannot explain, and only when it is large."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import Form, RunView
from runtriage.analysis.levels import level_shifts
from runtriage.analysis.locate import middle
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

_LEAST_JUMP = 0.05
_LEAST_RISE = 0.25
_SHORT = 20


def detect(view: RunView) -> list[Form]:
    """Report upward level shifts and a lasting rise of the loss; downward shifts are progress or a planned decay."""
    if view.has_cohort or Role.LOSS not in view.sketch.rows:
        return []
    step, value = view.sketch.rows[Role.LOSS]
    if np.isfinite(value).sum() < _SHORT:
        return _short(step, value)
    found = [f for f in (_shift(view), _rise(view)) if f is not None]
    return found


def _shift(view: RunView) -> Form | None:
    series = view.run.by_role[Role.LOSS]
    result = level_shifts(series.step, series.value)
    for shift in result.shifts:
        if shift.jump < _LEAST_JUMP or shift.z <= 0:
            continue
        step = int(shift.step)
        return Form(
            kind=FindingKind.STEP_UP, role=Role.LOSS, start=step, detected=step, peak=step, z=float(shift.z), p=0.005,
            outcome=Outcome.ONGOING, rank=14, explained_by=_explained(view, step),
            evidence=(f"loss x {np.exp(shift.jump):.3g} at step {step} and stays, {shift.z:.1f} of its own standard deviations",),
            measures={"jump": float(shift.jump), "final": float(shift.jump)},
        )
    return None


def _rise(view: RunView) -> Form | None:
    """A rise above the running minimum of the binned loss that lasts three bins and is large against its own noise."""
    level = view.sketch.level[Role.LOSS]
    known = np.flatnonzero(np.isfinite(level))
    if known.size < 6:
        return None
    values = level[known]
    excess = values - np.minimum.accumulate(values)
    noise = np.nanmedian(view.sketch.noise[Role.LOSS]) if np.isfinite(view.sketch.noise[Role.LOSS]).any() else 0.0
    wander = 1.4826 * float(np.median(np.abs(np.diff(values) - np.median(np.diff(values)))))
    limit = max(_LEAST_RISE, 2.0 * float(noise), 6.0 * wander)
    hot = np.flatnonzero((excess[:-2] > limit) & (excess[1:-1] > limit) & (excess[2:] > limit))
    hot = hot[hot > values.size // 12]
    if not hot.size:
        return None
    a = int(hot[0])
    low = int(np.argmin(values[: a + 1]))
    stays = middle(values, values.size - max(3, values.size // 6), values.size) - values[low]
    lasts = stays > 0.5 * excess[a:].max()
    start = int(view.axis.edges[known[min(low + 1, a)]])
    return Form(
        kind=FindingKind.DIVERGENCE if lasts else FindingKind.LOSS_SPIKE, role=Role.LOSS, start=start,
        detected=int(view.axis.edges[known[a]]), peak=int(view.axis.mid[known[low + int(np.argmax(values[low:]))]]),
        z=float(excess[a] / max(limit / 6.0, 1e-6)), p=0.005, outcome=Outcome.ONGOING if lasts else Outcome.RECOVERED,
        rank=12, explained_by=_explained(view, start),
        evidence=(f"loss x {np.exp(excess[a:].max()):.3g} above its own minimum",),
        measures={"final": float(stays), "stays": float(stays)},
    )


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
            detected=int(step[k]), peak=int(step[k + int(np.argmax(excess[k:]))]), z=float("inf"), p=0.01,
            outcome=Outcome.RECOVERED if recovered else Outcome.DIVERGED, rank=12,
            evidence=(f"loss x {np.exp(excess[k:].max()):.3g} over its minimum in a history of {value.size} rows",),
            measures={"stays": float(excess[-1]), "rise": float(excess[k:].max())},
        )
    ]


def _explained(view: RunView, step: int) -> Explanation | None:
    """An epoch boundary or an announced data switch at the place."""
    cadence = 1.0
    for role, why in ((Role.EPOCH, Explanation.EPOCH_BOUNDARY), (Role.DATA_SOURCE, Explanation.DATA_SWITCH)):
        series = view.run.by_role.get(role)
        if series is None or series.step.size < 2:
            continue
        cadence = float(np.median(np.diff(series.step)))
        changed = series.step[1:][np.diff(np.floor(series.value)) > 0] if role == Role.EPOCH else series.step[1:][np.diff(series.value) != 0]
        if 0 < changed.size < series.step.size / 3 and (np.abs(changed - step) <= max(3 * cadence, 0.01 * view.axis.span)).any():
            return why
    return None

"""Seams: a log that goes back, an epoch counter that does, an optimizer that forgot, a model that began anew."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import Form, RunView
from runtriage.analysis.locate import middle
from runtriage.analysis.order_stats import Array, median, moving_median
from runtriage.model.phrase import Phrase, phrase
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import FindingKind, Outcome, Role

_UPDATE_JUMP, _UPDATE_SD = 0.7, 10.0
_SAME_LR, _SAME_NORM = 0.1, 0.6
_DECAYS = 0.3
_ANEW = 0.75
_LEARNED = 0.5
_FEW = 5
_ENOUGH = 300


def detect(view: RunView) -> list[Form]:
    """Report the first seam that can be seen."""
    if "seam" not in view.memory:
        view.memory["seam"] = next(
            (form for look in (_steps, _epochs, _began_anew, _forgot) if (form := look(view)) is not None), None
        )
    seam = view.memory["seam"]
    return [seam] if isinstance(seam, Form) else []


def _steps(view: RunView) -> Form | None:
    loss = view.run.by_role.get(Role.LOSS)
    if loss is None or not loss.restarts:
        return None
    cadence = float(median(np.diff(loss.step))) if loss.step.size > 1 else 1.0
    if loss.duplicates <= 1 and len(loss.restarts) == 1 and cadence > 0 and loss.step.size < 20:
        return None
    evidence = phrase("seam.steps", times=len(loss.restarts), step=loss.restarts[0], duplicates=loss.duplicates)
    return _form(Role.STEP, loss.restarts[0], float("inf"), evidence, {"restarts": float(len(loss.restarts))})


def _epochs(view: RunView) -> Form | None:
    epoch = view.run.by_role.get(Role.EPOCH)
    if epoch is None or epoch.step.size < 50:
        return None
    value = epoch.value
    back = np.flatnonzero(np.diff(value) < -1e-9)
    if not back.size:
        return None
    step = int(epoch.step[back[0] + 1])
    return _form(
        Role.EPOCH, step, float("inf"),
        phrase("seam.epoch", before=value[back[0]], after=value[back[0] + 1]),
        {"epoch_back": float(value[back[0]] - value[back[0] + 1])},
    )


def _began_anew(view: RunView) -> Form | None:
    """Look for a loss back at its initial level within one row, that falls from there like it did at the start."""
    if Role.LOSS not in view.sketch.rows:
        return None
    step, value = view.sketch.rows[Role.LOSS]
    good = np.isfinite(value)
    step, value = step[good], value[good]
    n = value.size
    if n < _ENOUGH:
        return None
    jump = np.diff(value)
    if not (jump > _ANEW * _LEARNED).any():
        return None
    initial = float(median(value[: max(3, n // 200)]))
    near = max(5, n // 200)
    low = moving_median(value, near) if n <= _ENOUGH * 2 else _coarse(value, near)
    learned = initial - low
    rows = np.flatnonzero((learned[:-1] > _LEARNED) & (jump > _ANEW * learned[:-1]))
    span = max(20, n // 20)
    fell = initial - middle(value, span - near, span)
    if rows.size > _FEW:
        return None
    for row in rows[(rows > span) & (rows + span < n)]:
        before, after = middle(value, row - near, row + 1), middle(value, row + 1, row + 6)
        later = middle(value, row + span - near, row + span)
        if not _weights_reset(view, int(step[row]), int(step[row + 1])):
            continue
        if after - before > _ANEW * (initial - before) and after - later > 0.5 * fell > 0.1 and later - before > 0.1:
            return _form(
                Role.LOSS, int(step[row + 1]), float("inf"),
                phrase(
                    "seam.anew", factor=np.exp(value[row + 1] - before), initial=np.exp(value[row + 1] - initial)
                ),
                {"began_anew": float(value[row + 1] - initial), "jump": float(value[row + 1] - before)},
            )
    return None


def _weights_reset(view: RunView, before: int, after: int) -> bool:
    """Tell whether the log allows it: a parameter norm that does not return, or an lr that is not reset."""
    norm, lr = view.run.by_role.get(Role.PARAM_NORM), view.run.by_role.get(Role.LR)
    if norm is not None and norm.value.size > 10:
        at = int(np.clip(np.searchsorted(norm.step, after), 1, norm.value.size - 1))
        first, old, new = norm.value[0], norm.value[at - 1], norm.value[min(at + 1, norm.value.size - 1)]
        if abs(new - first) > 0.5 * abs(old - first):
            return False
    if lr is not None and lr.value.size > 10:
        at = int(np.clip(np.searchsorted(lr.step, after), 1, lr.value.size - 1))
        was = float(np.nanmedian(lr.value[max(0, int(np.searchsorted(lr.step, before)) - 5) : at]))
        if np.isfinite(was) and was > 0 and 0.8 < lr.value[at] / was < 1.25:
            return False
    return True


def _coarse(value: Array, near: int) -> Array:
    """Median per block of ``near`` rows, repeated: good enough to know what had been learned."""
    blocks = value[: value.size // near * near].reshape(-1, near)
    level = np.repeat(np.median(blocks, axis=1), near)
    level = np.concatenate([np.full(near, level[0]), level])[: value.size]
    return np.concatenate([level, np.full(value.size - level.size, level[-1])])


def _forgot(view: RunView) -> Form | None:
    """Look for an update ratio that jumps at unchanged lr and norm, and decays: Adam's moments start from zero."""
    ratio = view.run.by_role.get(Role.UPDATE_RATIO)
    if ratio is None or ratio.value.size < 100:
        return None
    u = _log(ratio)
    d = np.diff(u)
    size = np.abs(d)
    sd = 1.4826 * (moving_median(size, 30) if size.size <= 20000 else np.full(size.size, np.nanmedian(size)))
    lr, norm = _aligned(view.run, Role.LR, ratio), _aligned(view.run, Role.GRAD_NORM, ratio)
    skipped = _aligned(view.run, Role.SKIPPED_STEPS, ratio, log=False)
    with np.errstate(invalid="ignore"):
        candidates = np.flatnonzero(d > np.maximum(_UPDATE_SD * sd, _UPDATE_JUMP))
    for i in map(int, candidates):
        if i < max(10, u.size // 40) or i + 40 >= u.size:
            continue
        if skipped is not None and np.nansum(skipped[max(0, i - 3) : i + 2]) > 0:
            continue
        same_lr = lr is None or not np.isfinite(lr[i : i + 2]).all() or abs(lr[i + 1] - lr[i]) < _SAME_LR
        known_norm = norm is not None and np.isfinite(norm[i + 1])
        same_norm = norm is None or not known_norm or norm[i + 1] - middle(norm, i - 30, i + 1) < _SAME_NORM
        decays = u[i + 1] - middle(u, i + 10, i + 40) > _DECAYS * d[i] and u[i + 2] - u[i] > 0.4 * d[i]
        if same_lr and same_norm and decays:
            return _form(
                Role.UPDATE_RATIO, int(ratio.step[i + 1]), float(d[i] / max(sd[i], 1e-9)),
                phrase("seam.updates", factor=np.exp(d[i])),
                {"update_jump": float(d[i])},
            )
    return None


def _log(series: Series) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isfinite(series.value) & (series.value > 0), np.log(series.value), np.nan)


def _aligned(run: PreparedRun, role: str, to: Series, *, log: bool = True) -> Array | None:
    series = run.by_role.get(role)
    if series is None or not series.step.size:
        return None
    values = _log(series) if log else series.value
    at = np.clip(np.searchsorted(series.step, to.step), 0, series.step.size - 1)
    return np.where(series.step[at] == to.step, values[at], np.nan)


def _form(role: str, step: int, z: float, evidence: Phrase, measures: dict[str, float]) -> Form:
    return Form(
        kind=FindingKind.RESUME_DISCONTINUITY, role=role, start=step, detected=step, peak=step, z=z, p=1e-6,
        outcome=Outcome.ONGOING, rank=1, evidence=(evidence,), measures=measures,
    )

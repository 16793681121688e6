"""A loss that swings back and forth, larger than the cohort's noise, regularly, and without progress."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.context import ABOVE, lr_above
from runtriage.analysis.form import LAST_RESORT, Form, RunView, rows_against_centre
from runtriage.analysis.locate import locate, middle
from runtriage.analysis.order_stats import Array, median, moving_mean, runs_true
from runtriage.analysis.sketch import NOISE
from runtriage.analysis.spikes import form_at, usable_rows
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_LARGER = 0.6
_SHARE, _LAG1 = 0.4, -0.5
_MIN_WINDOW = 48
_LR_FACTOR = 1.3
_GROWN = 1.1
_CYCLES = 3
_BEFORE, _GAIN = 8, 0.05
_STAYS, _LEAST_STEP, _STANDS_OUT = 0.5, 0.02, 5.0


def detect(view: RunView) -> list[Form]:
    """Report the first stretch where noise is far above the cohort's and has a period, or else what made it so.

    Small-batch noise is irregular and its trend still falls; it is left alone. Without a cohort the noise is compared
    with the run's own first third, and a falling trend exonerates.
    """
    if Role.LOSS not in view.own.residual:
        return []
    e = view.own.residual[Role.LOSS]
    step = view.own.step[f"{Role.LOSS}/1"]
    noisy = _noisy_bins(view)
    others: list[Form] = []
    for a, b in runs_true(noisy):
        if b - a < 3:
            continue
        lo, hi = (int(x) for x in np.searchsorted(step, [view.axis.edges[a], view.axis.edges[b]]))
        regular, share, lag1 = _regular(e, lo, hi)
        beside = view.has_cohort and Role.LOSS in view.r
        progress = _gains(view.r[Role.LOSS], a, b) if beside else _falls(view, lo, hi)
        forced = _driven(view, a, b)
        if forced is None and (not regular or progress):
            once = _unrest(view, a, b)
            others += [once] if once is not None else []
            continue
        start = float(forced) if forced is not None else _first_swing(view, e, step, lo, hi)
        larger = _size(view, a, b)
        return [
            Form(
                kind=FindingKind.OSCILLATION, role=Role.LOSS, start=int(start), detected=int(start),
                peak=int(view.axis.mid[(a + b) // 2]), end=None if b >= view.axis.bins - 1 else int(view.axis.edges[b]),
                z=_z(view, a, b), p=view.p_level(NOISE + Role.LOSS, _z(view, a, b)), rank=4,
                outcome=Outcome.ONGOING if b >= view.axis.bins - 1 else Outcome.RECOVERED,
                evidence=(phrase("swing", factor=np.exp(larger), share=share, lag1=lag1),),
                measures={
                    "larger": larger, "share": share, "lag1": lag1,
                    "final": middle(view.r[Role.LOSS], a, b) if Role.LOSS in view.r else 0.0
                },
            )
        ]
    return others[:1]


def _unrest(view: RunView, a: int, b: int) -> Form | None:
    """Describe a stretch whose noise is beyond the cohort's without a period, by the excursion or the step in it.

    The tail of single rows is shared with siblings that had spikes of their own, and the spread of levels with siblings
    that lie apart: both may hide what the noise shows. Noise that is larger all along is neither.
    """
    channel = f"{Role.LOSS}/1"
    beside = view.has_cohort and Role.LOSS in view.r and channel in view.own.z
    if not beside or b - a > view.axis.bins // 4 or a <= _BEFORE or view.axis.bins - b < _BEFORE:
        return None
    size = _z(view, a, b)
    p, r = view.p_level(NOISE + Role.LOSS, size), view.r[Role.LOSS]
    before = middle(r, a - _BEFORE, a)
    stays, top = middle(r, b, b + _BEFORE) - before, float(np.nanmax(r[a:b])) - before
    lo, hi = (int(x) for x in np.searchsorted(view.own.step[channel], [view.axis.edges[a], view.axis.edges[b]]))
    if stays < _STAYS * top:
        z = np.where(usable_rows(view, Role.LOSS), view.own.z[channel], 0.0)[lo:hi]
        if z.max(initial=0.0) < _STANDS_OUT:
            return None
        form = form_at(view, Role.LOSS, FindingKind.LOSS_SPIKE, lo + int(z.argmax()), size, p)
        return dataclasses.replace(form, rank=LAST_RESORT)
    step, rows = rows_against_centre(view, Role.LOSS)
    onset = locate(rows, lo, hi)
    if not onset.is_step or stays < _LEAST_STEP:
        return None
    start = int(step[onset.index])
    return Form(
        kind=FindingKind.STEP_UP, role=Role.LOSS, start=start, detected=start, peak=start, z=size, p=p,
        outcome=Outcome.ONGOING, rank=LAST_RESORT,
        evidence=(phrase("level.moves", factor=np.exp(stays), members=view.members, z=size),),
        measures={"jump": stays, "final": stays},
    )


def _gains(residual: Array, a: int, b: int) -> bool:
    """Tell whether a run gets better than its siblings in a stretch, by what it was before: levels differ for good."""
    return middle(residual, a, b) - middle(residual, a - _BEFORE, a) < -_GAIN


def _driven(view: RunView, a: int, b: int) -> int | None:
    """Step at which the lr jumped above the cohort's for good, when the noise then grew several times and stayed.

    Swings that grow without bound have no period to be found; the lr tells what they are.
    """
    above, role, lr = lr_above(view), NOISE + Role.LOSS, view.run.by_role.get(Role.LR)
    if above is None or lr is None or view.schedule is None or role not in view.r:
        return None
    if b - a < max(3, view.axis.bins // 8):
        return None
    row = int(np.searchsorted(lr.step, above))
    jumped = lr.value[min(row, lr.value.size - 1)] > _LR_FACTOR * lr.value[max(0, row - 1)]
    late = int(np.searchsorted(lr.step, view.axis.edges[b] - 1))
    ends = np.log(max(lr.value[min(late, lr.value.size - 1)], 1e-300))
    stays = ends - np.interp(view.axis.edges[b], *view.schedule) > ABOVE
    # the size of the noise is smoothed over some bins, so it rises on paper before it does
    near = view.axis.edges[max(0, a - 4)] <= above <= view.axis.edges[min(view.axis.bins, a + view.axis.bins // 6 + 2)]
    return above if jumped and stays and near and middle(view.r[role], a, b) > _GROWN else None


def _noisy_bins(view: RunView) -> NDArray[np.bool_]:
    role = NOISE + Role.LOSS
    if view.has_cohort and role in view.z:
        beyond = view.z[role] > view.limit(role)
        return np.asarray(beyond & (view.r[role] > _LARGER))
    own = view.sketch.level.get(role)
    if own is None or not np.isfinite(own).any():
        return np.zeros(view.axis.bins, dtype=bool)
    third = own[: max(3, own.size // 3)]
    past = np.nanmedian(third) if np.isfinite(third).any() else np.nan
    return np.asarray(np.nan_to_num(own - max(float(past), np.log(0.025))) > np.log(2.5))


def _size(view: RunView, a: int, b: int) -> float:
    role = NOISE + Role.LOSS
    if role in view.r:
        return middle(view.r[role], a, b)
    own = view.sketch.level[role]
    return middle(own, a, b) - middle(own, 0, max(3, own.size // 3))


def _z(view: RunView, a: int, b: int) -> float:
    role = NOISE + Role.LOSS
    return float(np.nanmax(view.z[role][a:b])) if role in view.z else float("inf")


def _regular(e: Array, lo: int, hi: int) -> tuple[bool, float, float]:
    """Median spectral share and lag-1 correlation over windows of the stretch; regular when either passes in half."""
    window = max(_MIN_WINDOW, (hi - lo) // 2)
    shares, lags = [], []
    for i in range(lo, max(lo + 1, hi - window + 1), max(1, window // 2)):
        y = e[i : i + window]
        y = y[np.isfinite(y)]
        if y.size < _MIN_WINDOW // 2:
            continue
        y = y - median(y)
        sd = 1.4826 * median(np.abs(y))
        y = np.clip(y, -4 * sd, 4 * sd)
        t, taper = _ramp_and_taper(y.size)
        y = y - y.mean() - (t @ y) / (t @ t) * t
        power = np.abs(np.fft.rfft(y * taper)) ** 2
        whole = power[1:].sum()
        power[:_CYCLES] = 0.0
        top = int(power.argmax())
        shares.append(float(power[max(0, top - 2) : top + 3].sum() / max(whole, 1e-300)))
        lags.append(float(y[:-1] @ y[1:] / max(y @ y, 1e-300)))
    if not shares:
        return False, 0.0, 0.0
    passed = sum(s > _SHARE or g < _LAG1 for s, g in zip(shares, lags, strict=True))
    return passed >= max(1, (len(shares) + 1) // 2), float(median(shares)), float(median(lags))


@lru_cache(maxsize=64)
def _ramp_and_taper(n: int) -> tuple[Array, Array]:
    return np.linspace(-1.0, 1.0, n), np.hanning(n)


def _falls(view: RunView, lo: int, hi: int) -> bool:
    value = view.sketch.rows[Role.LOSS][1][lo:hi]
    value = value[np.isfinite(value)]
    half = value.size // 2
    if half < 6:
        return False
    sd = 1.4826 * median(np.abs(value - median(value)))
    return bool(median(value[:half]) - median(value[half:]) > 0.25 * sd)


def _first_swing(view: RunView, e: Array, step: Array, lo: int, hi: int) -> float:
    """First row of the swing: where the local size of the residual passes half of what it becomes."""
    size = moving_mean(np.abs(e), 4)
    later = middle(size, lo, hi)
    back = max(0, lo - (hi - lo))
    calm = np.flatnonzero(size[back:lo] < 0.5 * later)
    row = back + int(calm[-1]) + 1 if calm.size else lo
    lr = view.run.by_role.get(Role.LR)
    if lr is not None and view.schedule is not None:
        good = np.isfinite(lr.value) & (lr.value > 0)
        away = np.abs(np.log(lr.value[good]) - np.interp(lr.step[good], *view.schedule)) > 0.1
        off = lr.step[good][away]
        if off.size and step[back] <= off[0] <= step[min(hi, step.size) - 1]:
            return float(off[0])
    return float(step[min(row, step.size - 1)])

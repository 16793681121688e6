"""A run reduced to bins of the training axis, so that runs of one config can be laid beside each other.

Symbols
-------
======  ===========================================================
B       bins
q       place in training, step / T, with T the cohort's last step
u(q)    warped place: half linear, half logarithmic, finer at the start
======  ===========================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.derived import derive, floored_log
from runtriage.analysis.order_stats import Array, moving_mean, moving_median, sorted_bins, sorted_quantile
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import Role

LEVEL_ROLES: tuple[str, ...] = (
    Role.LOSS, Role.GRAD_NORM, Role.UPDATE_RATIO, Role.PARAM_NORM, Role.ATTENTION_LOGIT, Role.GRAD_NORM_CLIPPED,
    Role.SEQ_LEN,
)
"""Roles whose level is compared with the cohort's, each positive and judged in the log domain."""

NOISE = "noise/"
"""Prefix of the pseudo role that carries the log of a role's own noise."""

_WARP = 8.0
_NORMAL_IQR = 1.349
_UNIFORM_IQR_SD = 0.5 / _NORMAL_IQR
_MIN_BINS, _MAX_BINS, _ROWS_PER_BIN = 6, 96, 16
_WIGGLE = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """Common bins of a cohort.

    Attributes
    ----------
    edges
        float64 steps, shape (B + 1,).
    mid
        Middle of each bin, shape (B,).
    """

    edges: Array
    mid: Array

    @property
    def bins(self) -> int:
        """Number of bins."""
        return self.mid.size

    @property
    def span(self) -> float:
        """Steps from the first edge to the last."""
        return float(self.edges[-1] - self.edges[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """One run on a cohort's axis.

    Attributes
    ----------
    run_id
        The run.
    level
        Role to the median log value per bin, shape (B,); NaN without rows.
    noise
        Role to the robust standard deviation of the log values within a bin around their trend, shape (B,).
    rows
        Role to (step, log value) at full resolution; values that are not positive and finite are NaN.
    local_sd
        Role to the local noise at each row, shape (n,): filled by whoever needs it first, since no cohort changes it.
    place
        Role to the number of rows behind the middle of each bin, shape (B,), and the steps of each row since that
        middle, shape (n,): filled likewise.
    """

    run_id: str
    level: dict[str, Array] = field(default_factory=dict)
    noise: dict[str, Array] = field(default_factory=dict)
    rows: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    local_sd: dict[str, Array] = field(default_factory=dict)
    place: dict[str, tuple[NDArray[np.intp], Array]] = field(default_factory=dict)

    def along(self, role: str, axis: Axis, level: Array) -> Array:
        """Lay a level along the rows of a role: straight between the middles of bins, constant beyond them.

        Parameters
        ----------
        role
            With rows.
        axis
            The bins.
        level
            Shape (B,); NaN is not known, at least one is.

        Returns
        -------
        ndarray of float64
            Shape (n,).
        """
        known = np.isfinite(level)
        if not known.all():
            return np.asarray(np.interp(self.rows[role][0], axis.mid[known], level[known]))
        if role not in self.place:
            step = self.rows[role][0]
            at = np.maximum(np.searchsorted(axis.mid, step, side="right") - 1, 0)
            self.place[role] = np.bincount(at, minlength=axis.bins), np.maximum(step - axis.mid[at], 0.0)
        rows, since = self.place[role]
        slope = np.zeros(level.size)
        np.divide(level[1:] - level[:-1], axis.mid[1:] - axis.mid[:-1], out=slope[:-1])
        out = slope.repeat(rows)
        out *= since
        out += level.repeat(rows)
        return out


def warp(q: Array) -> Array:
    """Map place in training to the warped axis, 0 to 0 and 1 to 1."""
    return np.asarray(0.5 * q + 0.5 * np.log1p(_WARP * q) / np.log1p(_WARP), np.float64)


def make_axis(runs: list[PreparedRun]) -> Axis:
    """Lay bins over the median length of some runs; the number follows the median count of loss rows."""
    last = [r.last_step() for r in runs if r.last_step() > 0] or [1]
    first = [int(s.step[0]) for r in runs for s in (r.by_role.get(Role.LOSS),) if s is not None and s.step.size] or [0]
    sizes = [s.step.size for r in runs for s in (r.by_role.get(Role.LOSS),) if s is not None]
    start, stop = float(np.median(first)), float(np.median(last)) + 1.0
    start = min(start, stop - 1.0)
    rows = float(np.median(sizes)) if sizes else 0.0
    bins = int(np.clip(rows // _ROWS_PER_BIN, _MIN_BINS, _MAX_BINS))
    fine = np.linspace(0.0, 1.0, 4097)
    edges = start + (stop - start) * np.interp(np.linspace(0.0, 1.0, bins + 1), warp(fine), fine)
    # far out, neighbouring floats are hundreds of steps apart: edges that fall together are one
    edges = np.unique(edges)
    if edges.size < 2:
        edges = np.array([start, np.nextafter(start, np.inf)])
    return Axis(edges=edges, mid=edges[:-1] / 2 + edges[1:] / 2)


def sketch(run: PreparedRun, axis: Axis) -> Sketch:
    """Reduce a run to levels and noise per bin for each role that is compared."""
    out = Sketch(run_id=run.info.id)
    last, step = None, np.empty(0)  # most roles are logged at the same steps, and then share them
    for role in (*LEVEL_ROLES, *(r for r in run.by_role if r.startswith(Role.LAYER_GRAD_NORM))):
        series = run.by_role.get(role)
        if series is None:
            continue
        value = floored_log(series.value) if role.startswith(Role.LAYER_GRAD_NORM) else log_value(series)
        if value is None:
            continue
        if last is None or not np.array_equal(series.step, last):
            last, step = series.step, series.step.astype(np.float64)
        level, noise = bin_stats(step, value, axis.edges)
        out.level[role], out.noise[role], out.rows[role] = level, noise, (step, value)
    out.level.update(derive(run, axis.edges, out.level))
    if Role.LOSS in out.noise:
        out.level[NOISE + Role.LOSS] = _log_noise(out.level[Role.LOSS], out.noise[Role.LOSS])
    return out


def _log_noise(level: Array, noise: Array) -> Array:
    """Log of the noise within bins together with the wiggle of the level over nine bins: slow swings count as well."""
    within = moving_median(noise, 1)
    wiggle = moving_mean((level - moving_mean(level, _WIGGLE)) ** 2, _WIGGLE)
    total = np.sqrt(np.nan_to_num(within) ** 2 + np.nan_to_num(wiggle))
    return np.where(np.isfinite(within), np.log(np.maximum(total, 1e-3)), np.nan)


def log_value(series: Series) -> Array | None:
    """Log of the positive finite values, NaN elsewhere; None for a series that is mostly not positive."""
    if series.value.size and series.value.min() > 0 and series.value.max() < np.inf:
        return np.asarray(np.log(series.value))
    good = np.isfinite(series.value) & (series.value > 0)
    finite = np.isfinite(series.value).sum()
    if finite and good.sum() < 0.9 * finite and (series.value[np.isfinite(series.value)] < 0).any():
        return None
    out = np.full(series.value.size, np.nan)
    np.log(series.value, out=out, where=good)
    return out


def bin_stats(step: Array, value: Array, edges: Array) -> tuple[Array, Array]:
    """Median and robust noise per bin.

    Parameters
    ----------
    step, value
        Shape (n,), steps rising; NaN values are missing.
    edges
        Shape (B + 1,).

    Returns
    -------
    level, noise
        Shape (B,). The noise is the quartile range, as a normal standard deviation, less the part that a trend within
        the bin makes; NaN below 6 rows.
    """
    at = np.searchsorted(step, edges)
    counts = np.diff(at)
    longest = int(counts.max(initial=0))
    bins = counts.size
    if not longest:
        return np.full(bins, np.nan), np.full(bins, np.nan)
    table = sorted_bins(value, at)
    if table is not None:
        ordered, finite = table
        level, low, high = (sorted_quantile(ordered, finite, q) for q in (0.5, 0.25, 0.75))
    else:
        level, low, high, finite = _uneven(value, at)
    level = np.where(finite > 0, level, np.nan)
    spread = (high - low) / _NORMAL_IQR
    known = np.isfinite(level)
    slope = np.zeros(bins)
    if bins > 2 and known.all():
        slope[1:-1] = 0.5 * (level[2:] - level[:-2])
        slope[0], slope[-1] = level[1] - level[0], level[-1] - level[-2]
    elif known.sum() > 2:
        where = np.flatnonzero(known)
        slope[where] = np.gradient(level[where], where.astype(np.float64))
    trend = _UNIFORM_IQR_SD * np.abs(slope)
    noise = np.sqrt(np.maximum(spread**2 - trend**2, 0.04 * spread**2))
    return level, np.where(finite >= 6, noise, np.nan)


def _uneven(value: Array, at: np.ndarray) -> tuple[Array, Array, Array, np.ndarray]:
    """Quartiles per bin when a few bins hold nearly all rows, so that a padded table would not fit."""
    rows = np.full((at.size - 1, 3), np.nan)
    finite = np.zeros(at.size - 1, dtype=np.intp)
    for i, (a, b) in enumerate(pairwise(at)):
        part = value[a:b][np.isfinite(value[a:b])]
        finite[i] = part.size
        if part.size:
            rows[i] = np.quantile(part, (0.25, 0.5, 0.75))
    return rows[:, 1], rows[:, 0], rows[:, 2], finite

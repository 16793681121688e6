"""Sudden excursions of single rows: how large, and how often a healthy run of this cohort shows one as large.

A row's residual is taken from the run's own slowly moving level (laid over the cohort's, so that a steep descent is not
an excursion) and divided by the local noise. What size is remarkable depends on the tail of that noise, which is heavy
for small batches; so the tail is measured, on the largest excursion per bin of all trusted members, and extrapolated as
a power law.

References
----------
Weissman (1978), Journal of the American Statistical Association 73, 812-815, eq. 3: extrapolated quantiles of a power
tail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.order_stats import Array, median, moving_median
from runtriage.analysis.sketch import Axis, Sketch
from runtriage.model.vocab import Role

WIDTHS: tuple[int, ...] = (1, 4)
"""Rows that are averaged: a lone row, and a short stretch."""

JOINT = "joint"
"""Channel in which loss and grad norm are added, each in its own noise."""

NOISE_FLOOR: dict[str, float] = {Role.LOSS: 0.004, Role.GRAD_NORM: 0.02}
"""Smallest believable noise in log units: averages over many batches have next to none."""

LEAD_BINS = 2
"""First bins, in which no spike is looked for."""

_LONE_CAP = 6.0
_HALF_WINDOW = 4
_SAMPLE = 8192
_LEAST_BINS = 6
_LEAST_RANKS = 8
_PASSED_OVER = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Excursions:
    """Residuals of one run.

    Attributes
    ----------
    residual
        Role to log residual per row, shape (n,).
    z
        Channel to standardised excursion per row, shape (n,); rows of the joint channel are those of the loss.
    step
        Channel to float64 steps, shape (n,).
    peak
        Channel to the largest z per bin, shape (B,); 0 where there is no row.
    """

    residual: dict[str, Array]
    z: dict[str, Array]
    step: dict[str, Array]
    peak: dict[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Upper tail of the largest excursion in a run.

    Attributes
    ----------
    anchor
        The z that a healthy run passes ``rate`` times on average.
    rate
        Expected number of bins beyond the anchor.
    index
        Power-law index; large for normal noise.
    """

    anchor: float
    rate: float
    index: float

    def p_run(self, z: float, heaviest: float = np.inf) -> float:
        """Chance that a healthy run holds an excursion of ``z`` or more, with an index of at most ``heaviest``."""
        index = min(self.index, heaviest)
        return float(-np.expm1(-self.rate * (max(z, self.anchor) / self.anchor) ** -index))


def excursions(sketch: Sketch, axis: Axis, centre: dict[str, Array]) -> Excursions:
    """Standardise the rows of a run.

    Parameters
    ----------
    sketch
        The run.
    axis
        Its bins.
    centre
        Role to the cohort's level per bin, shape (B,); a role that is missing is detrended by its own level alone.
    """
    residual: dict[str, Array] = {}
    units: dict[str, Array] = {}
    rows: dict[str, Array] = {}
    for role, floor in NOISE_FLOOR.items():
        if role not in sketch.rows:
            continue
        step, value = sketch.rows[role]
        base = _slow_level(sketch.level[role], centre.get(role))
        noise = moving_median(sketch.noise[role], _HALF_WINDOW)
        known = np.isfinite(base)
        if known.sum() < 3 or not np.isfinite(noise).any():
            continue
        e = value - np.interp(step, axis.mid[known], base[known])
        noisy = np.isfinite(noise)
        sd = np.interp(step, axis.mid[noisy], np.maximum(noise[noisy], floor))
        residual[role] = e
        units[role] = np.nan_to_num(e / sd, nan=0.0, posinf=0.0, neginf=0.0)
        rows[role] = step
    z, steps = channels_of(units, rows)
    peak = {channel: block_max(steps[channel], values, axis.edges) for channel, values in z.items()}
    for largest in peak.values():
        largest[:LEAD_BINS] = 0.0  # a start is steep and settles: its excursions say nothing of later ones
    return Excursions(residual=residual, z=z, step=steps, peak=peak)


def channels_of(units: dict[str, Array], steps: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Average standardised rows over each width, and add loss and grad norm where both have them.

    Parameters
    ----------
    units, steps
        Role to standardised residuals and their steps, shape (n,).

    Returns
    -------
    z, steps
        By channel.
    """
    z: dict[str, Array] = {}
    out: dict[str, Array] = {}
    for role, unit in units.items():
        for width in WIDTHS:
            channel = f"{role}/{width}"
            z[channel] = unit if width == 1 else _averaged(unit, width)
            out[channel] = steps[role]
    loss, norm = f"{Role.LOSS}/1", f"{Role.GRAD_NORM}/1"
    if loss in z and norm in z:
        other = z[norm] if z[norm].size == z[loss].size and np.array_equal(out[norm], out[loss]) else None
        if other is None and out[norm].size:
            at = np.clip(np.searchsorted(out[norm], out[loss]), 0, out[norm].size - 1)
            other = np.where(out[norm][at] == out[loss], z[norm][at], 0.0)
        if other is not None:
            z[JOINT] = np.minimum(
                z[loss], 3.0 * np.maximum(other, 0.0)
            ) + np.minimum(other, 3.0 * np.maximum(z[loss], 0.0))
            out[JOINT] = out[loss]
    return z, out


def fit_tail(members: list[Array], own: Array) -> Tail:
    """Fit the upper tail of the largest excursions per bin.

    Parameters
    ----------
    members
        Largest excursion per bin of each other run, shape (B,) each; zero is no data.
    own
        The same of the run itself, used only when there are fewer than two others.

    Notes
    -----
    The bins of all members are ranked together. The first few ranks, one for each three members, are passed over: they
    may be real spikes of members that were not found out. The slope of log size against log rank over the next ranks is
    one over the index. A lone run has only itself, and passes over its two largest bins.
    """
    pool = [m[m > 0] for m in members]
    pool = [m for m in pool if m.size >= _LEAST_BINS]
    runs = len(pool)
    if runs >= 2:
        values = np.sort(np.concatenate(pool))[::-1]
        first = 1 + -(-runs // _PASSED_OVER)
    else:
        runs, values, first = 1, np.sort(own[own > 0])[::-1], 3
        if values.size < 2 * _LEAST_BINS:
            return Tail(anchor=6.0, rate=1.0, index=3.0)
    last = min(values.size, first + max(_LEAST_RANKS, values.size // 40))
    ranked = np.maximum(values[first - 1 : last], 0.5)
    x = np.log(np.arange(first, first + ranked.size))
    x -= x.mean()
    slope = -float(x @ np.log(ranked)) / max(float(x @ x), 1e-12)
    return Tail(
        anchor=max(float(ranked[0]), 2.5), rate=first / runs, index=float(np.clip(1.0 / max(slope, 1e-3), 2.0, 10.0))
    )


def _slow_level(own: Array, centre: Array | None) -> Array:
    if centre is None or not np.isfinite(centre).any():
        return moving_median(own, 2)
    offset = moving_median(own - centre, _HALF_WINDOW)
    return np.where(np.isfinite(centre), centre + offset, moving_median(own, 2))


def _averaged(unit: Array, width: int) -> Array:
    """Mean of the next ``width`` rows, standardised by its own measured spread so that autocorrelation is paid for."""
    if unit.size < 4 * width:
        return unit
    total = np.concatenate([[0.0], np.cumsum(np.minimum(unit, _LONE_CAP))])
    mean = np.empty_like(unit)
    mean[: 1 - width] = (total[width:] - total[:-width]) / width
    mean[1 - width :] = mean[-width]
    every = max(1, unit.size // _SAMPLE)
    sample, rows = mean[::every], unit[::every]
    ratio = median(np.abs(sample - median(sample))) / max(median(np.abs(rows - median(rows))), 1e-12)
    return mean / float(np.clip(ratio, width**-0.5, 1.0))


def block_max(step: Array, z: Array, edges: Array) -> Array:
    """Find the largest value per bin.

    Parameters
    ----------
    step, z
        Rows, shape (n,) each, steps rising.
    edges
        Shape (B + 1,).

    Returns
    -------
    ndarray
        Shape (B,); 0 where there is no row.
    """
    at = np.searchsorted(step, edges)
    out = np.zeros(edges.size - 1)
    some = np.flatnonzero(np.diff(at) > 0)
    if some.size:
        out[some] = np.maximum.reduceat(z[: at[-1]], at[some])
    return out


def shared_steps(events: list[NDArray[np.int64]], step: float, tolerance: float) -> int:
    """Count the members with one of their largest excursions near a step.

    Parameters
    ----------
    events
        Steps of each member's largest excursions.
    step, tolerance
        Where, and how far off still counts.
    """
    return sum(bool(e.size) and bool((np.abs(e - step) <= tolerance).any()) for e in events)

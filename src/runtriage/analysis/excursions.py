"""Sudden excursions of single rows: how large, in units of the local noise.

A row's residual is taken from the run's own slowly moving level (laid over the cohort's, so that a steep descent is not
an excursion) and divided by the local noise. What size is remarkable depends on the tail of that noise, which is heavy
for small batches: :mod:`runtriage.analysis.tails` measures it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
_SAMPLE = 2048


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
        Channel to the largest z per bin, shape (B,); 0 where there is no row, and in the first bins.
    largest
        Channel to the largest z of any row, at least 0.
    """

    residual: dict[str, Array]
    z: dict[str, Array]
    step: dict[str, Array]
    peak: dict[str, Array]
    largest: dict[str, float]


def excursions_of(
    sketches: Sequence[Sketch], axis: Axis, centres: Sequence[Mapping[str, Array]]
) -> list[Excursions]:
    """Standardise the rows of runs.

    Parameters
    ----------
    sketches
        The runs.
    axis
        Their bins.
    centres
        Per run, role to the cohort's level per bin, shape (B,); a role that is missing is detrended by its own level
        alone.
    """
    for role, floor in NOISE_FLOOR.items():
        _lay_noise(sketches, role, axis, floor)
    bases = [_slow_levels(sketches, role, centres) for role in NOISE_FLOOR]
    out = []
    for sketch, levels in zip(sketches, zip(*bases, strict=True), strict=True):
        residual: dict[str, Array] = {}
        units: dict[str, Array] = {}
        rows: dict[str, Array] = {}
        for role, base in zip(NOISE_FLOOR, levels, strict=True):
            known = np.isfinite(base)
            sd = sketch.local_sd.get(role)
            if sd is None or known.sum() < 3:
                continue
            step, value = sketch.rows[role]
            e = value - sketch.along(role, axis, base)
            unit = e / sd
            residual[role] = e
            units[role] = unit if np.isfinite(unit).all() else np.nan_to_num(unit, nan=0.0, posinf=0.0, neginf=0.0)
            rows[role] = step
        z, steps = channels_of(units, rows)
        peak, largest = peaks_of(z, steps, axis)
        out.append(Excursions(residual=residual, z=z, step=steps, peak=peak, largest=largest))
    return out


def _lay_noise(sketches: Sequence[Sketch], role: str, axis: Axis, floor: float) -> None:
    """Lay the noise of a role along the rows of each run that does not have it yet, where it is known at all."""
    due = [s for s in sketches if role in s.rows and role not in s.local_sd]
    if not due:
        return
    for sketch, noise in zip(due, moving_median(np.array([s.noise[role] for s in due]), _HALF_WINDOW), strict=True):
        if np.isfinite(noise).any():
            sketch.local_sd[role] = sketch.along(role, axis, np.maximum(noise, floor))


def peaks_of(
    z: Mapping[str, Array], steps: Mapping[str, Array], axis: Axis
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the largest excursion of each channel, per bin and in the whole run.

    The first bins are left out of the former: a start is steep and settles, and its excursions say nothing of later
    ones.

    Parameters
    ----------
    z, steps
        Channel to standardised excursions and their steps, shape (n,).
    axis
        The bins.

    Returns
    -------
    peak, largest
        As in :class:`Excursions`.
    """
    peak, largest = {}, {}
    places: dict[int, NDArray[np.intp]] = {}
    for channel, values in z.items():
        step = steps[channel]
        if id(step) not in places:
            places[id(step)] = np.searchsorted(step, axis.edges)
        at = places[id(step)]
        peak[channel] = largest_per_bin(at, values)
        outside = max(float(part.max(initial=0.0)) for part in (values[: at[0]], values[at[-1] :]))
        largest[channel] = max(outside, float(peak[channel].max(initial=0.0)))
        peak[channel][:LEAD_BINS] = 0.0
    return peak, largest


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
        together = out[norm] is out[loss] or np.array_equal(out[norm], out[loss])
        other = z[norm] if together else None
        if other is None and out[norm].size:
            at = np.clip(np.searchsorted(out[norm], out[loss]), 0, out[norm].size - 1)
            other = np.where(out[norm][at] == out[loss], z[norm][at], 0.0)
        if other is not None:
            z[JOINT] = np.minimum(
                z[loss], 3.0 * np.maximum(other, 0.0)
            ) + np.minimum(other, 3.0 * np.maximum(z[loss], 0.0))
            out[JOINT] = out[loss]
    return z, out


def _slow_levels(sketches: Sequence[Sketch], role: str, centres: Sequence[Mapping[str, Array]]) -> Array:
    """Level that is taken from the rows of each run, shape (C, B): the cohort's moved to the run, or its own."""
    bins = max((level.size for s in sketches for level in s.level.values()), default=0)
    missing = np.full(bins, np.nan)
    own = np.array([s.level.get(role, missing) for s in sketches])
    centre = np.array([c.get(role, missing) for c in centres])
    with np.errstate(invalid="ignore"):
        known = np.isfinite(centre)
        moved = centre + moving_median(own - centre, _HALF_WINDOW)
    return moved if known.all() else np.where(known, moved, moving_median(own, 2))


def _averaged(unit: Array, width: int) -> Array:
    """Mean of the next ``width`` rows, standardised by its own measured spread so that autocorrelation is paid for."""
    if unit.size < 4 * width:
        return unit
    capped = np.minimum(unit, _LONE_CAP)
    mean = np.empty_like(unit)
    total = mean[: 1 - width]
    np.add(capped[: 1 - width], capped[1 : unit.size - width + 2], out=total)
    for away in range(2, width):
        total += capped[away : unit.size - width + 1 + away]
    total /= width
    mean[1 - width :] = total[-1]
    every = max(1, unit.size // _SAMPLE)  # rows nearer than the width tell the same twice
    sample, rows = mean[::every], unit[::every]
    ratio = median(np.abs(sample - median(sample))) / max(median(np.abs(rows - median(rows))), 1e-12)
    mean /= min(max(ratio, width**-0.5), 1.0)
    return mean


def largest_per_bin(at: NDArray[np.intp], z: Array) -> Array:
    """Return the largest value per bin, shape (B,); 0 where there is no row.

    Parameters
    ----------
    at
        First row of each bin and one past the last, shape (B + 1,).
    z
        Shape (n,).
    """
    out = np.zeros(at.size - 1)
    some = np.flatnonzero(at[1:] > at[:-1])
    if some.size:
        out[some] = np.maximum.reduceat(z[: at[-1]], at[some])
    return out


def shared_steps(events: list[NDArray[np.int64]], step: float, tolerance: float) -> int:
    """Count the members with one of their largest excursions near a step.

    Parameters
    ----------
    events, tolerance
        As in :func:`sharing_at`.
    step
        Where.
    """
    return int(sharing_at(events, [step], tolerance)[0])


def sharing_at(events: list[NDArray[np.int64]], steps: ArrayLike, tolerance: float) -> NDArray[np.intp]:
    """Count the members with one of their largest excursions near each of some steps.

    Parameters
    ----------
    events
        Steps of each member's largest excursions.
    steps, tolerance
        Where, shape (m,), and how far off still counts.

    Returns
    -------
    ndarray of int
        Members per step, shape (m,).
    """
    held = np.full((len(events), max((e.size for e in events), default=0)), np.inf)
    for row, e in zip(held, events, strict=True):
        row[: e.size] = e
    near = np.abs(held - np.asarray(steps, np.float64)[:, None, None]) <= tolerance
    return np.asarray(near.any(axis=2).sum(axis=1))

"""Siblings that saw the same batches in the same order: what they have in common is the data, and is subtracted.

With equal data order the residuals of two healthy runs agree row by row (correlation near one), and their difference
has a small fraction of their noise. With different order the correlation is near zero, and subtracting would only add
noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runtriage.analysis.excursions import NOISE_FLOOR, Excursions, channels_of, peaks_of
from runtriage.analysis.order_stats import Array, median, moving_median, nan_median
from runtriage.analysis.sketch import Axis, bin_stats

Rows = tuple[Array, Array]
"""Steps and log residuals, shape (n,) each."""

SAME_ORDER = 0.8
"""Median correlation of residuals that tells a shared data order; measured values are 0.00-0.31 or 0.99-1.00."""

_LEAST_ROWS = 50
_CLIP = 4.0
_MOST_ROWS = 2_000
_MOST_SIBLINGS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Residuals of a loss, and their first rows brought to one scale where none is missing."""

    rows: Rows
    first: Array | None

    @classmethod
    def of(cls, rows: Rows) -> Ordered:
        """Prepare the residuals of a run for any number of comparisons."""
        first = rows[1][:_MOST_ROWS]
        return cls(rows, _scaled(first) if first.size >= _LEAST_ROWS and np.isfinite(first).all() else None)


def share_order(own: Ordered, others: Sequence[Ordered]) -> bool:
    """Tell whether a run shares the data order with its siblings.

    Parameters
    ----------
    own, others
        Residuals of the loss; compared at the steps they have in common.
    """
    correlations: list[float] = []
    for other in others[:_MOST_SIBLINGS]:
        c = _correlation(own, other)
        if c is not None:
            correlations.append(c)
            alike = sum(c > SAME_ORDER for c in correlations)
            if max(alike, len(correlations) - alike) > _MOST_SIBLINGS // 2:
                break  # the median is decided
    return bool(correlations) and float(median(correlations)) > SAME_ORDER


def subtract(own: Excursions, others: list[dict[str, Rows]], axis: Axis) -> Excursions:
    """Take the siblings' median residual from a run's, row by row, and standardise what is left.

    Parameters
    ----------
    own
        The run.
    others
        Role to rows of each sibling.
    axis
        Common bins.
    """
    residual, unit, steps = dict(own.residual), {}, {}
    for role, floor in NOISE_FLOOR.items():
        if role not in own.residual:
            continue
        step = own.step[f"{role}/1"]
        e = own.residual[role]
        tables = [_at(step, o[role]) for o in others if role in o]
        if len(tables) >= 2:
            common = nan_median(np.array(tables), 0)
            e = e - np.where(np.isfinite(common), common, 0.0)
        _, noise = bin_stats(step, e, axis.edges)
        noise = moving_median(noise, 4)
        known = np.isfinite(noise)
        if not known.any():
            return own
        sd = np.interp(step, axis.mid[known], np.maximum(noise[known], floor))
        residual[role] = e
        unit[role] = np.nan_to_num(e / sd, nan=0.0, posinf=0.0, neginf=0.0)
        steps[role] = step
    z, step_of = channels_of(unit, steps)
    peak, largest = peaks_of(z, step_of, axis)
    return dataclasses.replace(own, residual=residual, z=z, step=step_of, peak=peak, largest=largest)


def rows_of(own: Excursions) -> dict[str, Rows]:
    """Return the residual rows of a run by role."""
    return {role: (own.step[f"{role}/1"], e) for role, e in own.residual.items() if f"{role}/1" in own.step}


def _correlation(a: Ordered, b: Ordered) -> float | None:
    if a.first is not None and b.first is not None and _together(a.rows[0], b.rows[0]):
        x, y = a.first, b.first
    else:
        x, y = a.rows[1], _at(a.rows[0], b.rows)
        good = np.isfinite(x) & np.isfinite(y)
        x, y = x[good][:_MOST_ROWS], y[good][:_MOST_ROWS]
        if x.size < _LEAST_ROWS:
            return None
        x, y = _scaled(x), _scaled(y)
    power = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / power if power > 0 else None


def _together(a: Array, b: Array) -> bool:
    return np.array_equal(a[:_MOST_ROWS], b[:_MOST_ROWS])


def _scaled(values: Array) -> Array:
    """Values about their median, cut at four robust standard deviations."""
    centred = values - median(values)
    limit = _CLIP * max(1.4826 * float(median(np.abs(centred))), 1e-12)
    return np.minimum(np.maximum(centred, -limit), limit)


def _at(step: Array, rows: Rows) -> Array:
    """Residuals of other rows at the given steps; NaN where the other has none."""
    if rows[0].size == step.size and np.array_equal(rows[0], step):
        return rows[1]
    at = np.clip(np.searchsorted(rows[0], step), 0, max(rows[0].size - 1, 0))
    return np.where(rows[0][at] == step, rows[1][at], np.nan) if rows[0].size else np.full(step.size, np.nan)

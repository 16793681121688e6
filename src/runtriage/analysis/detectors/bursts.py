"""Many excursions of the grad norm: each may be a bad batch, so many in one run are not.

One rare row proves little, since a cohort of ten cannot know how rare its worst batch is. Several do, however heavy the
tail: their number beyond a size that the cohort passes with a known rate is Poisson in a healthy run.
"""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from runtriage.analysis.excursions import shared_steps
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.order_stats import Array, median
from runtriage.analysis.spikes import LONE_INDEX, form_at, usable_rows
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Role

_CHANNEL = f"{Role.GRAD_NORM}/1"
_LEAST, _MOST = 3, 8


def detect(view: RunView) -> list[Form]:
    """Report the first of several bursts of the grad norm that are more than the cohort's tail allows."""
    if not view.has_cohort or _CHANNEL not in view.tails or Role.GRAD_NORM not in view.own.residual:
        return []
    z, step, tail = view.own.z[_CHANNEL], view.own.step[_CHANNEL], view.tails[_CHANNEL]
    usable = usable_rows(view, Role.GRAD_NORM)
    if np.count_nonzero(usable & (z > tail.anchor)) < _LEAST:
        return []
    shown = np.where(usable, z, 0.0)
    rows = [row for row in summit_rows(shown, np.searchsorted(step, view.axis.edges)) if not _shared(view, step, row)]
    sizes = np.sort(shown[rows])[::-1]
    count, p = rarest_count(sizes, tail.anchor, tail.rate, min(tail.index, LONE_INDEX))
    if p > view.spike_budget:
        return []
    first = min(row for row in rows if shown[row] >= sizes[count - 1])
    form = form_at(view, Role.GRAD_NORM, FindingKind.GRAD_SPIKE, first, float(sizes[0]), p)
    told = phrase("bursts.count", count=count, z=float(sizes[count - 1]), step=form.start)
    return [dataclasses.replace(form, evidence=(*form.evidence, told))]


def _shared(view: RunView, step: Array, row: int) -> bool:
    """Tell whether at least half of the siblings have one of their largest excursions there."""
    events = [e for e in view.events.get(Role.GRAD_NORM, []) if e.size]
    cadence = float(median(np.diff(step))) if step.size > 1 else 1.0
    return bool(events) and 2 * shared_steps(events, float(step[row]), 1.5 * cadence) >= len(events)


def summit_rows(z: Array, at: NDArray[np.intp]) -> list[int]:
    """Return the rows of excursions that are apart: the largest of bins that are larger than both neighbours.

    Parameters
    ----------
    z
        Excursions, shape (n,); 0 without one.
    at
        First row of each bin, and the number of rows, shape (B + 1,).
    """
    tops = [int(a + np.argmax(z[a:b])) if b > a else -1 for a, b in pairwise(at)]
    peak = np.array([0.0, *(z[top] if top >= 0 else 0.0 for top in tops), 0.0])
    high = (peak[1:-1] > 0) & (peak[1:-1] >= peak[:-2]) & (peak[1:-1] > peak[2:])
    return [tops[k] for k in np.flatnonzero(high)]


def rarest_count(sizes: Array, anchor: float, rate: float, index: float) -> tuple[int, float]:
    """Find the number of excursions that is least likely in a healthy run.

    Parameters
    ----------
    sizes
        Excursions, falling, shape (m,).
    anchor, rate, index
        A healthy run passes ``anchor`` ``rate`` times on average, and larger sizes by the power law ``index``.

    Returns
    -------
    count, p
        The ``count`` largest, and the chance of that many, over all counts tried; 1.0 where there are too few.

    Notes
    -----
    ``P(N >= k) = gammainc(k, mean)``, the regularised lower incomplete gamma function, for a Poisson number N.
    """
    k = np.arange(_LEAST, min(_MOST, sizes.size) + 1)
    k = k[sizes[k - 1] > anchor]
    if not k.size:
        return 0, 1.0
    chances = gammainc(k, rate * (sizes[k - 1] / anchor) ** -index)
    best = int(np.argmin(chances))
    return int(k[best]), float(min(1.0, chances[best] * (_MOST - _LEAST + 1)))

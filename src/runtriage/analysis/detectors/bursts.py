"""Many excursions of the grad norm: each may be a bad batch, so many in one run are not.

One rare row proves little, since a cohort of ten cannot know how rare its worst batch is. Several do, however heavy the
tail: how many a healthy run has beyond a size that its siblings pass now and then is known without knowing the rate.
A bad batch shows in its own loss as well, which is taken before the step: only those at which the loss is calm count.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from runtriage.analysis.excursions import largest_per_bin, shared_steps
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.order_stats import Array, median
from runtriage.analysis.spikes import LONE_INDEX, form_at, usable_rows
from runtriage.analysis.tails import Tail
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Role

_CHANNEL = f"{Role.GRAD_NORM}/1"
_LEAST, _MOST = 3, 8
_CALM = 1.64
"""A row of the loss alone passes this z once in twenty."""


def detect(view: RunView) -> list[Form]:
    """Report the first of several bursts of the grad norm that are more than the cohort's tail allows."""
    if not view.has_cohort or _CHANNEL not in view.tails or Role.GRAD_NORM not in view.own.residual:
        return []
    z, step, tail = view.own.z[_CHANNEL], view.own.step[_CHANNEL], view.tails[_CHANNEL]
    if view.own.largest[_CHANNEL] <= tail.anchor:
        return []
    usable = usable_rows(view, Role.GRAD_NORM)
    if np.count_nonzero(usable & (z > tail.anchor)) < _LEAST:
        return []
    shown = np.where(usable, z, 0.0)
    tops = summit_rows(shown, np.searchsorted(step, view.axis.edges))
    rows = [row for row in tops if not _shared(view, step, row) and _loss_at(view, float(step[row])) < _CALM]
    if len(rows) < _LEAST:
        return []
    sizes = np.sort(shown[rows])[::-1]
    count, p = rarest_count(sizes, tail, min(tail.index, LONE_INDEX))
    if p > view.spike_budget:
        return []
    first = min(row for row in rows if shown[row] >= sizes[count - 1])
    form = form_at(view, Role.GRAD_NORM, FindingKind.GRAD_SPIKE, first, float(sizes[0]), p)
    told = phrase("bursts.count", count=count, z=float(sizes[count - 1]), step=form.start)
    return [dataclasses.replace(form, evidence=(*form.evidence, told))]


def _loss_at(view: RunView, step: float) -> float:
    """Return the z of the loss at a step; 0 where it is not logged."""
    channel = f"{Role.LOSS}/1"
    if channel not in view.own.z:
        return 0.0
    at = int(np.searchsorted(view.own.step[channel], step))
    known = at < view.own.step[channel].size and view.own.step[channel][at] == step
    return float(view.own.z[channel][at]) if known else 0.0


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
    peak = np.pad(largest_per_bin(at, z), 1)
    high = (peak[1:-1] > 0) & (peak[1:-1] >= peak[:-2]) & (peak[1:-1] > peak[2:])
    return [int(at[k] + np.argmax(z[at[k] : at[k + 1]])) for k in np.flatnonzero(high)]


def rarest_count(sizes: Array, tail: Tail, index: float) -> tuple[int, float]:
    """Find the number of excursions that is least likely in a healthy run.

    Parameters
    ----------
    sizes
        Excursions, falling, shape (m,).
    tail
        Of the healthy runs: they passed its anchor ``tail.rate`` times each.
    index
        Power law by which larger sizes are rarer than the anchor.

    Returns
    -------
    count, p
        The ``count`` largest, and the chance of that many, over all counts tried; 1.0 where there are too few.

    Notes
    -----
    The anchor is the ``j``-th largest of ``m`` healthy runs. Each excursion beyond it is as likely to be in the new run
    as in any other, so the number in the new run before the ``j``-th of the others is negative binomial:
    ``P(N >= k) = betainc(k, j, 1 / (m + 1))``, the regularised incomplete beta function, exact for Poisson excursions
    of any rate. Of those, a share ``q`` by the power law is beyond a larger size: ``q / (m + q)`` in its place.
    """
    k = np.arange(_LEAST, min(_MOST, sizes.size) + 1)
    k = k[sizes[k - 1] > tail.anchor]
    if not k.size:
        return 0, 1.0
    share = (sizes[k - 1] / tail.anchor) ** -index
    chances = betainc(k, tail.rate * tail.runs, share / (tail.runs + share))
    best = int(np.argmin(chances))
    return int(k[best]), float(min(1.0, chances[best] * (_MOST - _LEAST + 1)))

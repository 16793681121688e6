"""A dynamic loss scale that is halved again and again, or falls far below where the cohort's ever was."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.form import Form, RunView
from runtriage.analysis.order_stats import median
from runtriage.model.phrase import phrase
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import FindingKind, Outcome, Role

HALVINGS = "halvings"
"""Key of a member's events: the steps at which its loss scale was halved."""

_WINDOW_SHARE, _MIN_WINDOW = 20, 10
_LEAST, _OVER = 4, 1.5


def halvings(run: PreparedRun) -> NDArray[np.int64]:
    """Return the steps at which the logged loss scale fell to two thirds or less of the row before."""
    series = run.by_role.get(Role.LOSS_SCALE)
    if series is None or series.value.size < 2:
        return np.empty(0, np.int64)
    if not (series.value[1:] < series.value[:-1]).any() and np.isfinite(series.value).all():
        return np.empty(0, np.int64)
    good = np.isfinite(series.value) & (series.value > 0)
    step, level = series.step[good], np.log2(series.value[good])
    times = np.maximum(np.rint(-np.diff(level)), 0).astype(int)
    return np.repeat(step[1:], np.minimum(times, 8))


def detect(view: RunView) -> list[Form]:
    """Report the first window of a twentieth of the run with more halvings than the cohort's busiest."""
    series = view.run.by_role.get(Role.LOSS_SCALE)
    if series is None or series.value.size < _MIN_WINDOW:
        return []
    at = view.once("halvings", lambda: halvings(view.run))
    if at.size < _LEAST:
        return []
    warm = view.axis.edges[0] + 0.02 * view.axis.span
    at = at[at > warm]
    cadence = float(median(np.diff(series.step)))
    window = max(_MIN_WINDOW * cadence, view.axis.span / _WINDOW_SHARE)
    members = [_busiest(m[m > warm], window) for m in view.events.get(HALVINGS, [])]
    limit = max(_LEAST, int(_OVER * float(median(members)) + 2)) if members else _LEAST + 1
    if at.size < limit:
        return []
    ends = np.searchsorted(at, at + window, side="right")
    hit = np.flatnonzero(ends - np.arange(at.size) >= limit)
    if not hit.size:
        return []
    first = int(hit[0])
    count, start = int(ends[first] - first), int(at[first])
    before = float(series.value[max(0, int(np.searchsorted(series.step, start)) - 1)])
    return [
        Form(
            kind=FindingKind.LOSS_SCALE_COLLAPSE, role=Role.LOSS_SCALE, start=start,
            detected=int(at[min(first + limit - 1, at.size - 1)]),
            peak=int(at[ends[first] - 1]), z=float(count), p=1e-4, outcome=Outcome.ONGOING, rank=2,
            evidence=(
                phrase("scale.halved", before=before, count=count, window=window, most=max(members, default=0)),
            ),
            measures={"halvings": float(count)},
        )
    ]


def _busiest(at: NDArray[np.int64], window: float) -> int:
    if not at.size:
        return 0
    return int((np.searchsorted(at, at + window, side="right") - np.arange(at.size)).max())

"""Lay runs beside their cohort and let every detector look; bad members are found and cut on the way.

A cohort learned beforehand is trusted. A cohort formed from the very runs that are judged is not: the centre then comes from the
shortest half of the other runs, each run is cut at its own first unexplained form, and the comparison is done again with what is
left, until nothing changes (at most three rounds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from runtriage.analysis.calibrate import level_curve, level_limit
from runtriage.analysis.departure import Departures, departures
from runtriage.analysis.detectors import (
    learning_rate,
    loss_level,
    non_finite,
    norm_level,
    oscillation,
    restart,
    self_level,
    spike,
)
from runtriage.analysis.excursions import JOINT, NOISE_FLOOR, WIDTHS, Excursions, Tail, excursions, fit_tail
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.order_stats import Array, nan_median
from runtriage.analysis.schedule import phases
from runtriage.analysis.select import select
from runtriage.analysis.sketch import NOISE, Axis, Sketch, make_axis, sketch
from runtriage.model.baseline import Baseline, Member
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import Role

DETECTORS: tuple[Callable[[RunView], list[Form]], ...] = (
    non_finite.detect, restart.detect, learning_rate.detect, spike.detect, loss_level.detect, norm_level.detect,
    oscillation.detect, self_level.detect,
)
"""Every detector; they look at the same view and know nothing of each other."""

FLOOR: dict[str, float] = {
    Role.LOSS: 0.01, Role.GRAD_NORM: 0.05, Role.UPDATE_RATIO: 0.05, Role.PARAM_NORM: 0.005, Role.ATTENTION_LOGIT: 0.05,
    Role.GRAD_NORM_CLIPPED: 0.05, NOISE + Role.LOSS: 0.15,
}
"""Smallest believable run-to-run standard deviation of a role's log level: a band narrower than this is luck."""

_DEFAULT_FLOOR = 0.1
_ROUNDS = 3
_EVENTS = 12
_EVENT_Z = 5.0
_LEVEL_SHARE, _SPIKE_SHARE = 0.5, 0.25
_MIN_TRUSTED = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """What came out for one run.

    Attributes
    ----------
    view
        As the detectors saw it in the last round.
    forms
        Root forms and explained ones.
    excluded
        Ids of cohort members left out for this run, in whole or from their own onset on.
    """

    view: RunView
    forms: list[Form]
    excluded: tuple[str, ...]


def compare(runs: Sequence[PreparedRun], baseline: Baseline | None, budget: float) -> list[Compared]:
    """Judge runs of one config against a learned baseline, or, without one, against each other.

    Parameters
    ----------
    runs
        Of one fingerprint.
    baseline
        Learned members; None to leave each run out and use the others.
    budget
        Chance of a false alarm per healthy run.
    """
    axis = make_axis(list(runs)) if baseline is None else Axis(
        edges=baseline.edges, mid=(baseline.edges[1:] + baseline.edges[:-1]) / 2
    )
    sketches = [sketch(r, axis) for r in runs]
    if baseline is not None:
        table = _Members.learned(baseline)
        return _round(runs, sketches, axis, table, [None] * len(runs), budget, trusted=True)[0]
    table = _Members.among(runs, sketches)
    cuts: list[float | None] = [None] * len(runs)
    result, peaks = _round(runs, sketches, axis, table, cuts, budget, trusted=False)
    for _ in range(_ROUNDS - 1):
        if len(runs) < 3:
            break
        found = [_cut(c) for c in result]
        if found == cuts and cuts.count(None) != len(cuts):
            break
        cuts = found
        table.peaks = peaks
        result, peaks = _round(runs, sketches, axis, table, cuts, budget, trusted=True)
    return result


def to_members(runs: Sequence[PreparedRun], compared: Sequence[Compared]) -> tuple[list[Member], list[str]]:
    """Turn judged runs into baseline members; a run is kept up to its own first unexplained form.

    Returns
    -------
    members, excluded
        Ids of runs that were left out in whole are in ``excluded``.
    """
    members, excluded = [], []
    for run, c in zip(runs, compared, strict=True):
        cut = _cut(c)
        axis = c.view.axis
        if cut is not None and cut <= axis.edges[0] + 0.2 * axis.span:
            excluded.append(run.info.id)
            continue
        mask = axis.edges[1:] > cut if cut is not None else np.zeros(axis.bins, dtype=bool)
        rows = {}
        lr = _schedule_rows(run)
        if lr is not None:
            rows[Role.LR.value] = lr
        members.append(
            Member(
                run_id=run.info.id,
                level={k: np.where(mask, np.nan, v) for k, v in c.view.sketch.level.items()},
                peak={k: np.where(mask, 0.0, v) for k, v in c.view.own.peak.items()},
                event=_events(c.view.own, cut),
                rows=rows,
            )
        )
    return members, excluded


class _Members:
    """The members' tables, in one layout for learned and for live cohorts."""

    def __init__(self, ids: list[str], levels: list[dict[str, Array]], schedule_rows: list[tuple[Array, Array] | None]) -> None:
        self.ids = ids
        self.levels = levels
        self.roles = sorted({role for level in levels for role in level})
        self.schedule_rows = schedule_rows
        self.peaks: list[dict[str, Array]] = [{} for _ in ids]
        self.events: list[dict[str, np.ndarray]] | None = None
        self.live = True

    @classmethod
    def among(cls, runs: Sequence[PreparedRun], sketches: list[Sketch]) -> _Members:
        return cls([r.info.id for r in runs], [s.level for s in sketches], [_schedule_rows(r) for r in runs])

    @classmethod
    def learned(cls, baseline: Baseline) -> _Members:
        members = baseline.members
        out = cls(
            [m.run_id for m in members], [dict(m.level) for m in members], [m.rows.get(Role.LR) for m in members]
        )
        out.peaks = [dict(m.peak) for m in members]
        out.events = [{k: np.asarray(v) for k, v in m.event.items()} for m in members]
        out.live = False
        return out

    def stack(self, roles: list[str], bins: int) -> Array:
        missing = np.full(bins, np.nan)
        if not self.levels:
            return np.empty((0, len(roles), bins))
        return np.array([[level.get(role, missing) for role in roles] for level in self.levels])

    def schedule(self, bins: int) -> tuple[Array, Array] | None:
        """Rows of the member whose binned lr lies nearest to the cohort's median."""
        rows = [r for r in self.schedule_rows if r is not None and r[0].size > 2]
        if len(rows) < 2:
            return None
        first, last = min(r[0][0] for r in rows), max(r[0][-1] for r in rows)
        at = np.linspace(first, last, 4 * bins)
        table = np.array([np.interp(at, *r, right=np.nan) for r in rows])
        middle = nan_median(table, 0)
        distance = np.nansum(np.minimum(np.abs(table - middle), 1.0), axis=1) + 1e-3 * np.isnan(table).sum(axis=1)
        return rows[int(distance.argmin())]


def _round(
    runs: Sequence[PreparedRun], sketches: list[Sketch], axis: Axis, table: _Members, cuts: list[float | None],
    budget: float, *, trusted: bool,
) -> tuple[list[Compared], list[dict[str, Array]]]:
    roles = table.roles
    members = table.stack(roles, axis.bins)
    use = _usable(runs, table, cuts, axis)
    missing = np.full(axis.bins, np.nan)
    candidate = np.array([[s.level.get(role, missing) for role in roles] for s in sketches]).reshape(len(runs), len(roles), axis.bins)
    floor = np.array([FLOOR.get(role, _DEFAULT_FLOOR) for role in roles])
    moved = departures(candidate, members, use, floor, trusted=trusted) if roles and members.size else None
    counts = use.any(axis=2).sum(axis=1)
    centres = [_by_role(moved.centre[i], roles) if moved is not None and counts[i] >= 2 else {} for i in range(len(runs))]
    own = [excursions(s, axis, c) for s, c in zip(sketches, centres, strict=True)]
    peaks = [o.peak for o in own]
    events = table.events if table.events is not None else [_events(o, c) for o, c in zip(own, cuts, strict=True)]
    schedule = table.schedule(axis.bins)
    result = []
    for i, run in enumerate(runs):
        view = _view(i, run, sketches[i], own[i], axis, table, moved, roles, use[i], int(counts[i]), events, schedule, budget, peaks)
        forms = select([f for detect in DETECTORS for f in detect(view)], axis.span)
        result.append(Compared(view=view, forms=forms, excluded=_excluded(table, runs, use[i], i)))
    return result, peaks


def _view(
    i: int, run: PreparedRun, own_sketch: Sketch, own: Excursions, axis: Axis, table: _Members, moved: Departures | None,
    roles: list[str], use: np.ndarray, count: int, events: list[dict[str, np.ndarray]],
    schedule: tuple[Array, Array] | None, budget: float, live_peaks: list[dict[str, Array]],
) -> RunView:
    has = moved is not None and count >= 2
    others = [j for j in range(len(table.ids)) if use[j].any()]
    peaks = live_peaks if table.live else table.peaks
    spike_budget = _SPIKE_SHARE * budget
    lr = run.by_role.get(Role.LR)
    return RunView(
        run=run, axis=axis, sketch=own_sketch, own=own,
        z=_by_role(moved.z[i], roles) if has and moved is not None else {},
        r=_by_role(moved.r[i], roles) if has and moved is not None else {},
        centre=_by_role(moved.centre[i], roles) if has and moved is not None else {},
        members=count if has else 0,
        level_limit=level_limit(count, _LEVEL_SHARE * budget), level_p=level_curve(count),
        tails=_tails(own, [{k: np.where(use[j], v, 0.0) for k, v in peaks[j].items()} for j in others] if has else []),
        spike_budget=spike_budget,
        events={role: [events[j].get(role, np.empty(0, np.int64)) for j in others] for role in NOISE_FLOOR} if has else {},
        schedule=schedule if has else None,
        phases=phases(lr.step, lr.value) if lr is not None else (),
    )


def _tails(own: Excursions, members: list[dict[str, Array]]) -> dict[str, Tail]:
    channels = [f"{role}/{w}" for role in NOISE_FLOOR for w in WIDTHS] + [JOINT]
    out = {}
    for channel in channels:
        if channel not in own.peak:
            continue
        pool = [m[channel] for m in members if channel in m]
        out[channel] = fit_tail(np.concatenate(pool) if pool else own.peak[channel])
    return out


def _usable(runs: Sequence[PreparedRun], table: _Members, cuts: list[float | None], axis: Axis) -> np.ndarray:
    """Mask (C, R, B): not the run itself, and no member behind its own onset (nor one cut almost at the start)."""
    use = np.ones((len(runs), len(table.ids), axis.bins), dtype=bool)
    ids = np.array(table.ids, dtype=object)
    for i, run in enumerate(runs):
        use[i, ids == run.info.id] = False
    if table.live:
        for j, cut in enumerate(cuts):
            if cut is not None:
                early = cut <= axis.edges[0] + _MIN_TRUSTED * axis.span
                use[:, j, axis.edges[1:] > (axis.edges[0] if early else cut)] = False
    return use


def _cut(compared: Compared) -> float | None:
    starts = [f.start for f in compared.forms if f.explained_by is None]
    return float(min(starts)) if starts else None


def _excluded(table: _Members, runs: Sequence[PreparedRun], use: np.ndarray, i: int) -> tuple[str, ...]:
    if not table.live:
        return ()
    return tuple(r.info.id for j, r in enumerate(runs) if j != i and not use[j].all())


def _by_role(values: Array, roles: list[str]) -> dict[str, Array]:
    return {role: values[k] for k, role in enumerate(roles) if np.isfinite(values[k]).any()}


def _events(own: Excursions, cut: float | None) -> dict[str, np.ndarray]:
    """Steps of the largest excursions of each role, at most a dozen, before the run's own onset only if it was cut."""
    out = {}
    for role in NOISE_FLOOR:
        channel = f"{role}/1"
        if channel not in own.z:
            continue
        z, step = own.z[channel], own.step[channel]
        strong = np.flatnonzero(z > _EVENT_Z)
        if strong.size > _EVENTS:
            strong = strong[np.argsort(z[strong])[-_EVENTS:]]
        out[role] = np.sort(step[strong]).astype(np.int64)
    del cut
    return out


def _schedule_rows(run: PreparedRun) -> tuple[Array, Array] | None:
    lr = run.by_role.get(Role.LR)
    if lr is None:
        return None
    good = np.isfinite(lr.value) & (lr.value > 0)
    if good.sum() < 3:
        return None
    return lr.step[good].astype(np.float64), np.log(lr.value[good])

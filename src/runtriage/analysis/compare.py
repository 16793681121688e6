"""Lay runs beside their cohort and let every detector look; bad members are found and cut on the way.

A cohort learned beforehand is trusted. A cohort formed from the very runs that are judged is not: the centre then comes
from the shortest half of the other runs, what a form has touched of a run is no longer trusted, and the comparison is
done again with what is left, until nothing changes (at most three rounds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.calibrate import level_curve, level_limit, shares
from runtriage.analysis.context import data_switches
from runtriage.analysis.departure import Departures, departures
from runtriage.analysis.derived import CLIP_TOP, CLIPPED_SHARE, MOVE, VAL_GAP
from runtriage.analysis.detectors import (
    clipping,
    layers,
    learning_rate,
    loss_level,
    loss_scale,
    non_finite,
    norm_level,
    oscillation,
    resume,
    self_level,
    sequence_length,
    spike,
    validation,
    warmup,
)
from runtriage.analysis.excursions import JOINT, NOISE_FLOOR, WIDTHS, Excursions, Tail, excursions, fit_tail
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.order_stats import Array, nan_median
from runtriage.analysis.paired import Rows, rows_of, share_order, subtract
from runtriage.analysis.schedule import phases
from runtriage.analysis.select import select
from runtriage.analysis.sketch import NOISE, Axis, Sketch, make_axis, sketch
from runtriage.model.baseline import Baseline, Member
from runtriage.model.report import Phase
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import Outcome, Role

DETECTORS: tuple[Callable[[RunView], list[Form]], ...] = (
    non_finite.detect, resume.detect, loss_scale.detect, learning_rate.detect, warmup.detect, validation.detect,
    sequence_length.detect, clipping.detect, layers.detect, spike.detect, loss_level.detect, norm_level.detect,
    oscillation.detect,
    self_level.detect,
)
"""Every detector; they look at the same view and know nothing of each other."""

FLOOR: dict[str, float] = {
    Role.LOSS: 0.01, Role.GRAD_NORM: 0.05, Role.UPDATE_RATIO: 0.05, Role.PARAM_NORM: 0.005, Role.ATTENTION_LOGIT: 0.05,
    Role.GRAD_NORM_CLIPPED: 0.05, NOISE + Role.LOSS: 0.15, MOVE: 0.01, CLIP_TOP: 0.05, CLIPPED_SHARE: 0.5,
    VAL_GAP: 0.02, Role.VAL_LOSS: 0.01,
}
"""Smallest believable run-to-run standard deviation of a role's log level: a band narrower than this is luck."""

_DEFAULT_FLOOR = 0.1
_ROUNDS = 3
_EVENTS = 12
_EVENT_Z = 5.0
_LEVEL_SHARE, _SPIKE_SHARE = 0.5, 0.4
_MIN_TRUSTED = 0.05
_LEAST_TRUSTED = 0.25
_LEAST_COHORT = 3
_SAME = 0.01


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
        return _round(runs, sketches, axis, _Members.learned(baseline), None, budget)
    table = _Members.among(runs, sketches)
    result = _round(runs, sketches, axis, table, None, budget)
    before = None
    for _ in range(_ROUNDS - 1):
        if len(runs) < _LEAST_COHORT:
            break
        trust = _Trust.after(result)
        if before is not None and trust.same_as(before):
            break
        result, before = _round(runs, sketches, axis, table, trust, budget), trust
    return result


def to_members(runs: Sequence[PreparedRun], compared: Sequence[Compared]) -> tuple[list[Member], list[str]]:
    """Turn judged runs into baseline members, each without what its own unexplained forms have touched.

    Returns
    -------
    members, excluded
        Ids of runs of which too little is left are in ``excluded``.
    """
    members, excluded = [], []
    if not runs:
        return members, excluded
    trust = _Trust.after(compared)
    for i, (run, c) in enumerate(zip(runs, compared, strict=True)):
        level, peak = trust.level[i], trust.peak[i]
        if level.mean() < _LEAST_TRUSTED:
            excluded.append(run.info.id)
            continue
        lr = _schedule_rows(run)
        members.append(
            Member(
                run_id=run.info.id,
                level={k: np.where(level, v, np.nan) for k, v in c.view.sketch.level.items()},
                peak={k: np.where(peak, v, 0.0) for k, v in c.view.own.peak.items()},
                event=_events(run, c.view.own),
                rows={
                    **({Role.LR.value: lr} if lr is not None else {}), **(rows_of(c.view.raw) if c.view.paired else {})
                },
            )
        )
    return members, excluded


@dataclass(frozen=True, slots=True, eq=False)
class _Trust:
    """What of each run may serve the others: masks (R, B) for levels and for the sizes of excursions."""

    level: NDArray[np.bool_]
    peak: NDArray[np.bool_]

    @classmethod
    def after(cls, compared: Sequence[Compared]) -> _Trust:
        """Distrust a run from its first lasting form on; a recovered one costs levels only, for as long as it lasted.

        Excursions that recovered stay in the tail: a cohort in which healthy runs spike now and then must know it.
        """
        axis = compared[0].view.axis
        level = np.ones((len(compared), axis.bins), dtype=bool)
        peak = level.copy()
        for i, c in enumerate(compared):
            for form in c.forms:
                if form.explained_by is not None or form.mild:
                    continue
                if form.outcome == Outcome.RECOVERED:
                    end = (form.end if form.end is not None else form.peak) + _MIN_TRUSTED * axis.span
                    level[i, (axis.edges[1:] > form.start) & (axis.edges[:-1] <= end)] = False
                    continue
                early = form.start <= axis.edges[0] + _MIN_TRUSTED * axis.span
                behind = axis.edges[1:] > (axis.edges[0] if early else form.start)
                level[i, behind] = False
                peak[i, behind] = False
        return cls(level, peak)

    def same_as(self, other: _Trust) -> bool:
        """Tell whether nothing changed that matters: an onset may move by a bin or so."""
        return float((self.level != other.level).mean()) < _SAME and float((self.peak != other.peak).mean()) < _SAME


class _Members:
    """The members' tables, in one layout for learned and for live cohorts."""

    def __init__(
        self, ids: list[str], levels: list[dict[str, Array]], schedule_rows: list[tuple[Array, Array] | None]
    ) -> None:
        self.ids = ids
        self.levels = levels
        self.roles = sorted({role for level in levels for role in level})
        self.schedule_rows = schedule_rows
        self.peaks: list[dict[str, Array]] = [{} for _ in ids]
        self.events: list[dict[str, NDArray[np.int64]]] = [{} for _ in ids]
        self.residuals: list[dict[str, Rows]] = [{} for _ in ids]
        self.same_order: dict[str, bool] = {}
        self.memory: dict[str, dict[str, object]] = {}
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
        out.residuals = [{k: rows for k, rows in m.rows.items() if k in NOISE_FLOOR} for m in members]
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
    runs: Sequence[PreparedRun], sketches: list[Sketch], axis: Axis, table: _Members, trust: _Trust | None,
    budget: float
) -> list[Compared]:
    trusted = trust is not None or not table.live
    roles = table.roles
    members = table.stack(roles, axis.bins)
    use = _usable(runs, table, trust, axis)
    missing = np.full(axis.bins, np.nan)
    candidate = np.array(
        [[s.level.get(role, missing) for role in roles] for s in sketches]
    ).reshape(len(runs), len(roles), axis.bins)
    floor = np.array([FLOOR.get(role, _DEFAULT_FLOOR) for role in roles])
    moved = departures(candidate, members, use, floor, trusted=trusted) if roles and members.size else None
    # the number that counts is the one where the fewest are left: members are distrusted from their own faults on
    counts = np.quantile(
        use.sum(axis=1), 0.25, axis=1, method="lower"
    ).astype(int) if use.shape[1] else np.zeros(len(runs), int)
    some = use.any(axis=2).sum(axis=1)
    counts = np.where(some >= 2, np.maximum(counts, 2), some)
    centres = [
        _by_role(moved.centre[i], roles) if moved is not None and counts[i] >= 2 else {} for i in range(len(runs))
    ]
    raw = [excursions(s, axis, c) for s, c in zip(sketches, centres, strict=True)]
    own, paired = _paired(runs, raw, table, axis)
    if table.live:
        table.events = [_events(r, o) for r, o in zip(runs, raw, strict=True)]
        table.peaks = [
            o.peak if trust is None else {k: np.where(trust.peak[j], v, 0.0) for k, v in o.peak.items()} for j,
            o in enumerate(own)
        ]
    schedule = table.schedule(axis.bins)
    result = []
    for i, run in enumerate(runs):
        view = _view(
            i, run, sketches[i], own[i], raw[i], paired[i], axis, table, moved, roles, use[i], int(counts[i]), schedule,
            budget
        )
        forms = select([f for detect in DETECTORS for f in detect(view)], axis.span, data_switches(run))
        result.append(Compared(view=view, forms=forms, excluded=_excluded(table, runs, use[i], i)))
    return result


def _paired(
    runs: Sequence[PreparedRun], raw: list[Excursions], table: _Members, axis: Axis
) -> tuple[list[Excursions], list[bool]]:
    """Subtract what siblings of equal data order share, for the runs that have such."""
    if table.live:
        table.residuals = [rows_of(e) for e in raw]
    own, paired = [], []
    for run, e in zip(runs, raw, strict=True):
        mine = rows_of(e).get(Role.LOSS)
        others = [
            rows for other,
            rows in zip(table.ids, table.residuals, strict=True) if other != run.info.id and Role.LOSS in rows
        ]
        same = table.same_order.get(run.info.id)
        if same is None:
            same = mine is not None and len(others) >= 2 and share_order(mine, [o[Role.LOSS] for o in others])
            table.same_order[run.info.id] = same
        own.append(subtract(e, others, axis) if same else e)
        paired.append(same)
    return own, paired


def _view(
    i: int, run: PreparedRun, own_sketch: Sketch, own: Excursions, raw: Excursions, paired: bool, axis: Axis,
    table: _Members, moved: Departures | None,
    roles: list[str], use: NDArray[np.bool_], count: int, schedule: tuple[Array, Array] | None, budget: float,
) -> RunView:
    has = moved is not None and count >= 2
    others = [j for j in range(len(table.ids)) if use[j].any()]
    spike_budget = _SPIKE_SHARE * budget
    z = _by_role(moved.z[i], roles) if has and moved is not None else {}
    share = shares(z)
    lr = run.by_role.get(Role.LR)
    memory = table.memory.setdefault(run.info.id, {})
    return RunView(
        run=run, axis=axis, sketch=own_sketch, own=own, raw=raw, paired=paired,
        z=z,
        r=_by_role(moved.r[i], roles) if has and moved is not None else {},
        centre=_by_role(moved.centre[i], roles) if has and moved is not None else {},
        sd=_by_role(moved.sd[i], roles) if has and moved is not None else {},
        members=count if has else 0,
        limits={r: level_limit(count, _LEVEL_SHARE * budget * s, noise=r.startswith(NOISE)) for r, s in share.items()},
        share={r: _LEVEL_SHARE * s for r, s in share.items()},
        level_p=level_curve(count), noise_p=level_curve(count, noise=True),
        tails=_tails(own, [table.peaks[j] for j in others] if has else []),
        spike_budget=spike_budget,
        events={
            role: [table.events[j].get(role, np.empty(0, np.int64)) for j in others]
            for role in (*NOISE_FLOOR, loss_scale.HALVINGS)
        } if has else {},
        schedule=schedule if has else None,
        phases=_phases(lr, memory), memory=memory,
    )


def _phases(lr: Series | None, memory: dict[str, object]) -> tuple[Phase, ...]:
    if "phases" not in memory:
        memory["phases"] = phases(lr.step, lr.value) if lr is not None else ()
    return cast("tuple[Phase, ...]", memory["phases"])


def _tails(own: Excursions, members: list[dict[str, Array]]) -> dict[str, Tail]:
    channels = [f"{role}/{w}" for role in NOISE_FLOOR for w in WIDTHS] + [JOINT]
    out = {}
    for channel in channels:
        if channel not in own.peak:
            continue
        pool = [m[channel] for m in members if channel in m]
        out[channel] = fit_tail(pool, own.peak[channel])
    return out


def _usable(runs: Sequence[PreparedRun], table: _Members, trust: _Trust | None, axis: Axis) -> NDArray[np.bool_]:
    """Mask (C, R, B): never the run itself, and of the others what is trusted."""
    use = np.ones((len(runs), len(table.ids), axis.bins), dtype=bool)
    if trust is not None:
        use &= trust.level
    ids = np.array(table.ids, dtype=object)
    for i, run in enumerate(runs):
        use[i, ids == run.info.id] = False
    return use


def _excluded(table: _Members, runs: Sequence[PreparedRun], use: NDArray[np.bool_], i: int) -> tuple[str, ...]:
    if not table.live:
        return ()
    return tuple(r.info.id for j, r in enumerate(runs) if j != i and not use[j].all())


def _by_role(values: Array, roles: list[str]) -> dict[str, Array]:
    return {role: values[k] for k, role in enumerate(roles) if np.isfinite(values[k]).any()}


def _events(run: PreparedRun, own: Excursions) -> dict[str, NDArray[np.int64]]:
    """Steps of the largest excursions of each role, at most a dozen, and of the halvings of the loss scale."""
    out = {loss_scale.HALVINGS: loss_scale.halvings(run)}
    for role in NOISE_FLOOR:
        channel = f"{role}/1"
        if channel not in own.z:
            continue
        z, step = own.z[channel], own.step[channel]
        strong = np.flatnonzero(z > _EVENT_Z)
        if strong.size > _EVENTS:
            strong = strong[np.argsort(z[strong])[-_EVENTS:]]
        out[role] = np.sort(step[strong]).astype(np.int64)
    return out


def _schedule_rows(run: PreparedRun) -> tuple[Array, Array] | None:
    lr = run.by_role.get(Role.LR)
    if lr is None:
        return None
    good = np.isfinite(lr.value) & (lr.value > 0)
    if good.sum() < 3:
        return None
    return lr.step[good].astype(np.float64), np.log(lr.value[good])

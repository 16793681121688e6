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

from runtriage.analysis.calibrate import SPIKE_SHARE, level_curve, level_limit, shares
from runtriage.analysis.context import data_switches
from runtriage.analysis.departure import departures
from runtriage.analysis.derived import CLIP_TOP, CLIPPED_SHARE, MOVE, VAL_GAP
from runtriage.analysis.detectors import (
    bursts,
    clipping,
    gaps,
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
from runtriage.analysis.excursions import JOINT, NOISE_FLOOR, WIDTHS, Excursions, excursions_of
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.members import Members, Trust, events_of, left_out, schedule_rows, usable
from runtriage.analysis.order_stats import Array
from runtriage.analysis.paired import Ordered, rows_of, share_order, subtract
from runtriage.analysis.schedule import phases
from runtriage.analysis.select import select
from runtriage.analysis.sketch import NOISE, Axis, Sketch, make_axis, sketch
from runtriage.analysis.tails import Tail, TailPool
from runtriage.model.baseline import Baseline, Member
from runtriage.model.report import Phase
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import Role

DETECTORS: tuple[Callable[[RunView], list[Form]], ...] = (
    non_finite.detect, resume.detect, loss_scale.detect, learning_rate.detect, warmup.detect, validation.detect,
    sequence_length.detect, clipping.detect, layers.detect, spike.detect, bursts.detect, loss_level.detect,
    norm_level.detect, oscillation.detect, self_level.detect, gaps.detect,
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
_LEAST_TRUSTED = 0.25
_LEAST_COHORT = 3


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
        return _round(runs, sketches, axis, Members.learned(baseline), None, budget)
    table = Members.among(runs, sketches)
    result = _round(runs, sketches, axis, table, None, budget)
    before = None
    for _ in range(_ROUNDS - 1):
        if len(runs) < _LEAST_COHORT:
            break
        trust = Trust.after(axis, [c.forms for c in result]).within(before)
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
    members: list[Member] = []
    excluded: list[str] = []
    if not runs:
        return members, excluded
    trust = Trust.after(compared[0].view.axis, [c.forms for c in compared])
    for i, (run, c) in enumerate(zip(runs, compared, strict=True)):
        level, peak = trust.level[i], trust.peak[i]
        if level.mean() < _LEAST_TRUSTED:
            excluded.append(run.info.id)
            continue
        lr = schedule_rows(run)
        members.append(
            Member(
                run_id=run.info.id,
                level={k: np.where(level, v, np.nan) for k, v in c.view.sketch.level.items()},
                peak={k: np.where(peak, v, 0.0) for k, v in c.view.own.peak.items()},
                event=events_of(run, c.view.own),
                rows={
                    **({Role.LR.value: lr} if lr is not None else {}), **(rows_of(c.view.raw) if c.view.paired else {})
                },
            )
        )
    return members, excluded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Beside:
    """One round of a comparison: everything that the views of its runs share."""

    axis: Axis
    table: Members
    z: list[dict[str, Array]]
    r: list[dict[str, Array]]
    centre: list[dict[str, Array]]
    sd: list[dict[str, Array]]
    use: NDArray[np.bool_]
    counts: NDArray[np.intp]
    paired: list[bool]
    schedule: tuple[Array, Array] | None
    usual_phases: tuple[Phase, ...]
    pools: dict[str, TailPool]
    budget: float

    def view(self, i: int, run: PreparedRun, sketched: Sketch, own: Excursions, raw: Excursions) -> RunView:
        """Lay one run beside the others.

        Parameters
        ----------
        i
            Its place among the runs judged.
        run, sketched, own, raw
            The run, its binned levels and its excursions after and before what siblings share was subtracted.
        """
        count = int(self.counts[i])
        has = bool(self.z) and count >= 2
        others = np.flatnonzero(self.use[i].any(axis=1)).tolist()
        z, r, centre, sd = (values[i] if has else {} for values in (self.z, self.r, self.centre, self.sd))
        share = shares(z)
        lr = run.by_role.get(Role.LR)
        memory = self.table.memory.setdefault(run.info.id, {})
        return RunView(
            run=run, axis=self.axis, sketch=sketched, own=own, raw=raw, paired=self.paired[i],
            z=z, r=r, centre=centre, sd=sd, members=count if has else 0,
            limits={k: level_limit(count, s * self.budget, noise=k.startswith(NOISE)) for k, s in share.items()},
            share=share,
            level_p=level_curve(count), noise_p=level_curve(count, noise=True),
            tails=self._tails(own, others if has else []),
            spike_budget=SPIKE_SHARE * self.budget,
            events={
                role: [self.table.events[j].get(role, np.empty(0, np.int64)) for j in others]
                for role in (*NOISE_FLOOR, loss_scale.HALVINGS)
            } if has else {},
            schedule=self.schedule if has else None, usual_phases=self.usual_phases if has else (),
            phases=_phases(lr, memory), memory=memory,
        )

    def _tails(self, own: Excursions, others: list[int]) -> dict[str, Tail]:
        """Tail of each spike channel, from the run's siblings."""
        chosen = np.zeros(len(self.table.ids), dtype=bool)
        chosen[others] = True
        pools = self.pools.items()
        return {channel: pool.fit(chosen, own.peak[channel]) for channel, pool in pools if channel in own.peak}


def _pools(table: Members) -> dict[str, TailPool]:
    """Pool the members' largest excursions by spike channel."""
    channels = [f"{role}/{w}" for role in NOISE_FLOOR for w in WIDTHS] + [JOINT]
    missing = np.empty(0)
    return {channel: TailPool.of([peak.get(channel, missing) for peak in table.peaks]) for channel in channels}


def _round(
    runs: Sequence[PreparedRun], sketches: list[Sketch], axis: Axis, table: Members, trust: Trust | None,
    budget: float
) -> list[Compared]:
    trusted = trust is not None or not table.live
    roles = table.roles
    members = table.stack(roles, axis.bins)
    use = usable(runs, table, trust, axis)
    missing = np.full(axis.bins, np.nan)
    candidate = np.array(
        [[s.level.get(role, missing) for role in roles] for s in sketches]
    ).reshape(len(runs), len(roles), axis.bins)
    floor = np.array([FLOOR.get(role, _DEFAULT_FLOOR) for role in roles])
    # the number that counts is the one where the fewest are left: members are distrusted from their own faults on
    counts = np.zeros(len(runs), int)
    if use.shape[1]:
        counts = np.quantile(use.sum(axis=1), 0.25, axis=1, method="lower").astype(int)
    some = use.any(axis=2).sum(axis=1)
    counts = np.where(some >= 2, np.maximum(counts, 2), some)
    z, r, centre, sd = [], [], [], []
    if roles and members.size and counts.max(initial=0) >= 2:
        moved = departures(candidate, members, use, floor, trusted=trusted)
        z, r, centre, sd = (_by_role(values, roles) for values in (moved.z, moved.r, moved.centre, moved.sd))
    raw = excursions_of(sketches, axis, [centre[i] if centre and counts[i] >= 2 else {} for i in range(len(runs))])
    own, paired = _paired(runs, raw, table, axis)
    if table.live:
        table.events = [events_of(r, o) for r, o in zip(runs, raw, strict=True)]
        table.peaks = [
            o.peak if trust is None else {k: np.where(trust.peak[j], v, 0.0) for k, v in o.peak.items()}
            for j, o in enumerate(own)
        ]
    beside = _Beside(
        axis=axis, table=table, z=z, r=r, centre=centre, sd=sd, use=use, counts=counts, paired=paired, budget=budget,
        schedule=table.schedule(axis.bins), usual_phases=table.usual_phases(axis.bins), pools=_pools(table),
    )
    result = []
    for i, run in enumerate(runs):
        view = beside.view(i, run, sketches[i], own[i], raw[i])
        forms = select([f for detect in DETECTORS for f in detect(view)], axis.span, data_switches(run))
        result.append(Compared(view=view, forms=forms, excluded=left_out(table, runs, use[i], i)))
    return result


def _paired(
    runs: Sequence[PreparedRun], raw: list[Excursions], table: Members, axis: Axis
) -> tuple[list[Excursions], list[bool]]:
    """Subtract what siblings of equal data order share, for the runs that have such."""
    if table.live:
        table.residuals = [rows_of(e) for e in raw]
    known = [(name, rows) for name, rows in zip(table.ids, table.residuals, strict=True) if Role.LOSS in rows]
    if any(run.info.id not in table.same_order for run in runs):
        ordered = [(name, Ordered.of(rows[Role.LOSS])) for name, rows in known]
        for run, e in zip(runs, raw, strict=True):
            mine = rows_of(e).get(Role.LOSS)
            others = [o for name, o in ordered if name != run.info.id]
            same = mine is not None and len(others) >= 2 and share_order(Ordered.of(mine), others)
            table.same_order[run.info.id] = same
    paired = [table.same_order[run.info.id] for run in runs]
    own = [
        subtract(e, [rows for name, rows in known if name != run.info.id], axis) if same else e
        for run, e, same in zip(runs, raw, paired, strict=True)
    ]
    return own, paired


def _phases(lr: Series | None, memory: dict[str, object]) -> tuple[Phase, ...]:
    if "phases" not in memory:
        memory["phases"] = phases(lr.step, lr.value) if lr is not None else ()
    return cast("tuple[Phase, ...]", memory["phases"])


def _by_role(values: Array, roles: list[str]) -> list[dict[str, Array]]:
    """Split values (C, K, B) into one table for each candidate, without the roles that are not known in any bin."""
    some = np.asarray(np.isfinite(values).any(axis=-1))
    return [
        {role: v for role, v, known in zip(roles, rows, good.tolist(), strict=True) if known}
        for rows, good in zip(values, some, strict=True)
    ]

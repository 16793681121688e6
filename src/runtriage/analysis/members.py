"""The other runs: what they logged, laid on common bins, and which parts of them may be believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.detectors.loss_scale import HALVINGS, halvings
from runtriage.analysis.excursions import NOISE_FLOOR, Excursions
from runtriage.analysis.form import Form
from runtriage.analysis.order_stats import Array, nan_median
from runtriage.analysis.paired import Rows
from runtriage.analysis.schedule import phases
from runtriage.analysis.sketch import Axis, Sketch
from runtriage.model.baseline import Baseline
from runtriage.model.report import Phase
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import Outcome, Role

_EVENTS = 12
_EVENT_Z = 5.0
_MIN_TRUSTED = 0.05
_SAME = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """What of each run may serve the others: masks (R, B) for levels and for the sizes of excursions."""

    level: NDArray[np.bool_]
    peak: NDArray[np.bool_]

    @classmethod
    def after(cls, axis: Axis, found: Sequence[Sequence[Form]]) -> Trust:
        """Distrust a run from its first lasting form on; a recovered one costs levels only, for as long as it lasted.

        Excursions that recovered stay in the tail: a cohort in which healthy runs spike now and then must know it.

        Parameters
        ----------
        axis
            Bins of the cohort.
        found
            Forms of each run.
        """
        level = np.ones((len(found), axis.bins), dtype=bool)
        peak = level.copy()
        for i, forms in enumerate(found):
            for form in forms:
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

    def within(self, before: Trust | None) -> Trust:
        """Trust only what was trusted before, too: two broken runs would else hide behind each other by turns."""
        return self if before is None else Trust(self.level & before.level, self.peak & before.peak)

    def same_as(self, other: Trust) -> bool:
        """Tell whether nothing changed that matters: an onset may move by a bin or so."""
        return float((self.level != other.level).mean()) < _SAME and float((self.peak != other.peak).mean()) < _SAME


class Members:
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
        self._schedule: dict[int, tuple[tuple[Array, Array] | None, tuple[Phase, ...]]] = {}

    @classmethod
    def among(cls, runs: Sequence[PreparedRun], sketches: Sequence[Sketch]) -> Members:
        """Take the very runs that are judged as each other's members.

        Parameters
        ----------
        runs, sketches
            The runs and their binned levels, in one order.
        """
        return cls([r.info.id for r in runs], [s.level for s in sketches], [schedule_rows(r) for r in runs])

    @classmethod
    def learned(cls, baseline: Baseline) -> Members:
        """Take the members of a learned baseline."""
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
        """Lay the levels of all members into one array, shape (R, K, B), NaN where a role is not logged.

        Parameters
        ----------
        roles, bins
            The K roles in order, and B.
        """
        missing = np.full(bins, np.nan)
        if not self.levels:
            return np.empty((0, len(roles), bins))
        return np.array([[level.get(role, missing) for role in roles] for level in self.levels])

    def schedule(self, bins: int) -> tuple[Array, Array] | None:
        """Rows of the member whose binned lr lies nearest to the cohort's median."""
        return self._scheduled(bins)[0]

    def usual_phases(self, bins: int) -> tuple[Phase, ...]:
        """Phases of the cohort's schedule."""
        return self._scheduled(bins)[1]

    def _scheduled(self, bins: int) -> tuple[tuple[Array, Array] | None, tuple[Phase, ...]]:
        if bins not in self._schedule:
            rows = self._middle_schedule(bins)
            self._schedule[bins] = rows, phases(rows[0], np.exp(rows[1])) if rows is not None else ()
        return self._schedule[bins]

    def _middle_schedule(self, bins: int) -> tuple[Array, Array] | None:
        rows = [r for r in self.schedule_rows if r is not None and r[0].size > 2]
        if len(rows) < 2:
            return None
        first, last = min(r[0][0] for r in rows), max(r[0][-1] for r in rows)
        at = np.linspace(first, last, 4 * bins)
        table = np.array([np.interp(at, *r, right=np.nan) for r in rows])
        middle = nan_median(table, 0)
        distance = np.nansum(np.minimum(np.abs(table - middle), 1.0), axis=1) + 1e-3 * np.isnan(table).sum(axis=1)
        return rows[int(distance.argmin())]


def usable(runs: Sequence[PreparedRun], table: Members, trust: Trust | None, axis: Axis) -> NDArray[np.bool_]:
    """Mask (C, R, B): never the run itself, and of the others what is trusted.

    Parameters
    ----------
    runs
        The C candidates.
    table
        The R members.
    trust
        What of the members may be believed; None for all.
    axis
        The B bins.
    """
    use = np.ones((len(runs), len(table.ids), axis.bins), dtype=bool)
    if trust is not None:
        use &= trust.level
    ids = np.array(table.ids, dtype=object)
    for i, run in enumerate(runs):
        use[i, ids == run.info.id] = False
    return use


def left_out(table: Members, runs: Sequence[PreparedRun], use: NDArray[np.bool_], i: int) -> tuple[str, ...]:
    """Name the runs that are not believed all along, in the judgement of run ``i``.

    Parameters
    ----------
    table, runs
        The members and the runs they are.
    use
        As from :func:`usable`.
    i
        The run judged.
    """
    if not table.live:
        return ()
    return tuple(r.info.id for j, r in enumerate(runs) if j != i and not use[j].all())


def events_of(run: PreparedRun, own: Excursions) -> dict[str, NDArray[np.int64]]:
    """Return the steps of each role's largest excursions, at most a dozen, and of the loss scale's halvings."""
    out = {HALVINGS: halvings(run)}
    for role in NOISE_FLOOR:
        channel = f"{role}/1"
        if channel not in own.z:
            continue
        if own.largest[channel] <= _EVENT_Z:
            out[role] = np.empty(0, np.int64)
            continue
        z, step = own.z[channel], own.step[channel]
        strong = np.flatnonzero(z > _EVENT_Z)
        if strong.size > _EVENTS:
            strong = strong[np.argsort(z[strong])[-_EVENTS:]]
        out[role] = np.sort(step[strong]).astype(np.int64)
    return out


def schedule_rows(run: PreparedRun) -> tuple[Array, Array] | None:
    """Return steps and log lr of a run, or None when it logs too little of it."""
    lr = run.by_role.get(Role.LR)
    if lr is None:
        return None
    good = np.isfinite(lr.value) & (lr.value > 0)
    if good.sum() < 3:
        return None
    return lr.step[good].astype(np.float64), np.log(lr.value[good])

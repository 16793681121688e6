"""Watch a source: each look reads what changed, replays the rules on it, and tells the newest facts of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from itertools import islice

import numpy as np

from runtriage.analysis.prepare import prepare
from runtriage.model.baseline import BaselineSet
from runtriage.model.curve import Curve, Triage
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.rule import AlertRule, Firing
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import Level, Role, RunState
from runtriage.outputs.prometheus import Health, RunSample
from runtriage.pipeline import Params, fingerprint, triage_cohort
from runtriage.rules.replay import applies, replay
from runtriage.sweep.run import read_all
from runtriage.trackers.base import HistorySource

_LIVE = frozenset({RunState.RUNNING, RunState.UNKNOWN})
_RECENT = 86400.0
"""Seconds after its last point for which a run that ended still alarms; later its verdict is what is left to say."""

_DONE = frozenset({RunState.FINISHED, RunState.FAILED, RunState.KILLED})


@dataclass(slots=True, kw_only=True, eq=False)
class _Seen:
    """A run as last read.

    Attributes
    ----------
    until
        Newest step at the look before; firings that lasted beyond it are new.
    """

    info: RunInfo
    history: RunHistory
    run: PreparedRun
    firings: tuple[Firing, ...]
    until: int
    triage: Triage | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Watch:
    """What is known of a source from look to look. Not safe in several threads.

    Attributes
    ----------
    source
        The source; it is only read.
    rules
        Rules to replay.
    params
        Settings of the analysis.
    baselines
        Learned baselines for the verdicts; without them runs are judged against their siblings.
    limit
        Runs looked at, newest first: it bounds memory and the number of series.
    readers
        Runs read at the same time.
    """

    source: HistorySource
    rules: Sequence[AlertRule]
    params: Params
    baselines: BaselineSet | None = None
    limit: int = 100
    readers: int = 4
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def look(self, now: float) -> tuple[list[RunSample], Health]:
        """Read what changed and return the newest facts.

        Parameters
        ----------
        now
            Seconds since the epoch.

        Raises
        ------
        SourceError
            The source cannot be listed at all.
        """
        listing = iter(self.source.list_runs())
        infos = list(islice(listing, self.limit))
        left_out = sum(1 for _ in listing)
        changed = [info for info in infos if self._is_due(info)]
        failures = 0
        for read in read_all(self.source, changed, readers=self.readers):
            if read.history is None:
                failures += 1
            else:
                self._take(read.history)
        self._seen = {info.id: self._seen[info.id] for info in infos if info.id in self._seen}
        if changed:
            self._judge()
        fresh = {info.id for info in changed}
        samples = [self._sample(seen, now, new=run_id in fresh) for run_id, seen in self._seen.items()]
        return samples, Health(refreshed=now, left_out=left_out, failures=failures, expires=_expiries(self.rules))

    def _is_due(self, info: RunInfo) -> bool:
        seen = self._seen.get(info.id)
        if seen is None:
            return True
        return not (info.cursor and info.cursor == seen.info.cursor) and not (
            not info.cursor and info.state in _DONE and info.state == seen.info.state
        )

    def _take(self, history: RunHistory) -> None:
        run = prepare(history, self.params.roles)
        before = self._seen.get(history.info.id)
        self._seen[history.info.id] = _Seen(
            info=history.info, history=history, run=run, until=before.run.last_step() if before is not None else -1,
            firings=replay(self.rules, history, roles=self.params.roles, ignore=self.params.ignore_keys),
        )

    def _judge(self) -> None:
        seen = list(self._seen.values())
        judged = triage_cohort([one.history for one in seen], baselines=self.baselines, params=self.params)
        for one, triage in zip(seen, judged, strict=True):
            one.triage = triage

    def _sample(self, seen: _Seen, now: float, *, new: bool) -> RunSample:
        config = fingerprint(seen.info.config, self.params.ignore_keys)
        mine = [rule.id for rule in self.rules if applies(rule, seen.run, config)]
        on = {f.rule for f in seen.firings if f.ongoing or (new and seen.until >= 0 and f.last_step > seen.until)}
        last = seen.run.last_step()
        clocks = [track.wall for track in seen.history.tracks.values() if track.wall is not None and track.wall.size]
        last_point = max((float(wall[-1]) for wall in clocks), default=None)
        running = seen.info.state in _LIVE
        if not running and (last_point is None or now - last_point > _RECENT):
            on = set()
        return RunSample(
            run_id=seen.info.id, name=seen.info.name, config=config, running=running,
            verdict=seen.triage.report.verdict if seen.triage is not None else Level.WITHHELD,
            step=last if last >= 0 else None, last_point=last_point,
            values={
                role: (series.metric, float(series.value[-1])) for role, series in seen.run.by_role.items()
                if series.value.size and not role.startswith(Role.LAYER_GRAD_NORM)
            },
            z=_scores(seen.triage.curves) if seen.triage is not None else {},
            firing={rule: rule in on for rule in mine},
        )


def _scores(curves: Sequence[Curve]) -> dict[str, float]:
    """Return role to the newest value's distance from the middle of its band, whose half is three deviations."""
    out = {}
    for curve in curves:
        if curve.band_step is None or curve.band_low is None or curve.band_high is None or not curve.band_step.size:
            continue
        value = curve.value[-1]
        at = float(curve.step[-1])
        low = float(np.interp(at, curve.band_step, np.log(curve.band_low)))
        high = float(np.interp(at, curve.band_step, np.log(curve.band_high)))
        if np.isfinite(value) and value > 0 and high > low:
            out[curve.role] = float(6.0 * (np.log(value) - (low + high) / 2) / (high - low))
    return out


def _expiries(rules: Sequence[AlertRule]) -> dict[str, float]:
    return {
        rule.id: datetime.combine(date.fromisoformat(rule.expires), time(), UTC).timestamp()
        for rule in rules if rule.expires
    }

"""Replay rules over a history and tell when each would have fired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.cohorts import fingerprint
from runtriage.analysis.prepare import prepare
from runtriage.model.history import RunHistory
from runtriage.model.rule import AlertRule, Backwards, Ended, Firing, Stalled
from runtriage.model.series import PreparedRun, Series
from runtriage.rules.signal import Signal, holding, logged


def replay(
    rules: Iterable[AlertRule],
    history: RunHistory,
    *,
    roles: Mapping[str, str] | None = None,
    ignore: tuple[str, ...] = (),
) -> tuple[Firing, ...]:
    """Return every firing of some rules on one run, in the order of their steps.

    Parameters
    ----------
    rules
        Those for other configs, or for metrics the run does not log, stay silent.
    history
        The run.
    roles, ignore
        As the settings say: metric names to roles, and config keys that do not change training.
    """
    run = prepare(history, roles)
    config = fingerprint(history.info.config, ignore)
    found = [
        firing
        for rule in rules
        if rule.config in {"", config}
        for firing in firings(rule, run, history)
    ]
    return tuple(sorted(found, key=lambda firing: (firing.step, firing.rule)))


def applies(rule: AlertRule, run: PreparedRun, config: str) -> bool:
    """Tell whether a rule is for this run: its config, and a metric that the run logs."""
    watched = isinstance(rule.condition, Ended) or series_of(rule, run) is not None
    return rule.config in {"", config} and watched


def series_of(rule: AlertRule, run: PreparedRun) -> Series | None:
    """Return the series a rule watches, or None when the run does not log it."""
    if rule.role:
        return run.by_role.get(rule.role)
    return next((s for s in (*run.by_role.values(), *run.others) if s.metric == rule.metric), None)


def signal_of(rule: AlertRule, run: PreparedRun, history: RunHistory) -> Signal | None:
    """Return where along its metric a rule's condition holds, the guard over warm-up applied; None without a metric."""
    if isinstance(rule.condition, Ended):
        return _end_of(rule.condition, run)
    series = series_of(rule, run)
    if series is None or not series.step.size:
        return None
    if isinstance(rule.condition, Backwards | Stalled):
        signal = logged(rule.condition, history.tracks[series.metric])
    else:
        signal = Signal(
            step=series.step, value=series.value, holds=holding(rule.condition, series.step, series.value)
        )
    return Signal(step=signal.step, value=signal.value, holds=signal.holds & (signal.step >= rule.after_step))


def _end_of(condition: Ended, run: PreparedRun) -> Signal:
    """Return one point behind the last, so that it is new even to those who have seen every point."""
    return Signal(
        step=np.array([min(run.last_step(), 2**63 - 2) + 1], dtype=np.int64), value=np.array([np.nan]),
        holds=np.array([run.info.state in condition.states]),
    )


def firings(rule: AlertRule, run: PreparedRun, history: RunHistory) -> tuple[Firing, ...]:
    """Return the firings of one rule on one run; its config is not looked at.

    Parameters
    ----------
    rule
        The rule.
    run, history
        The same run, prepared and as read.
    """
    signal = signal_of(rule, run, history)
    if signal is None:
        return ()
    return tuple(
        Firing(
            rule=rule.id, run_id=run.info.id, step=int(signal.step[first]), last_step=int(signal.step[stop - 1]),
            value=float(signal.value[first]), ongoing=stop == signal.step.size,
        )
        for first, stop in episodes(signal.holds, rule.for_points)
    )


def episodes(holds: NDArray[np.bool_], for_points: int) -> list[tuple[int, int]]:
    """Return where a condition has held for ``for_points`` points: index of the firing, and one past the last holding.

    Examples
    --------
    >>> episodes(np.array([True, False, True, True, True]), 2)
    [(3, 5)]
    """
    edge = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]]).astype(np.int8)))
    return [
        (int(start) + for_points - 1, int(stop))
        for start, stop in zip(edge[::2], edge[1::2], strict=True)
        if stop - start >= for_points
    ]

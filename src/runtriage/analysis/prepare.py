"""From the tracker's rows to clean series: order, attempts, duplicates, non-finite values, the true step axis.

Nothing is filled and nothing that was logged is smoothed away. A step that was logged twice keeps the last write; a
step that goes back starts a new attempt, which is noted; a value that is not finite stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.roles import is_squared, role_of
from runtriage.model.history import RunHistory, Track
from runtriage.model.phrase import phrase
from runtriage.model.series import PreparedRun, Series
from runtriage.model.texts import say, text
from runtriage.model.vocab import Lang, Role

_WANTED = ((Role.LOSS, "wanted.loss"), (Role.GRAD_NORM, "wanted.grad_norm"), (Role.LR, "wanted.lr"))


def prepare(
    history: RunHistory, overrides: Mapping[str, str] | None = None, lang: Lang = Lang.EN
) -> PreparedRun:
    """Clean the metrics of a run and give them their roles.

    Parameters
    ----------
    history
        As read.
    overrides
        Metric names to roles, from the settings.
    lang
        Language of the notes that are added; those of the history stay as its source wrote them.

    Returns
    -------
    PreparedRun
        With arrays set read-only; ``history`` is not changed.
    """
    notes = list(history.notes)
    roles = {name: role_of(name, overrides) for name in history.tracks}
    axis = _true_axis(history.tracks, roles)
    chosen = _choose(history.tracks, roles)
    by_role: dict[str, Series] = {}
    others: list[Series] = []
    winners = set(chosen.values())
    for name, track in history.tracks.items():
        role, _ = roles[name]
        if role == Role.STEP:
            continue
        series = clean(name, role if name in winners else "", track, axis)
        if name in winners:
            by_role[role] = series
        else:
            others.append(series)
    _unmask(by_role)
    if axis is not None:
        notes.append(say(phrase("axis.true", name=repr(axis[2])), lang))
    notes += [text(key, lang) for role, key in _WANTED if role not in by_role]
    return PreparedRun(info=history.info, by_role=by_role, others=tuple(others), notes=tuple(notes))


def clean(
    metric: str, role: str, track: Track, axis: tuple[NDArray[np.int64], NDArray[np.int64], str] | None
) -> Series:
    """Sort a track by step, keep the last write of each step, and note attempts.

    Parameters
    ----------
    metric, role
        Name and meaning.
    track
        Rows in logged order.
    axis
        Row counter, true step and name of the true axis where there is one, else None.
    """
    step = np.asarray(track.step, dtype=np.int64)
    value = np.array(track.value, dtype=np.float64)
    if axis is not None and step.size:
        at = np.searchsorted(axis[0], step, side="right") - 1
        step, value = axis[1][at[at >= 0]], value[at >= 0]
    restarts: tuple[int, ...] = ()
    duplicates = 0
    if step.size > 1:
        ahead = step[1:] > step[:-1]
        if not ahead.all():
            back = np.flatnonzero(step[1:] < step[:-1]) + 1
            restarts = tuple(int(s) for s in step[back[:64]])
            order = np.argsort(step, kind="stable")
            step, value = step[order], value[order]
            keep = np.append(step[1:] != step[:-1], True)
            duplicates = int(step.size - keep.sum())
            step, value = step[keep], value[keep]
    if role == Role.GRAD_NORM and is_squared(metric):
        value = np.sqrt(np.maximum(value, 0.0), where=np.isfinite(value), out=value)
    step.flags.writeable = False
    value.flags.writeable = False
    return Series(metric=metric, role=role, step=step, value=value, duplicates=duplicates, restarts=restarts)


def _choose(tracks: Mapping[str, Track], roles: Mapping[str, tuple[str, int]]) -> dict[str, str]:
    """Choose one metric for each role: the better name, unless it has less than half the rows of another."""
    named: dict[str, list[tuple[int, int, str]]] = {}
    for name, (role, rank) in roles.items():
        if role and role != Role.STEP and tracks[name].step.size:
            named.setdefault(role, []).append((rank, -tracks[name].step.size, name))
    out = {}
    for role, candidates in named.items():
        most = max(-rows for _, rows, _ in candidates)
        out[role] = min(c for c in candidates if -2 * c[1] >= most)[2]
    return out


def _true_axis(
    tracks: Mapping[str, Track], roles: Mapping[str, tuple[str, int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], str] | None:
    """Find a logged step counter that differs from the rows' own step (``train/global_step`` beside ``_step``)."""
    best: tuple[int, str] | None = None
    for name, (role, rank) in roles.items():
        if role == Role.STEP and name not in {"_step", "step"} and tracks[name].step.size:
            best = min(best, (rank, name)) if best else (rank, name)
    if best is None:
        return None
    track = tracks[best[1]]
    whole = np.isfinite(track.value) & (np.abs(track.value) < 2.0**62) & (track.value == np.rint(track.value))
    longest = max(t.step.size for t in tracks.values())
    if whole.sum() < 0.5 * longest or np.unique(track.value[whole]).size < 0.5 * whole.sum():
        return None
    rows, steps = track.step[whole], track.value[whole].astype(np.int64)
    if np.array_equal(rows, steps) or (np.diff(rows) < 0).any():
        return None
    return rows, steps, best[1]


def _unmask(by_role: dict[str, Series]) -> None:
    """Put NaN back where a logger wrote loss 0.0 beside a grad norm that is not finite."""
    loss, norm = by_role.get(Role.LOSS), by_role.get(Role.GRAD_NORM)
    if loss is None or norm is None or not loss.value.size or not (loss.value == 0.0).any():
        return
    bad = norm.step[~np.isfinite(norm.value)]
    hidden = (loss.value == 0.0) & np.isin(loss.step, bad)
    if hidden.any():
        value = np.where(hidden, np.nan, loss.value)
        value.flags.writeable = False
        by_role[Role.LOSS] = Series(
            metric=loss.metric, role=loss.role, step=loss.step, value=value,
            duplicates=loss.duplicates, restarts=loss.restarts, masked=int(hidden.sum()),
        )

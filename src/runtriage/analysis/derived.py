"""Quantities made of several series on the same bins: balance of layers, clipping, validation against training.

Each is a pseudo role that the cohort comparison treats like any other level.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from runtriage.analysis.order_stats import Array, moving_median, nan_mean, nan_median, sorted_bins, sorted_quantile
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import Role

BALANCE = "balance/"
"""Prefix: a layer's log grad norm less the median of the other layers'."""

CLIP_TOP = "top/" + Role.GRAD_NORM_CLIPPED
"""Log of the largest clipped norms in a bin: the clip value, where clipping happens at all."""

CLIPPED_SHARE = "share/" + Role.CLIP_RATE
"""Logit of the share of rows at which clipping fired."""

MOVE = "move/" + Role.LOSS
"""How far the level of the loss moves from the six bins before a place to the six behind it.

Runs that differ in level for good agree in how they move, so a step shows here that drowns in the spread of levels.
"""

VAL_GAP = "gap/" + Role.VAL_LOSS
"""Log validation loss less log training loss."""

CLIP_KEYS: tuple[str, ...] = (
    "clip", "max_grad_norm", "grad_clip", "gradient_clip_val", "clip_grad", "clip_grad_norm", "max_norm",
    "grad_norm_clip",
)
"""Config keys (last part) that hold the clip value."""

_LAYER = Role.LAYER_GRAD_NORM + "/"
_ZERO = -18.4
_TOP = 0.98
_REACH = 6


def derive(run: PreparedRun, edges: Array, level: Mapping[str, Array]) -> dict[str, Array]:
    """Return the pseudo roles of a run that its series allow.

    Parameters
    ----------
    run
        The run.
    edges
        Shape (B + 1,).
    level
        Role to log level per bin of the plain roles, shape (B,).

    Returns
    -------
    dict
        Pseudo role to shape (B,).
    """
    out: dict[str, Array] = {}
    names = [role for role in level if role.startswith(_LAYER)]
    if len(names) >= 2:  # with two, one is against the other
        table = np.array([level[name] for name in names])
        for i, name in enumerate(names):
            out[BALANCE + name.removeprefix(_LAYER)] = table[i] - nan_median(np.delete(table, i, axis=0), 0)
    if Role.LOSS in level:
        out[MOVE] = _move(level[Role.LOSS])
    clipped = run.by_role.get(Role.GRAD_NORM_CLIPPED)
    if clipped is not None and clipped.step.size:
        out[CLIP_TOP] = _tops(clipped, edges)
    fired = fired_rows(run)
    if fired is not None:
        step, value = fired
        at = np.searchsorted(step, edges)
        count = np.diff(at).astype(np.float64)
        total = np.diff(np.concatenate([[0.0], np.cumsum(value)])[at])
        out[CLIPPED_SHARE] = np.where(count > 0, np.log((total + 0.5) / (count - total + 0.5)), np.nan)
    val = run.by_role.get(Role.VAL_LOSS)
    if val is not None and Role.LOSS in level:
        filled = _held(val, edges)
        if filled is not None:
            out[Role.VAL_LOSS] = filled
            out[VAL_GAP] = filled - moving_median(level[Role.LOSS], 1)
    return out


def fired_rows(run: PreparedRun) -> tuple[Array, Array] | None:
    """Return steps and whether clipping fired (0 to 1) per row: as logged, else from norm and configured clip value."""
    series = run.by_role.get(Role.CLIP_RATE)
    if series is not None:
        good = np.isfinite(series.value)
        return series.step[good].astype(np.float64), np.clip(series.value[good], 0.0, 1.0)
    norm, limit = run.by_role.get(Role.GRAD_NORM), clip_value(run.info.config)
    if norm is None or limit is None:
        return None
    good = np.isfinite(norm.value)
    return norm.step[good].astype(np.float64), (norm.value[good] >= 0.999 * limit).astype(np.float64)


def clip_value(config: Mapping[str, Any]) -> float | None:
    """Return the largest norm the config allows, or None when it does not say (or says 0: no clipping)."""
    for key, value in config.items():
        if str(key).rsplit(".", 1)[-1].rsplit("/", 1)[-1].lower() in CLIP_KEYS:
            try:
                number = float(value)
            except (TypeError, ValueError):
                continue
            if np.isfinite(number) and number > 0:
                return number
    return None


def layer_rows(run: PreparedRun, layer: str) -> tuple[Array, Array] | None:
    """Return steps and the balance of one layer at full resolution; a gradient of zero counts as 1e-8."""
    chosen = run.by_role.get(_LAYER + layer)
    if chosen is None:
        return None
    others = [
        s for role, s in run.by_role.items()
        if role.startswith(_LAYER) and s is not chosen and np.array_equal(s.step, chosen.step)
    ]
    if not others:
        return None
    table = np.array([floored_log(s.value) for s in (chosen, *others)])
    return chosen.step.astype(np.float64), table[0] - nan_median(table[1:], 0)


def floored_log(value: Array) -> Array:
    """Log of a gradient norm that may be exactly zero, which counts as 1e-8; NaN where it is negative or not finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isfinite(value) & (value >= 0), np.maximum(np.log(value), _ZERO), np.nan)


def _move(level: Array) -> Array:
    padded = np.concatenate([np.full(_REACH + 1, np.nan), level, np.full(_REACH, np.nan)])
    mean = nan_mean(np.lib.stride_tricks.sliding_window_view(padded, _REACH))
    before, after = mean[: level.size], mean[_REACH + 2 :][: level.size]
    return np.where(np.isfinite(level), after - before, np.nan)


def _tops(series: Series, edges: Array) -> Array:
    """Log of the largest positive values per bin, shape (B,): a high quantile, so that a lone row does not decide."""
    at = np.searchsorted(series.step, edges)
    value = np.where(np.isfinite(series.value) & (series.value > 0), series.value, np.nan)
    table = sorted_bins(value, at)
    if table is not None:
        ordered, count = table
        with np.errstate(invalid="ignore"):
            return np.where(count > 0, np.log(sorted_quantile(ordered, count, _TOP)), np.nan)
    parts = [value[a:b][np.isfinite(value[a:b])] for a, b in pairwise(at)]
    return np.array([np.log(np.quantile(part, _TOP)) if part.size else np.nan for part in parts])


def _held(series: Series, edges: Array) -> Array | None:
    """Log of a sparse series at the middle of each bin, interpolated between its rows, not beyond them."""
    good = np.isfinite(series.value) & (series.value > 0)
    if good.sum() < 3:
        return None
    step, value = series.step[good].astype(np.float64), np.log(series.value[good])
    mid = (edges[1:] + edges[:-1]) / 2
    return np.interp(mid, step, value, left=np.nan, right=np.nan)

"""Curves as paths: a million points become what a screen can show, and no spike is lost on the way. Pure.

Symbols
-------
n  points of a curve; c  pixel columns. Reduction is O(n) and keeps the smallest and largest value of each column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runtriage.outputs.report.scale import Scale

Floats = NDArray[np.float64]

_FINE = 2.0
"""Pixels: a line whose strokes are shorter would show steps if it were drawn on whole pixels."""


def window(step: NDArray[np.int64], low: float, high: float) -> slice:
    """Return the rows of rising steps within a range, with one more to either side so that lines reach the edge."""
    first, last = np.searchsorted(step, [low, high], side="left")
    return slice(max(int(first) - 1, 0), min(int(last) + 2, step.size))


def range_path(step: NDArray[np.int64], value: Floats, x: Scale, y: Scale) -> str:
    """Return the path of a curve: every point if they fit, else a vertical stroke from low to high per pixel column.

    Parameters
    ----------
    step, value
        Shape (n,), steps rising; what is not finite makes a gap.
    x, y
        Axes.
    """
    finite = np.isfinite(value)
    if step.size <= 2 * abs(x.stop - x.start):
        return _joined(x.at(step.astype(np.float64)), y.at(value), finite)
    column, starts = _columns(step, x)
    low = np.minimum.reduceat(np.where(finite, value, np.inf), starts)
    high = np.maximum.reduceat(np.where(finite, value, -np.inf), starts)
    known = low <= high
    top, bottom = y.at(np.where(known, high, 1.0)), y.at(np.where(known, low, 1.0))
    grain = 10 if np.median(bottom - top) < _FINE else 1
    return _strokes(np.round(column).astype(np.int64), np.round(grain * bottom), np.round(grain * top), known, grain)


def thin_path(step: NDArray[np.int64], value: Floats, x: Scale, y: Scale) -> str:
    """Return the path of a smooth curve: one point per two pixel columns."""
    if step.size > 2 * abs(x.stop - x.start):
        starts = _columns(step, x)[1][::2]
        step, value = step[starts], value[starts]
    return _joined(x.at(step.astype(np.float64)), y.at(value), np.isfinite(value))


def area_path(step: Floats, low: Floats, high: Floats, x: Scale, y: Scale) -> str:
    """Return the closed path between two edges, shape (b,) each; empty if there are fewer than two points."""
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(step)
    if known.sum() < 2:
        return ""
    at = x.at(step[known])
    there = [f"{_px(a)} {_px(b)}" for a, b in zip(at.tolist(), y.at(high[known]).tolist(), strict=True)]
    back = [f"{_px(a)} {_px(b)}" for a, b in zip(at.tolist(), y.at(low[known]).tolist(), strict=True)]
    return "M" + "L".join([*there, *reversed(back)]) + "Z"


def gap_columns(step: NDArray[np.int64], value: Floats, x: Scale) -> list[float]:
    """Return the pixel columns that hold a value that is not finite, each once."""
    bad = step[~np.isfinite(value)]
    return np.unique(np.round(x.at(bad.astype(np.float64)))).tolist() if bad.size else []


def _columns(step: NDArray[np.int64], x: Scale) -> tuple[Floats, NDArray[np.intp]]:
    column = np.round(x.at(step.astype(np.float64)))
    starts = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1))
    return column[starts], starts


def _strokes(column: NDArray[np.int64], bottom: Floats, top: Floats, known: NDArray[np.bool_], grain: int) -> str:
    """Return vertical strokes joined by lines, relative to each other; heights in 1/grain pixels."""
    out: list[str] = []
    pen: tuple[int, float] | None = None
    for at, lower, upper, here in zip(column.tolist(), bottom.tolist(), top.tolist(), known.tolist(), strict=True):
        if here:
            out.append(
                f"M{at} {lower / grain:g}" if pen is None else f"l{at - pen[0]} {(lower - pen[1]) / grain:g}"
            )
            out.append(f"v{(upper - lower) / grain:g}" if upper != lower else "h.5" if pen is None else "")
        pen = (at, upper) if here else None
    return "".join(out)


def _joined(at: Floats, height: Floats, known: NDArray[np.bool_]) -> str:
    """Return points as lines, relative to each other in tenths of a pixel: half as long as absolute ones."""
    xs = np.round(10 * at).astype(np.int64).tolist()
    ys = np.round(10 * np.where(known, height, 0.0)).astype(np.int64).tolist()
    here = [*known.tolist(), False]
    out = []
    for i in range(len(xs)):
        if not here[i]:
            continue
        if i and here[i - 1]:
            out.append(f"l{_tenths(xs[i] - xs[i - 1])} {_tenths(ys[i] - ys[i - 1])}")
        else:
            out.append(f"M{_tenths(xs[i])} {_tenths(ys[i])}{'' if here[i + 1] else 'h.5'}")
    return "".join(out)


def _tenths(value: int) -> str:
    return f"{value / 10:g}"


def _px(value: float) -> str:
    return f"{round(float(value), 1):g}"

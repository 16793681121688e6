"""What detectors measure on rows, written as plain loops: slow, and there to be read."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from itertools import pairwise

from tests.oracles.naive_departures import middle


def swing(rows: Sequence[float]) -> tuple[float, float]:
    """Share of one frequency in the power of a stretch of rows, and their correlation with the row before.

    Rows are cut at four robust standard deviations, a straight line is taken off, and a Hann window put over them. The
    strongest frequency of three cycles or more counts with its two neighbours, none of them slower than that.
    """
    y = [v for v in rows if math.isfinite(v)]
    n, centre = len(y), middle(y)
    limit = 4 * 1.4826 * middle([abs(v - centre) for v in y])
    y = [min(max(v - centre, -limit), limit) for v in y]
    t = [2 * i / (n - 1) - 1 for i in range(n)]
    mean, slope = sum(y) / n, sum(a * b for a, b in zip(t, y, strict=True)) / sum(a * a for a in t)
    y = [v - mean - slope * a for a, v in zip(t, y, strict=True)]
    window = [0.5 - 0.5 * math.cos(2 * math.pi * i / (n - 1)) for i in range(n)]
    power = [
        abs(sum(v * w * cmath.exp(-2j * math.pi * k * i / n) for i, (v, w) in enumerate(zip(y, window, strict=True))))
        ** 2
        for k in range(n // 2 + 1)
    ]
    whole = sum(power[1:])
    top = max(range(3, len(power)), key=lambda k: power[k])
    share = sum(power[k] for k in range(max(3, top - 2), min(len(power), top + 3))) / whole
    return share, sum(a * b for a, b in pairwise(y)) / sum(v * v for v in y)


def clip_share(step: Sequence[float], norm: Sequence[float], limit: float, edges: Sequence[float]) -> list[float]:
    """Log odds, per bin, that a logged norm reaches the clip value, with half a row added on either side."""
    out = []
    for a, b in pairwise(edges):
        rows = [v for s, v in zip(step, norm, strict=True) if a <= s < b and math.isfinite(v)]
        fired = sum(v >= 0.999 * limit for v in rows)
        out.append(math.log((fired + 0.5) / (len(rows) - fired + 0.5)) if rows else math.nan)
    return out


def clip_top(step: Sequence[float], clipped: Sequence[float], edges: Sequence[float]) -> list[float]:
    """Log of the value that 98 % of a bin's clipped norms lie below, straight between neighbours."""
    out = []
    for a, b in pairwise(edges):
        rows = sorted(v for s, v in zip(step, clipped, strict=True) if a <= s < b and math.isfinite(v) and v > 0)
        if not rows:
            out.append(math.nan)
            continue
        at = 0.98 * (len(rows) - 1)
        low = int(at)
        high = min(low + 1, len(rows) - 1)
        out.append(math.log(rows[low] + (at - low) * (rows[high] - rows[low])))
    return out


def pin(value: Sequence[float]) -> tuple[int, float, float, float] | None:
    """Row since when a norm equals one value on most rows, the value, on how many, and on how many before.

    The value is the median of the last fifth. The rows before it must count more untied than tied ones by as much as
    any others do.
    """
    n = len(value)
    last = value[n - math.ceil(n / 5) :]
    top = middle(last)
    if not top > 0:
        return None
    tied = [abs(v / top - 1) < 1e-3 for v in value]
    if sum(tied[-len(last) :]) / len(last) < 0.5:
        return None
    balance = [sum(0.5 if t else -0.5 for t in tied[: i + 1]) for i in range(n)]
    first = balance.index(min(balance))
    while not tied[first]:
        first += 1
    return first, top, sum(tied[first:]) / (n - first), sum(tied[:first]) / max(first, 1)


def points(step: Sequence[float], lr: Sequence[float]) -> list[tuple[float, float, int]]:
    """Finite points in step order with their place; the last of those that repeat a step."""
    known: dict[float, tuple[float, int]] = {}
    for i, (s, v) in enumerate(zip(step, lr, strict=True)):
        if math.isfinite(s) and math.isfinite(v):
            known[s] = (v, i)
    return [(s, *known[s]) for s in sorted(known)]


def jumps(step: Sequence[float], lr: Sequence[float]) -> list[int]:
    """Places of rows that differ by 5 % from the row before, and five times as much as rows around them do."""
    rows = points(step, lr)
    change = [abs(b - a) / max(abs(a), abs(b), 1e-300) for (_, a, _), (_, b, _) in pairwise(rows)]
    out = []
    for i, size in enumerate(change):
        before, after = change[max(0, i - 10) : i], change[i + 1 : i + 11]
        judged = bool(before and after) and max(len(before), len(after)) >= 3
        if size > 0.05 and judged and size > 5 * middle(before) and size > 5 * middle(after):
            out.append(rows[i + 1][2])
    return out


def named_phases(step: Sequence[float], lr: Sequence[float]) -> list[tuple[str, int, int]]:
    """Phase of every row, put together: before the peak, after the last row near it, and between."""
    rows = points(step, lr)
    peak = max((v for _, v, _ in rows), default=0.0)
    if peak <= 0:
        return []
    warm = rows[0][1] < 0.99 * peak
    out: list[tuple[str, int, int]] = []
    ended = max(i for i, (_, v, _) in enumerate(rows) if v >= 0.99 * peak)
    for i, (s, v, _) in enumerate(rows):
        warm = warm and v < 0.999 * peak
        name = "warmup" if warm else "decay" if i > ended else "main"
        stop = int(rows[i + 1][0]) if i + 1 < len(rows) else int(s) + 1
        if out and out[-1][0] == name:
            out[-1] = (name, out[-1][1], stop)
        else:
            out.append((name, int(s), stop))
    return out


def hole(step: Sequence[float], span: float) -> tuple[int, float, float] | None:
    """Row before the widest hole of an even log, its width and the cadence.

    Nine of ten rows keep the cadence within half of it; a hole is twenty cadences and a fiftieth of the run wide, and
    there are three at most.
    """
    gaps = [b - a for a, b in pairwise(step)]
    cadence = middle(gaps)
    if sum(abs(g - cadence) < 0.5 * cadence for g in gaps) < 0.9 * len(gaps):
        return None
    holes = [i for i, g in enumerate(gaps) if g > 20 * cadence and g > 0.02 * span]
    if not 1 <= len(holes) <= 3:
        return None
    widest = max(holes, key=lambda i: (gaps[i], -i))
    return widest, gaps[widest], cadence


def regular(rows: Sequence[float]) -> tuple[bool, float, float]:
    """Whether half of the windows of a stretch swing, and the medians of share and correlation.

    A window is half the stretch, 48 rows at least, and begins half its length after the one before.
    """
    window = max(48, len(rows) // 2)
    found = []
    for start in range(0, max(1, len(rows) - window + 1), window // 2):
        part = [v for v in rows[start : start + window] if math.isfinite(v)]
        if len(part) >= 24:
            found.append(swing(part))
    if not found:
        return False, 0.0, 0.0
    passed = sum(share > 0.4 or lag < -0.5 for share, lag in found)
    return 2 * passed >= len(found), middle([s for s, _ in found]), middle([g for _, g in found])

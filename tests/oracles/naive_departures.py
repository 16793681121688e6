"""How far a run is from its cohort, and how often a healthy one is, as plain loops: slow, and there to be read."""

from __future__ import annotations

import math
from collections.abc import Sequence

NAN = float("nan")
ANCHORS = (0.12, 0.25, 0.4, 0.55, 0.7)
PRIOR = 4.0


def middle(values: Sequence[float]) -> float:
    """Median of what is known."""
    known = sorted(v for v in values if math.isfinite(v))
    n = len(known)
    return NAN if not n else (known[n // 2] if n % 2 else (known[n // 2 - 1] + known[n // 2]) / 2)


def shortest(values: Sequence[float]) -> tuple[float, float]:
    """Mean and width of the shortest stretch with more than half of what is known."""
    known = sorted(v for v in values if math.isfinite(v))
    if not known:
        return NAN, NAN
    half = len(known) // 2 + 1
    width, i = min((known[i + half - 1] - known[i], i) for i in range(len(known) - half + 1))
    return sum(known[i : i + half]) / half, width


def smoothed(values: Sequence[float], reach: int) -> list[float]:
    """Mean of what is known within ``reach`` places."""
    out = []
    for i in range(len(values)):
        near = [v for v in values[max(0, i - reach) : i + reach + 1] if math.isfinite(v)]
        out.append(sum(near) / len(near) if near else NAN)
    return out


def normal(t: float, dof: float) -> float:
    """Student's t on the normal scale, by Wallace's bound."""
    if not math.isfinite(t):
        return t
    bound = (8 * dof + 1) / (8 * dof + 3) * math.sqrt(dof * math.log1p(t * t / dof))
    return math.copysign(min(bound, abs(t)), t)


def spread(
    deviation: Sequence[Sequence[float]], floor: float, expected: Sequence[float], *, trusted: bool
) -> tuple[list[float], list[float]]:
    """Estimate a new run's standard deviation about the centre and its degrees of freedom, per bin.

    A bin's own variance counts with the degrees it has, the running mean along the run with four. ``expected`` is the
    width of the shortest half of so many standard normal values.
    """
    bins = len(deviation[0])
    every = max(1, bins // 24)
    limit = 4.0 * max(1.4826 * middle([abs(d) for own in deviation for d in own[::every]]), floor)
    variance, dof, count = [], [], []
    for b in range(bins):
        known = [own[b] for own in deviation if math.isfinite(own[b])]
        n = len(known)
        count.append(n)
        if trusted:
            dof.append(float(max(n - 1, 0)))
            squares = sum(min(abs(d), limit) ** 2 for d in known)
            variance.append(squares / (n - 1) if n >= 2 else NAN)
        else:
            dof.append(max(0.37 * (n - 1), 0.0))
            usual = expected[n] if n < len(expected) else 1.2
            variance.append((shortest(known)[1] / usual) ** 2 if n >= 2 else NAN)
    profile = smoothed(variance, max(2, bins // 10))
    sd = []
    for b in range(bins):
        if count[b] < 2:
            sd.append(NAN)
            continue
        shrunk = (PRIOR * profile[b] + dof[b] * variance[b]) / (PRIOR + dof[b])
        sd.append(math.sqrt(shrunk * (1 + 1.57 / count[b]) + floor**2))
    return sd, [PRIOR + d for d in dof]


def polished(members: Sequence[Sequence[float]], *, trusted: bool) -> list[float]:
    """Centre of the members per bin, each member moved to where the others are, and back.

    How far a member is away is the median of its distance from the bins' own centres.
    """
    bins = len(members[0])

    def centre(values: Sequence[float]) -> float:
        return middle(values) if trusted else shortest(values)[0]

    first = [centre([own[b] for own in members]) for b in range(bins)]
    apart = [middle([own[b] - first[b] for b in range(bins)]) for own in members]
    moved = [centre([own[b] - away for own, away in zip(members, apart, strict=True)]) for b in range(bins)]
    return [m + centre(apart) for m in moved]


def departure(
    candidate: Sequence[float], members: Sequence[Sequence[float]], floor: float, expected: Sequence[float], *,
    trusted: bool,
) -> dict[str, list[float]]:
    """Depart one candidate from its members in one role: z, level_z, r, centre and sd per bin."""
    bins = len(candidate)
    centre = polished(members, trusted=trusted)
    r = [candidate[b] - centre[b] for b in range(bins)]
    deviation = [[own[b] - centre[b] for b in range(bins)] for own in members]
    sd, dof = spread(deviation, floor, expected, trusted=trusted)
    level_z = [normal(r[b] / sd[b], dof[b]) for b in range(bins)]
    z = list(level_z)
    smooth_r, smooth_d = smoothed(r, 2), [smoothed(own, 2) for own in deviation]
    sd_of_smooth, dof = spread(smooth_d, floor, expected, trusted=trusted)
    for b in range(bins):
        smooth_z = normal(smooth_r[b] / sd_of_smooth[b], dof[b])
        if abs(smooth_z) > abs(z[b]) and (smooth_r[b] > 0) == (r[b] > 0):
            z[b] = smooth_z
    for anchor in ANCHORS:
        stop = int(anchor * bins)
        start = max(0, stop - max(3, bins // 10))
        if stop - start < 3 or stop + 2 >= bins:
            continue
        change_r = [v - middle(smooth_r[start:stop]) for v in smooth_r[stop + 2 :]]
        change_d = [[v - middle(own[start:stop]) for v in own[stop + 2 :]] for own in smooth_d]
        change_sd, dof = spread(change_d, floor, expected, trusted=trusted)
        for i, b in enumerate(range(stop + 2, bins)):
            change_z = normal(change_r[i] / change_sd[i], dof[i])
            if abs(change_z) > abs(z[b]):
                z[b] = change_z
    z = [z[b] if math.isfinite(r[b]) else NAN for b in range(bins)]
    return {"z": z, "level_z": level_z, "r": r, "centre": centre, "sd": sd}


def tail(members: Sequence[Sequence[float]], own: Sequence[float]) -> tuple[float, float, float]:
    """Anchor, rate and index of the power law of the largest excursions per bin; zero is no data.

    One rank of three members (and one more) is passed over, and the slope is taken over the next eight ranks or a
    fortieth of all. Alone, a run has its own excursions and passes over two.
    """
    counted = [[v for v in m if v > 0] for m in members]
    counted = [m for m in counted if len(m) >= 6]
    runs = len(counted)
    if runs >= 2:
        sizes = sorted((v for m in counted for v in m), reverse=True)
        first = 1 + math.ceil(runs / 3)
    else:
        runs, first = 1, 3
        sizes = sorted((v for v in own if v > 0), reverse=True)
        if len(sizes) < 12:
            return 6.0, 1.0, 3.0
    ranks = range(first, min(len(sizes), first + max(8, len(sizes) // 40)) + 1)
    x = [math.log(k) for k in ranks]
    y = [math.log(max(sizes[k - 1], 0.5)) for k in ranks]
    mean = sum(x) / len(x)
    slope = sum((a - mean) * b for a, b in zip(x, y, strict=True)) / sum((a - mean) ** 2 for a in x)
    index = min(max(1 / max(-slope, 1e-3), 2.0), 10.0)
    return max(sizes[first - 1], 0.5, 2.5), first / runs, index


def chance(tail_: tuple[float, float, float], z: float) -> float:
    """Chance of one excursion of ``z`` or more in a healthy run: never, in as many Poisson trials as there are."""
    anchor, rate, index = tail_
    return 1 - math.exp(-rate * (max(z, anchor) / anchor) ** -index)

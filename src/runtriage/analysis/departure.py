"""How far a run's binned level is from its cohort's: z per bin, honest for small cohorts and with bad members about.

Symbols
-------
======  ===================================================================================
C       candidates judged together
R       members they are judged against
K       roles
B       bins
r       level of a candidate minus the cohort's centre, in log units
s       standard deviation of a new run's r, from the members, shrunk along the run
======  ===================================================================================

Three statistics are combined by their largest size: the level itself, the level smoothed over five bins, and the change
of the level since an earlier part of the same run (members treated alike), which does not care how far apart runs of
one config lie as long as they stay there. The centre is that of members moved to one level, as in a median polish: of
runs that lie apart, it would else jump from one to another.

References
----------
Smyth (2004), Statistical Applications in Genetics and Molecular Biology 3, art. 3: shrinking variances (here to their
own running profile). Tukey (1977), Exploratory Data Analysis, ch. 11: median polish. Wallace (1959), Annals of
Mathematical Statistics 30, 1124-1130: t to z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.order_stats import Array, moving_mean, nan_median, shortest_half, shortest_width
from runtriage.analysis.robust import t_to_z

ANCHORS: tuple[float, ...] = (0.12, 0.25, 0.4, 0.55, 0.7)
"""Places, as a share of the bins, from which changes are counted."""

_PRIOR_DOF = 4.0
_MAD_TO_SD = 1.4826
_CLIP_SD, _CLIP_BINS = 4.0, 24
_SMOOTH = 2
_CHUNK = 4_000_000
_SHORTH_SD = np.array([
    np.nan, np.nan, 1.42, 0.59, 1.142, 0.745, 1.091, 0.835, 1.086, 0.896, 1.091, 0.941, 1.098, 0.975, 1.109, 1.003,
    1.118,
    1.024, 1.128, 1.046, 1.134, 1.061, 1.141, 1.074, 1.15, 1.087, 1.155, 1.098, 1.162, 1.109, 1.167, 1.116, 1.172,
])
"""Root mean square width of the shortest half of R standard normal values (100,000 draws each); the limit is 1.349."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Departures:
    """Departures of C candidates in K roles.

    Attributes
    ----------
    z
        Largest of the three statistics per bin, signed, shape (C, K, B); NaN without a candidate or a cohort.
    level_z
        The level statistic alone.
    r
        Log level minus centre.
    centre
        Cohort's centre, shape (C, K, B).
    sd
        Standard deviation used for the level.
    members
        Members with data per bin, shape (C, K, B).
    """

    z: Array
    level_z: Array
    r: Array
    centre: Array
    sd: Array
    members: NDArray[np.intp]


def departures(candidate: Array, member: Array, use: NDArray[np.bool_], floor: Array, *, trusted: bool) -> Departures:
    """Measure candidates against members.

    Parameters
    ----------
    candidate
        Log levels, shape (C, K, B).
    member
        Log levels, shape (R, K, B).
    use
        Which member counts for which candidate, per bin, shape (C, R, B).
    floor
        Smallest believable run-to-run standard deviation per role, shape (K,).
    trusted
        True when the members are known to be healthy: median and mean square. False: the shortest half, which up to
        half of the members cannot move.

    Returns
    -------
    Departures
    """
    c, k, b = candidate.shape
    per = max(1, _CHUNK // max(1, member.size))
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [
            _chunk(candidate[i : i + per], member, use[i : i + per], floor, trusted=trusted) for i in range(0, c, per)
        ]
    if not parts:
        empty = np.empty((0, k, b))
        return Departures(z=empty, level_z=empty, r=empty, centre=empty, sd=empty, members=np.empty((0, k, b), np.intp))
    if len(parts) == 1:
        return parts[0]
    names = ("z", "level_z", "r", "centre", "sd", "members")
    return Departures(**{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})


def _chunk(candidate: Array, member: Array, use: NDArray[np.bool_], floor: Array, *, trusted: bool) -> Departures:
    table = _table(member, use)
    count = _count(np.isfinite(table))
    centre = _centre(table, trusted=trusted)
    # runs that lie apart have no centre of their own in a bin: each is moved to where the others are, and back
    apart = nan_median(table - centre[:, :, None], -1)
    centre = _centre(table - apart[..., None], trusted=trusted) + _centre(apart[..., None], trusted=trusted)
    r = candidate - centre
    deviation = table - centre[:, :, None]
    sd, dof = _spread(deviation, floor, trusted=trusted)
    level_z = t_to_z(r / sd, dof)
    z = level_z.copy()
    smooth_r, smooth_d = moving_mean(r, _SMOOTH), moving_mean(deviation, _SMOOTH)
    smooth_sd, smooth_dof = _spread(smooth_d, floor, trusted=trusted)
    smooth_z = t_to_z(smooth_r / smooth_sd, smooth_dof)
    z = np.where((np.abs(smooth_z) > np.abs(z)) & (np.sign(smooth_r) == np.sign(r)), smooth_z, z)
    bins = r.shape[-1]
    for anchor in ANCHORS:
        stop = int(anchor * bins)
        start = max(0, stop - max(3, bins // 10))
        if stop - start < 3 or stop + _SMOOTH >= bins:
            continue
        after = slice(stop + _SMOOTH, bins)
        change_r = smooth_r[..., after] - nan_median(smooth_r[..., start:stop], -1)[..., None]
        change_d = smooth_d[..., after] - nan_median(smooth_d[..., start:stop], -1)[..., None]
        change_sd, change_dof = _spread(change_d, floor, trusted=trusted)
        change_z = np.nan_to_num(t_to_z(change_r / change_sd, change_dof))
        z[..., after] = np.where(np.abs(change_z) > np.abs(z[..., after]), change_z, z[..., after])
    z = np.where(np.isfinite(r), z, np.nan)
    return Departures(z=z, level_z=level_z, r=r, centre=centre, sd=sd, members=count)


def _centre(values: Array, *, trusted: bool) -> Array:
    """Centre of the members, shape (C, K, R, B) to (C, K, B)."""
    return nan_median(values, 2) if trusted else shortest_half(values, 2)[0]


def _table(member: Array, use: NDArray[np.bool_]) -> Array:
    """Members laid out per candidate, shape (C, K, R', B), without those of which a candidate may use nothing."""
    some = use.any(axis=2)
    kept = np.argsort(~some, axis=1, kind="stable")[:, : max(1, int(some.sum(axis=1).max(initial=0)))]
    table = member[kept].transpose(0, 2, 1, 3)
    chosen = np.take_along_axis(use, kept[:, :, None], axis=1)[:, None]
    return np.ascontiguousarray(table) if chosen.all() else np.where(chosen, table, np.nan)


def _count(good: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Members with data per candidate, role and bin: sum over the members of (C, K, R, B)."""
    narrow = np.uint8 if good.shape[2] <= np.iinfo(np.uint8).max else np.intp
    return np.asarray(good.view(np.uint8).sum(axis=2, dtype=narrow), dtype=np.intp)


def _spread(deviation: Array, floor: Array, *, trusted: bool) -> tuple[Array, Array]:
    """Estimate the standard deviation of a new run about the centre, and its dof, from deviations (C, K, R, B)."""
    good = np.isfinite(deviation)
    count = _count(good)
    low = floor[:, None]
    if trusted:
        size = np.abs(deviation)
        some = size[..., :: max(1, size.shape[-1] // _CLIP_BINS)]  # bins go along with their neighbours
        limit = _CLIP_SD * np.maximum(_MAD_TO_SD * nan_median(some.reshape(*size.shape[:2], -1), -1), floor)
        np.minimum(size, limit[:, :, None, None], out=size)
        size *= size
        np.fmax(size, 0.0, out=size)  # what is missing counts nothing
        variance = size.sum(axis=2) / np.maximum(count - 1, 1)
        dof = np.maximum(count - 1, 0).astype(np.float64)
    else:
        width = shortest_width(deviation, 2)
        expected = np.where(count < _SHORTH_SD.size, _SHORTH_SD[np.minimum(count, _SHORTH_SD.size - 1)], 1.2)
        variance = (width / expected) ** 2
        dof = np.maximum(0.37 * (count - 1), 0.0)
    known = count >= 2
    variance[~known] = np.nan
    profile = moving_mean(variance, max(2, deviation.shape[-1] // 10))
    centre_error = 1.57 / np.maximum(count, 1)
    sd = np.sqrt((_PRIOR_DOF * profile + dof * variance) / (_PRIOR_DOF + dof) * (1.0 + centre_error) + low**2)
    return sd, _PRIOR_DOF + dof

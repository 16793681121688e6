"""What a proposed break is worth: how noisy a jump of this width is here, whether it is sharp, whether it lasts.

No noise model is assumed. :func:`measure_noise` looks at the very statistic that will be tested, the gap between a
line fitted left and a line fitted right of a place, everywhere along the curve, and takes its robust spread over all
places for each window width. White noise gives 1 at every width; any autocorrelation, AR(1) or not, shows as growth.
A jump then has to stand out of what the same curve does between jumps.

References
----------
.. [1] J. Antoch, M. Huskova, Z. Praskova, "Effect of dependence on statistics for determination of change",
       J. Statist. Plann. Inference 60 (1997): why the scale must come from the dependence actually present.
.. [2] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Stat. 35 (1964).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from runtriage.analysis.robust import MAD_TO_SD, Floats, Indices
from runtriage.analysis.segment import LineSums

_NARROWEST = 3
"""Blocks a line needs on its side of a break: two leave no residual."""

_OCTAVE_HALF = 2.0**0.5
_LEAST_NOISE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class NoiseCurve:
    """Robust spread of the jump contrast, in white-noise standard deviations, by window width.

    Attributes
    ----------
    log_width, log_spread
        The measured points, shape (k,), natural logarithms.
    growth
        Slope used beyond the widest measured window, between 0 (white) and 1.
    """

    log_width: Floats
    log_spread: Floats
    growth: float

    def at(self, width: ArrayLike) -> Floats:
        """Return the spread for windows of ``width`` blocks on each side (any shape)."""
        wanted = np.log(np.maximum(np.asarray(width, np.float64), _NARROWEST))
        inside = np.interp(wanted, self.log_width, self.log_spread)
        beyond = np.maximum(wanted - self.log_width[-1], 0.0)
        spread: Floats = np.exp(inside + self.growth * beyond)
        return spread


class Jump(NamedTuple):
    """A tested break: block, size in the units of the blocks, signed z (0 when it is not sharp)."""

    block: int
    size: float
    z: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpRules:
    """What makes a contrast a jump.

    Attributes
    ----------
    z_min
        Smallest the size of z.
    sharpness
        Share of the jump that must be left with half the window: a step keeps all, a smooth bend a quarter.
    bend
        Smallest jump over (slope difference times half window): a bend a little beside the break images as a jump.
    """

    z_min: float
    sharpness: float = 0.5
    bend: float = 0.5


def jump_contrast(
    lines: LineSums, t: Indices, left: Indices, right: Indices, gap: tuple[int, int] = (0, 0)
) -> tuple[Floats, Floats, Floats]:
    """Gap between the line right and the line left of places ``t``.

    Parameters
    ----------
    lines
        The data.
    t
        First block of the right side, integers, broadcast with the widths.
    left, right
        Blocks on each side, >= 1; the windows must lie inside the data.
    gap
        Blocks left out just before and just after ``t``.

    Returns
    -------
    jump, var_left, var_right : ndarray of float64
        Jump at ``t`` and the variances of the two predictions there under the weights of ``lines``.
    """
    at = lines.between(t)
    before, var_left = lines.predict(t - gap[0] - left, t - gap[0], at)
    after, var_right = lines.predict(t + gap[1], t + gap[1] + right, at)
    return after - before, var_left, var_right


def contrast_profile(lines: LineSums, width: int) -> tuple[Indices, Floats]:
    """Jump contrast at every place where windows of ``width`` blocks fit, in white-noise standard deviations.

    Returns
    -------
    t : ndarray of int64
        Places, shape (N - 2 * width + 1,).
    contrast : ndarray of float64
        Same shape.
    """
    t = np.arange(width, lines.x.size - width + 1)
    jump, var_left, var_right = jump_contrast(lines, t, np.int64(width), np.int64(width))  # type: ignore[arg-type]
    return t, jump / np.sqrt(var_left + var_right)


def window_widths(widest: float) -> list[int]:
    """Widths from 3 up in half octaves, none of which exceeds ``widest`` by more than rounding."""
    widths = [_NARROWEST]
    while widths[-1] * _OCTAVE_HALF <= widest:
        widths.append(int(np.ceil(widths[-1] * _OCTAVE_HALF)))
    return widths


def measure_noise(lines: LineSums) -> NoiseCurve:
    """Measure how the jump contrast spreads along the curve, by window width.

    Parameters
    ----------
    lines
        At least 30 blocks, weighted by the inverse white-noise variance.

    Returns
    -------
    NoiseCurve
        Measured up to a fortieth of the blocks (at least 12): wider windows leave too few independent places.
    """
    widths = window_widths(max(12.0, lines.x.size / 40))
    spread = []
    for width in widths:
        _, contrast = contrast_profile(lines, width)
        contrast = contrast - np.median(contrast)
        spread.append(max(MAD_TO_SD * float(np.median(np.abs(contrast))), _LEAST_NOISE))
    log_width, log_spread = np.log(widths), np.log(spread)
    back = min(4, len(widths) - 1)
    growth = (log_spread[-1] - log_spread[-1 - back]) / (log_width[-1] - log_width[-1 - back])
    return NoiseCurve(log_width=log_width, log_spread=log_spread, growth=float(np.clip(growth, 0.0, 1.0)))


def sharp_places(lines: LineSums, noise: NoiseCurve, breaks: Indices, z_min: float, min_length: int) -> Indices:
    """Add places with a significant jump in a narrow window to proposed breaks.

    In strongly autocorrelated noise the penalty, which has to expect long wanderings, misses steps that are obvious
    at short range.

    Parameters
    ----------
    lines, noise
        The data under white-noise weights, and its noise.
    breaks
        Breaks proposed so far, increasing.
    z_min
        Smallest the size of z worth proposing.
    min_length
        Smallest distance to another break, in blocks.

    Returns
    -------
    ndarray of int64
        All breaks, increasing.
    """
    found = list(breaks)
    for width in window_widths(min(24, lines.x.size // 8)):
        if width > min(24, lines.x.size // 8):
            break
        t, contrast = contrast_profile(lines, width)
        size = np.abs(contrast) / noise.at(width)
        peaks = np.flatnonzero(size >= z_min)
        reach = max(width // 2, min_length)
        for place in t[peaks[np.argsort(-size[peaks])]]:
            if not found or np.abs(np.array(found) - place).min() > reach:
                found.append(int(place))
    return np.sort(np.array(found, np.int64))


def judge_jump(
    lines: LineSums, noise: NoiseCurve, block: int, limits: tuple[int, int], rules: JumpRules, *, straddled: bool
) -> Jump:
    """Test one break over all window widths that stay clear of its neighbours.

    Parameters
    ----------
    lines, noise
        The data under white-noise weights, and its noise.
    block
        First block of the new regime.
    limits
        The neighbouring breaks (or ends): windows stay in ``[limits[0], limits[1])``.
    rules
        What makes a contrast a jump.
    straddled
        Whether blocks are medians of several points: the one holding the step lies between the levels, so the test
        is also tried without the block before, and without the block after the break.

    Returns
    -------
    Jump
        The width and gap with the largest the size of z; z is 0 when the best one is not sharp.
    """
    best = Jump(block, 0.0, 0.0)
    for gap in ((0, 0), (1, 0), (0, 1)) if straddled else ((0, 0),):
        room = (block - gap[0] - limits[0], limits[1] - block - gap[1])
        if min(room) < _NARROWEST:
            continue
        tested = _strongest(lines, noise, block, room, gap, rules)
        if abs(tested.z) > abs(best.z):
            best = tested
    return best


def _strongest(
    lines: LineSums, noise: NoiseCurve, block: int, room: tuple[int, int], gap: tuple[int, int], rules: JumpRules
) -> Jump:
    """Find the most significant window at a break, checked for sharpness."""
    widest = max(float(min(max(room), lines.x.size // 4)), float(_NARROWEST))
    widths = _NARROWEST * _OCTAVE_HALF ** np.arange(int(np.ceil(2 * np.log2(widest / _NARROWEST) - 1e-9)) + 1)
    left, right = (np.minimum(widths, side).astype(np.int64) for side in room)
    t = np.full(widths.size, block)
    jump, var_left, var_right = jump_contrast(lines, t, left, right, gap)
    z = jump / np.sqrt(var_left * noise.at(left) ** 2 + var_right * noise.at(right) ** 2)
    top = int(np.argmax(np.abs(z)))
    size = float(jump[top])
    if abs(z[top]) >= rules.z_min and not _is_sharp(lines, block, (int(left[top]), int(right[top])), gap, size, rules):
        return Jump(block, size, 0.0)
    return Jump(block, size, float(z[top]))


def _is_sharp(
    lines: LineSums, block: int, width: tuple[int, int], gap: tuple[int, int], size: float, rules: JumpRules
) -> bool:
    """Whether a contrast is a step and not the image of a bend."""
    half = (np.array([max(2, width[0] // 2)]), np.array([max(2, width[1] // 2)]))
    narrow = float(jump_contrast(lines, np.array([block]), half[0], half[1], gap)[0][0])
    if narrow * np.sign(size) < rules.sharpness * abs(size):
        return False
    left_end, right_start = block - gap[0], block + gap[1]
    left_start, right_end = left_end - width[0], right_start + width[1]
    reach = min(
        float(lines.x[left_end - 1] - lines.x[left_start]), float(lines.x[right_end - 1] - lines.x[right_start])
    )
    turn = abs(lines.slope(left_start, left_end) - lines.slope(right_start, right_end))
    return abs(size) >= rules.bend * turn * reach


class StepFit(NamedTuple):
    """Height of a step on a common line, and its standard error."""

    height: float
    error: float


def fit_step(x: Floats, y: Floats, weight: Floats, after: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> StepFit:
    """Fit one line with a step by Huber's estimator [2]_ (k = 2, iteratively reweighted).

    Parameters
    ----------
    x, y
        Shape (n,), n >= 4.
    weight
        Inverse variances, shape (n,).
    after
        True on the far side of the step, shape (n,); both sides occupied.

    Returns
    -------
    StepFit
        In the units of ``y``.
    """
    design = np.column_stack([np.ones_like(x), x - x.mean(), after.astype(np.float64)])
    trust = np.ones_like(x)
    coefficients: Floats = np.zeros(3)
    covariance: Floats = np.eye(3)
    for _ in range(6):
        weighted = design * (weight * trust)[:, None]
        normal = design.T @ weighted
        # equal steps after rounding leave the slope undetermined: a trace of ridge makes it zero
        normal[np.diag_indices(3)] = np.diag(normal) * (1 + 1e-9) + 1e-15 * np.trace(normal)
        covariance = np.asarray(np.linalg.inv(normal), np.float64)
        coefficients = covariance @ (weighted.T @ y)
        size = np.abs(y - design @ coefficients) * np.sqrt(weight)
        spread = max(1.0, MAD_TO_SD * float(np.median(size)))
        trust = np.minimum(1.0, 2.0 * spread / np.maximum(size, 1e-12))
    return StepFit(float(coefficients[2]), float(np.sqrt(max(covariance[2, 2], 0.0))))

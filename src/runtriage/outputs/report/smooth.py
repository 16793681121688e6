"""A line through a noisy curve for the eye, taken when it is drawn: most curves never are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runtriage.model.curve import Curve

_PER_HALF_WINDOW = 4
"""Medians taken for each half window."""


def smooth_line(curve: Curve) -> NDArray[np.float64] | None:
    """Return the line that comes with a curve, else its running median, else None.

    Parameters
    ----------
    curve
        Without a line its ``half_window`` says how wide the median is: less than the number of rows, 0 for none.

    Returns
    -------
    ndarray of float64 or None
        Shape (n,): medians at every few rows, mirrored at the ends, with straight lines in between.
    """
    if curve.smooth is not None or not curve.half_window:
        return curve.smooth
    half, value = curve.half_window, curve.value
    padded = np.concatenate([value[half:0:-1], value, value[-2 : -half - 2 : -1]])
    every = max(1, half // _PER_HALF_WINDOW)
    windows = np.array(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)[::every])
    windows.sort(axis=1)
    return np.asarray(np.interp(np.arange(value.size), np.arange(len(windows)) * every, windows[:, half]))

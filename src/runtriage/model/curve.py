"""A metric made ready to be looked at, with the band it was judged against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtriage.model.report import Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MEDIANS_PER_HALF_WINDOW = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """One metric of one run, at full resolution; whoever draws it reduces it.

    Attributes
    ----------
    metric, role
        Name as logged (hostile input) and meaning.
    step, value
        int64 and float64, shape (n,), steps strictly rising; values may be non-finite.
    line
        A smooth line through ``value``, shape (n,), where there is one already, else None.
    half_window
        Rows on either side of the running median that :attr:`smooth` takes without a ``line``; 0 for none.
    band_step, band_low, band_high
        The cohort's band in the metric's units, shape (b,) each, or None without a cohort.
    """

    metric: str
    role: str
    step: NDArray[np.int64]
    value: NDArray[np.float64]
    line: NDArray[np.float64] | None = None
    half_window: int = 0
    band_step: NDArray[np.float64] | None = None
    band_low: NDArray[np.float64] | None = None
    band_high: NDArray[np.float64] | None = None

    @property
    def smooth(self) -> NDArray[np.float64] | None:
        """A line for the eye, shape (n,), or None; worked out when it is asked for, since most curves are never drawn.

        A running median at every few rows, mirrored at the ends, with straight lines in between.
        """
        if self.line is not None or not self.half_window:
            return self.line
        import numpy as np  # noqa: PLC0415  reports are read where nothing is drawn

        half, value = self.half_window, self.value
        padded = np.concatenate([value[half:0:-1], value, value[-2 : -half - 2 : -1]])
        every = max(1, half // _MEDIANS_PER_HALF_WINDOW)
        windows = np.array(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)[::every])
        windows.sort(axis=1)
        return np.asarray(np.interp(np.arange(value.size), np.arange(len(windows)) * every, windows[:, half]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triage:
    """The result of judging one run: what is said, and what can be shown (loss first, then grad norm, then lr)."""

    report: Report
    curves: tuple[Curve, ...] = ()

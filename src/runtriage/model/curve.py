"""A metric made ready to be looked at, with the band it was judged against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtriage.model.report import Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """One metric of one run, at full resolution; whoever draws it reduces it.

    Attributes
    ----------
    metric, role
        Name as logged (hostile input) and meaning.
    step, value
        int64 and float64, shape (n,), steps strictly rising; values may be non-finite.
    smooth
        A line through ``value`` for the eye, shape (n,), where there is one already, else None.
    half_window
        Without one: rows on either side of the running median that is taken when the curve is drawn; 0 for none.
    band_step, band_low, band_high
        The cohort's band in the metric's units, shape (b,) each, or None without a cohort.
    """

    metric: str
    role: str
    step: NDArray[np.int64]
    value: NDArray[np.float64]
    smooth: NDArray[np.float64] | None = None
    half_window: int = 0
    band_step: NDArray[np.float64] | None = None
    band_low: NDArray[np.float64] | None = None
    band_high: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triage:
    """The result of judging one run: what is said, and what can be shown (loss first, then grad norm, then lr)."""

    report: Report
    curves: tuple[Curve, ...] = ()

"""The chance that a healthy run looks as remarkable as this one, whatever was found in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtriage.analysis.calibrate import SPIKE_SHARE
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.null_table import RARITY, RARITY_CHANCES
from runtriage.analysis.order_stats import Array
from runtriage.analysis.spikes import rarest
from runtriage.model.vocab import Role

_LEAST_BINS = 3


def run_chance(view: RunView, forms: Sequence[Form]) -> float:
    """Chance that a healthy run looks at least as remarkable, over all roles and detectors together.

    Parameters
    ----------
    view
        The run beside its cohort. Without a cohort only its spikes and what was found are weighed, and the chance is
        an upper bound.
    forms
        What was found in it.
    """
    x = np.log(max(rarity(view, forms), 1e-12))
    size, p = np.log(RARITY), np.log(RARITY_CHANCES)
    return float(np.exp(min(0.0, np.interp(x, size, p) + min(0.0, x - size[0]))))


def rarity(view: RunView, forms: Sequence[Form]) -> float:
    """Smallest expected number of healthy runs as extreme, over all roles and spike channels by their shares.

    Parameters
    ----------
    view, forms
        As in :func:`run_chance`.

    Returns
    -------
    float
        At or below the false-alarm budget where a form raises the verdict; may exceed one.
    """
    explained = min((form.start for form in forms if form.explained_by is not None), default=np.inf)
    stop = int(np.searchsorted(view.axis.edges[1:], explained))  # behind what is explained levels prove nothing
    levels = [view.expected(role, lasting(z[:stop])) for role, z in view.z.items() if role in view.limits]
    spikes = [rarest(view, role) / SPIKE_SHARE for role in (Role.LOSS, Role.GRAD_NORM)]
    found = [form.p for form in forms if form.explained_by is None and not form.mild]
    return float(min([*levels, *spikes, *found]))


def lasting(z: Array) -> float:
    """Return the largest size that three bins in a row pass to the same side."""
    if z.size < _LEAST_BINS:
        return 0.0
    known = np.where(np.isnan(z), 0.0, z)
    return float(max(np.minimum(np.minimum(y[:-2], y[1:-1]), y[2:]).max() for y in (known, -known)))

"""The chance that a healthy run looks as remarkable as this one, whatever was found in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtriage.analysis.calibrate import SPIKE_SHARE
from runtriage.analysis.derived import CLIP_TOP, CLIPPED_SHARE
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.null_table import RARITY, RARITY_CHANCES
from runtriage.analysis.order_stats import Array
from runtriage.analysis.spikes import rarest
from runtriage.model.vocab import Role

_LEAST_BINS = 3
_NEVER_ALONE = frozenset({CLIP_TOP, CLIPPED_SHARE})
"""How often a norm is clipped jumps where its level is near the clip value, and is told only with other evidence."""


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
    roles = [role for role in view.z if role in view.limits and role not in _NEVER_ALONE]
    sizes = lasting(np.array([view.z[role][:stop] for role in roles])).tolist() if roles else []
    levels = [view.expected(role, size) for role, size in zip(roles, sizes, strict=True)]
    spikes = [rarest(view, role) / SPIKE_SHARE for role in (Role.LOSS, Role.GRAD_NORM)]
    found = [form.p for form in forms if form.explained_by is None and not form.mild]
    return float(min([*levels, *spikes, *found]))


def lasting(z: Array) -> Array:
    """Return the largest size that three bins in a row pass to the same side, along the last axis."""
    if z.shape[-1] < _LEAST_BINS:
        return np.zeros(z.shape[:-1])
    known = np.where(np.isnan(z), 0.0, z)
    a, b, c = known[..., :-2], known[..., 1:-1], known[..., 2:]
    up, down = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
    return np.asarray(np.maximum(up.max(axis=-1), -down.min(axis=-1)))

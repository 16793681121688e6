"""Turning a false-alarm budget into limits, from the simulated null table."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.null_table import CHANCES, LEVEL_Z
from runtriage.analysis.order_stats import Array

_FAR_Z, _FAR_P = 40.0, 1e-9


def level_curve(members: int) -> tuple[Array, Array]:
    """Chance that a healthy run's level passes z, as points (z, p) for interpolation of log p.

    Parameters
    ----------
    members
        Other runs in the cohort; between the simulated sizes the logarithm of the number is interpolated.

    Returns
    -------
    z, p
        float64, shape (m,), z rising and p falling; the last point extends the tail by its own slope.
    """
    sizes = sorted(LEVEL_Z)
    table = np.array([LEVEL_Z[s] for s in sizes])
    x = np.log(np.clip(members, sizes[0], sizes[-1]))
    z = np.array([np.interp(x, np.log(sizes), table[:, i]) for i in range(table.shape[1])])
    p = np.array(CHANCES)
    slope = (np.log(p[-1]) - np.log(p[-3])) / max(z[-1] - z[-3], 0.1)
    far = float(np.clip(np.log(_FAR_P / p[-1]) / min(slope, -0.5) + z[-1], z[-1] + 0.5, _FAR_Z))
    return np.concatenate([[0.0], z, [far]]), np.concatenate([[1.0], p, [_FAR_P]])


def level_limit(members: int, budget: float) -> float:
    """Return the z at which the chance of a false alarm is ``budget``."""
    z, p = level_curve(members)
    return float(np.interp(-np.log(budget), -np.log(p), z))

"""Turning a false-alarm budget into limits, from the simulated null table."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from runtriage.analysis.derived import MOVE, VAL_GAP
from runtriage.analysis.null_table import CHANCES, LEVEL_Z, NOISE_Z
from runtriage.analysis.order_stats import Array
from runtriage.model.vocab import Role

_FAR_Z, _FAR_P = 40.0, 1e-9
SPIKE_SHARE = 0.4
"""Share of the false-alarm budget for spikes of one role; rises too small to matter make it cost less."""

_MAIN = (Role.LOSS, Role.GRAD_NORM, MOVE, VAL_GAP)
_MAIN_SHARE, _REST_SHARE = 0.1, 0.4
_UNTESTED = (Role.GRAD_NORM_CLIPPED, Role.LAYER_GRAD_NORM, Role.ATTENTION_LOGIT, Role.SEQ_LEN)


@lru_cache(maxsize=256)
def level_curve(members: int, *, noise: bool = False) -> tuple[Array, Array]:
    """Log chance that a healthy run passes z in one role, as points (z, log p) for interpolation.

    Parameters
    ----------
    members
        Other runs in the cohort; between the simulated sizes the logarithm of the number is interpolated.
    noise
        For the size of the noise instead of a level.

    Returns
    -------
    z, log_p
        float64, shape (m,), z rising and log p falling; the last point extends the tail by its own slope.
    """
    null = NOISE_Z if noise else LEVEL_Z
    sizes = sorted(null)
    table = np.array([null[s] for s in sizes])
    x = np.log(np.clip(members, sizes[0], sizes[-1]))
    z = np.array([np.interp(x, np.log(sizes), table[:, i]) for i in range(table.shape[1])])
    log_p = np.log(CHANCES)
    slope = (log_p[-1] - log_p[-4]) / max(z[-1] - z[-4], 0.1)
    far = float(np.clip((np.log(_FAR_P) - log_p[-1]) / min(slope, -0.5) + z[-1], z[-1] + 0.5, _FAR_Z))
    return np.concatenate([[0.0], z, [far]]), np.concatenate([[0.0], log_p, [np.log(_FAR_P)]])


@lru_cache(maxsize=4096)
def level_limit(members: int, chance: float, *, noise: bool = False) -> float:
    """Return the z that a healthy run passes in one role with a chance.

    Parameters
    ----------
    members
        Other runs in the cohort.
    chance
        Of a false alarm in this role, 0 < chance < 1.
    noise
        For the size of the noise instead of a level.
    """
    z, log_p = level_curve(members, noise=noise)
    return float(np.interp(-np.log(max(chance, _FAR_P)), -log_p, z))


def shares(roles: Iterable[str]) -> dict[str, float]:
    """Divide the false-alarm budget over the compared roles.

    Loss, its moves, grad norm and validation against training have a tenth of the budget each, whatever else is logged:
    a log of forty layers must not blind us to the loss; a tenth more is for loss and norm together. The others divide
    four tenths, none more than a tenth. What is left is for spikes. Roles that move together make the whole cost less
    than the sum: healthy cohorts with full logs alarm at a third of the budget (``tests/statistical/test_null.py``).
    """
    names = [r for r in roles if not r.startswith(_UNTESTED)]
    rest = [r for r in names if r not in _MAIN]
    return {r: _MAIN_SHARE if r in _MAIN else min(_MAIN_SHARE, _REST_SHARE / len(rest)) for r in names}

"""How often a healthy run of a cohort shows an excursion as large as one that was seen.

The tail is measured on the largest excursion per bin of all trusted members, and extrapolated as a power law.

References
----------
Weissman (1978), Journal of the American Statistical Association 73, 812-815, eq. 3: extrapolated quantiles of a power
tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.order_stats import Array

_LEAST_BINS = 6
_LEAST_RANKS = 8
_PASSED_OVER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Upper tail of the largest excursion in a run.

    Attributes
    ----------
    anchor
        The z that a healthy run passes ``rate`` times on average.
    rate
        Expected number of bins beyond the anchor.
    index
        Power-law index; large for normal noise.
    runs
        Number of runs it was measured on.
    """

    anchor: float
    rate: float
    index: float
    runs: int = 1

    def p_run(self, z: float, heaviest: float = np.inf) -> float:
        """Chance that a healthy run holds an excursion of ``z`` or more, with an index of at most ``heaviest``."""
        index = min(self.index, heaviest)
        return float(-np.expm1(-self.rate * (max(z, self.anchor) / self.anchor) ** -index))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TailPool:
    """The largest excursions per bin of all members of a cohort, sorted once for all that leave one out.

    Attributes
    ----------
    values, owner
        Sizes from large to small and the member each belongs to, shape (m,).
    sizes, enough
        Bins of each member, and whether they are enough to count, shape (R,).
    """

    values: Array
    owner: NDArray[np.intp]
    sizes: NDArray[np.intp]
    enough: NDArray[np.bool_]

    @classmethod
    def of(cls, members: Sequence[Array]) -> TailPool:
        """Pool members; zero is no data."""
        parts = [m[m > 0] for m in members]
        sizes = np.array([p.size for p in parts], dtype=np.intp)
        values = np.concatenate(parts) if parts else np.empty(0)
        order = np.argsort(values)[::-1]
        return cls(
            values=values[order], owner=np.repeat(np.arange(len(parts)), sizes)[order], sizes=sizes,
            enough=sizes >= _LEAST_BINS,
        )

    def _top(self, chosen: NDArray[np.bool_], count: int) -> Array:
        """At least the ``count`` largest of the chosen members, from large to small; all are seldom looked through."""
        near = slice(0, 4 * count)
        values = self.values[near][chosen[self.owner[near]]]
        return values if values.size >= count else self.values[chosen[self.owner]]

    def fit(self, chosen: NDArray[np.bool_], own: Array) -> Tail:
        """Fit the upper tail of the chosen members' largest excursions.

        Parameters
        ----------
        chosen
            Mask of members, shape (R,).
        own
            The largest excursions of the run itself, shape (B,), used only with fewer than two others.

        Notes
        -----
        The bins of all members are ranked together. The first few ranks, one for each three members, are passed over:
        they may be real spikes of members that were not found out. The slope of log size against log rank over the next
        ranks is one over the index. A lone run has only itself, and passes over its two largest bins.
        """
        chosen = chosen & self.enough
        runs = int(np.count_nonzero(chosen))
        if runs >= 2:
            first = 1 + -(-runs // _PASSED_OVER)
            total = int(self.sizes[chosen].sum())
            last = min(total, first + max(_LEAST_RANKS, total // 40))
            values = self._top(chosen, last)
        else:
            runs, values, first = 1, np.sort(own[own > 0])[::-1], 3
            if values.size < 2 * _LEAST_BINS:
                return Tail(anchor=6.0, rate=1.0, index=3.0)
            last = min(values.size, first + max(_LEAST_RANKS, values.size // 40))
        ranked = np.maximum(values[first - 1 : last], 0.5)
        x, power = _log_ranks(first, ranked.size)
        slope = -float(x @ np.log(ranked)) / max(power, 1e-12)
        index = min(max(1.0 / max(slope, 1e-3), 2.0), 10.0)
        return Tail(anchor=max(float(ranked[0]), 2.5), rate=first / runs, index=index, runs=runs)


@lru_cache(maxsize=256)
def _log_ranks(first: int, size: int) -> tuple[Array, float]:
    """Take logs of consecutive ranks less their mean, and their sum of squares."""
    x = np.log(np.arange(first, first + size))
    x -= x.mean()
    x.flags.writeable = False
    return x, float(x @ x)

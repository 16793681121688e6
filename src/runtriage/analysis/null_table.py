"""How large departures get in healthy runs: simulated by ``tests/statistical/null_model.py``, not chosen.

For each number of members: the z that three bins in a row pass, in one role and at any place, with the chance given by
:data:`CHANCES`. The members are trusted, the run is not among them.
"""

from __future__ import annotations

CHANCES: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Chances of a healthy run, falling."""

LEVEL_Z: dict[int, tuple[float, ...]] = {
    2: (2.18, 2.77, 3.07, 3.33, 3.63, 3.86, 4.06, 4.27, 4.44),
    3: (1.85, 2.39, 2.70, 2.95, 3.27, 3.45, 3.66, 3.96, 4.15),
    5: (1.78, 2.28, 2.57, 2.82, 3.10, 3.32, 3.51, 3.78, 3.99),
    10: (1.74, 2.23, 2.50, 2.75, 3.03, 3.23, 3.45, 3.68, 3.89),
    30: (1.77, 2.23, 2.49, 2.70, 3.00, 3.20, 3.44, 3.64, 3.81),
}
"""Of log levels: members to z at each chance, rising."""

NOISE_Z: dict[int, tuple[float, ...]] = {
    2: (1.57, 1.91, 2.08, 2.24, 2.41, 2.52, 2.60, 2.71, 2.79),
    3: (1.49, 1.80, 1.98, 2.13, 2.30, 2.40, 2.53, 2.66, 2.76),
    5: (1.47, 1.78, 1.97, 2.13, 2.31, 2.42, 2.54, 2.75, 2.81),
    10: (1.46, 1.80, 1.98, 2.14, 2.35, 2.46, 2.67, 2.79, 2.87),
    30: (1.50, 1.84, 2.04, 2.21, 2.44, 2.58, 2.70, 2.79, 2.92),
}
"""Of the size of the noise itself."""

RARITY_CHANCES: tuple[float, ...] = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Chances of a healthy run, rising."""

RARITY: tuple[float, ...] = (0.00392, 0.0124, 0.023, 0.0484, 0.119, 0.25, 0.533, 0.819, 1.44, 2.25, 2.5)
"""Of :func:`runtriage.analysis.chance.rarity`: the value that a healthy run of a cohort falls short of, by chance."""

"""How large departures get in healthy runs: simulated by ``tests/statistical/null_model.py``, not chosen.

For each number of members: the z that three bins in a row pass, in one role and at any place, with the chance given by
:data:`CHANCES`. The members are trusted, the run is not among them.
"""

from __future__ import annotations

CHANCES: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Chances of a healthy run, falling."""

LEVEL_Z: dict[int, tuple[float, ...]] = {
    2: (2.18, 2.77, 3.07, 3.33, 3.64, 3.86, 4.06, 4.28, 4.41),
    3: (1.88, 2.42, 2.73, 2.99, 3.29, 3.49, 3.67, 3.88, 4.04),
    5: (1.80, 2.30, 2.59, 2.84, 3.13, 3.32, 3.53, 3.80, 3.98),
    10: (1.76, 2.24, 2.52, 2.76, 3.05, 3.25, 3.43, 3.69, 3.85),
    30: (1.76, 2.24, 2.51, 2.74, 3.01, 3.23, 3.42, 3.63, 3.79),
}
"""Of log levels: members to z at each chance, rising."""

NOISE_Z: dict[int, tuple[float, ...]] = {
    2: (1.58, 1.90, 2.07, 2.23, 2.40, 2.53, 2.63, 2.77, 2.81),
    3: (1.49, 1.80, 1.98, 2.13, 2.30, 2.41, 2.53, 2.67, 2.77),
    5: (1.48, 1.78, 1.96, 2.12, 2.31, 2.42, 2.54, 2.71, 2.80),
    10: (1.48, 1.81, 2.00, 2.15, 2.35, 2.46, 2.60, 2.75, 2.88),
    30: (1.51, 1.84, 2.05, 2.22, 2.44, 2.58, 2.74, 2.91, 3.03),
}
"""Of the size of the noise itself."""

RARITY_CHANCES: tuple[float, ...] = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Chances of a healthy run, rising."""

RARITY: tuple[float, ...] = (0.00534, 0.0125, 0.0257, 0.0504, 0.119, 0.236, 0.491, 0.783, 1.4, 2.19, 2.5)
"""Of :func:`runtriage.analysis.chance.rarity`: the value that a healthy run of a cohort falls short of, by chance."""

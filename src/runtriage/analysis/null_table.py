"""How large level departures get in healthy runs: made by :mod:`runtriage.analysis.calibrate`, not by hand.

For each number of members: the z that three bins in a row pass, in any compared role and at any place, with the chance given by
:data:`CHANCES`.
"""

from __future__ import annotations

CHANCES: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
"""Chances of a healthy run, falling."""

LEVEL_Z: dict[int, tuple[float, ...]] = {
    2: (2.0, 2.6, 3.0, 3.3, 3.8, 4.1, 4.4),
    3: (2.0, 2.6, 3.0, 3.3, 3.8, 4.1, 4.4),
    5: (2.0, 2.6, 3.0, 3.3, 3.8, 4.1, 4.4),
    10: (2.0, 2.6, 3.0, 3.3, 3.8, 4.1, 4.4),
    30: (2.0, 2.6, 3.0, 3.3, 3.8, 4.1, 4.4),
}
"""Members to z at each chance, rising."""

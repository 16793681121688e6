"""Exact steps and phases of schedules."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from runtriage.analysis.schedule import phases, schedule_jumps

T = np.arange(2000.0)
WARM = np.minimum(1, (T + 1) / 100)
COSINE = 0.5 * (1 + np.cos(np.pi * T / 2000))


@pytest.mark.parametrize(
    ("lr", "expected"),
    [
        (np.full(2000, 3e-4), []),
        (WARM * COSINE, []),
        (WARM * np.clip((2000 - T) / 400, 0, 1), []),
        (np.minimum(WARM, np.sqrt(100 / (T + 1))), []),
        (1 - T / 2000, []),
        (np.select([T < 1000, T < 1500], [1.0, 0.1], 0.01), [1000, 1500]),
        (np.where(T < 900, COSINE, COSINE / 2), [900]),
        (np.where(T < 1000, WARM * COSINE, COSINE * np.minimum(1, (T - 999) / 100)), [1000]),
    ],
    ids=["constant", "cosine", "wsd", "inverse-sqrt", "linear", "drops", "halved", "re-warm-up"],
)
def test_schedule_jumps_are_exact(lr: NDArray[np.float64], expected: list[int]) -> None:
    """Steps are found to the point; ramps and bends are none."""
    assert schedule_jumps(T, lr).tolist() == expected


@pytest.mark.parametrize(
    ("lr", "expected"),
    [
        (np.full(2000, 3e-4), ["main"]),
        (WARM * COSINE, ["warmup", "main", "decay"]),
        (np.zeros(2000), []),
        (T * np.nan, []),
    ],
    ids=["constant", "cosine", "zero", "missing"],
)
def test_phases_are_named_in_order(lr: NDArray[np.float64], expected: list[str]) -> None:
    """Only the phases that occur."""
    assert [phase.name for phase in phases(T, lr)] == expected


def test_phases_tile_the_run() -> None:
    """Half-open and adjacent, from the first step to one past the last."""
    spans = phases(T, WARM * COSINE)
    ends = [spans[0].start_step, *(phase.end_step for phase in spans)]
    assert ends == [0, *(phase.start_step for phase in spans[1:]), 2000]

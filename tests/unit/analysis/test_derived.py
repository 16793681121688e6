"""Quantities made of several series on the same bins."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.derived import MOVE, derive
from runtriage.model.history import RunInfo
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import Role
from tests.drawn_cohort import ALARMS, Array, cohort, first

RUN = PreparedRun(info=RunInfo(id="a", source="files:x"), by_role={})


def moves(level: Array) -> Array:
    """Return how the level of the loss moves, per bin."""
    return derive(RUN, np.arange(level.size + 1.0), {Role.LOSS: level})[MOVE]


@pytest.mark.parametrize("at", [10, 37, 60])
def test_three_places_see_a_step_whole(at: int) -> None:
    """So many in a row must pass the limit; beside them the windows hold a part of it, and far off nothing."""
    move = moves(np.where(np.arange(80) < at, 1.0, 1.5))
    assert np.flatnonzero(move > 0.499).tolist() == [at - 1, at, at + 1]
    assert not np.nan_to_num(move[: at - 7]).any()
    assert not np.nan_to_num(move[at + 8 :]).any()


def test_move_is_the_mean_behind_less_the_mean_before() -> None:
    """The kernel against a naive loop, with bins missing."""
    rng = np.random.default_rng(3)
    level = rng.standard_normal(40)
    level[[0, 7, 21, 22]] = np.nan
    move = moves(level)
    for i in range(7, 33):
        if np.isfinite(level[i]):
            assert move[i] == pytest.approx(np.nanmean(level[i + 1 : i + 7]) - np.nanmean(level[i - 7 : i - 1]))
        else:
            assert np.isnan(move[i])


@pytest.mark.parametrize("seed", range(1, 9))
def test_step_below_the_spread_of_levels_is_seen(seed: int) -> None:
    """Siblings that differ by a tenth for good agree in how they move: a step of a tenth alarms, none does not."""
    for factor, seen in ((1.0, False), (1.1, True)):
        runs = cohort(6, seed=seed, noise=0.01)
        for run, level in zip(runs, (0.0, 0.1, -0.1, 0.05, -0.05, 0.02), strict=True):
            run["loss"] *= np.exp(level)
        runs[0]["loss"][600:] *= factor
        assert (first(runs).verdict in ALARMS) == seen

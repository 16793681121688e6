"""Loss and grad norm that depart together, each by too little to be told alone; and where slow changes begin."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.chance import lasting
from runtriage.model.vocab import FindingKind
from tests.drawn_cohort import Curves, alarms, cohort, first, near, steps, the

ROWS, AT = 2000, 800


def apart(seed: int) -> list[Curves]:
    """Return six falling runs whose levels of loss and norm lie some percent apart, each for itself."""
    runs, rng = cohort(6, count=ROWS, seed=seed), np.random.default_rng(seed)
    for run in runs:
        run["loss"] *= np.exp(0.05 * rng.standard_normal() - 0.5 * steps(ROWS) / ROWS)
        run["grad_norm"] *= np.exp(0.1 * rng.standard_normal())
    return runs


def since(at: int = AT) -> np.ndarray:
    """Return 0 up to a step and from there on a line to 1 at the end."""
    return np.clip((steps(ROWS) - at) / (ROWS - at), 0.0, 1.0)


def spoiled(seed: int, loss: float, norm: float) -> list[Curves]:
    """Let the first run fall behind by ``loss``, and its norm move by ``norm``, in log units at the end."""
    runs = apart(seed)
    runs[0]["loss"] *= np.exp(loss * since())
    runs[0]["grad_norm"] *= np.exp(norm * since())
    return runs


SEEDS = range(2, 7)
BEHIND, LOWER = 0.06, -0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_and_norm_that_depart_together_are_told(seed: int) -> None:
    """A loss that falls behind, with a norm that sinks below its siblings': a run that stands still."""
    report = first(spoiled(seed, BEHIND, LOWER))
    assert alarms(report) == [FindingKind.PLATEAU]
    assert any("grad norm departs" in seen for seen in report.findings[0].evidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("loss", "norm"), [(BEHIND, 0.0), (0.0, LOWER)])
def test_either_alone_is_not(seed: int, loss: float, norm: float) -> None:
    """The same loss with a norm as usual, and the same norm with a loss as usual, are within what runs differ by."""
    assert not alarms(first(spoiled(seed, loss, norm)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rows", [20, 60])
def test_norm_that_vanishes_is_placed_where_it_begins_to(seed: int, rows: int) -> None:
    """An exponential decay, by a factor e in some rows, in a run whose norm was always a third lower."""
    runs = apart(seed)
    runs[0]["grad_norm"] *= 0.65 * np.exp(-np.minimum(np.maximum(steps(ROWS) - AT, 0.0) / rows, 15.0))
    assert near(the(first(runs), FindingKind.VANISHING_GRADIENT), AT, 25)


@pytest.mark.parametrize("power", [1.0, 1.25, 1.5, 2.0])
def test_slow_rises_are_placed_where_they_begin(power: float) -> None:
    """Straight ones as well as bent ones, of runs that fall a little, on average to a twelfth of the run."""
    starts = []
    for seed in range(8):
        runs = apart(seed)
        for run in runs:
            run["loss"] *= np.exp(0.4 * steps(ROWS) / ROWS)
        runs[0]["loss"] *= 1.0 + 0.6 * since() ** power
        starts.append(the(first(runs), FindingKind.DIVERGENCE).start_step)
    assert abs(np.mean(starts) - AT) < ROWS / 12


def test_lasting_is_the_largest_of_three_in_a_row() -> None:
    """By either side, row by row, as a plain loop finds it; what is missing is zero."""
    z = np.random.default_rng(5).normal(size=(4, 30))
    z[1, 7:9], z[2] = np.nan, -3.0
    threes = [[np.nan_to_num(row)[i : i + 3] for i in range(28)] for row in z]
    plain = [max(max(min(three), -max(three)) for three in row) for row in threes]
    np.testing.assert_allclose(lasting(z), plain)
    assert lasting(z[:, :2]).tolist() == [0.0] * 4

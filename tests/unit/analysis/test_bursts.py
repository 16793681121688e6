"""Many bursts of the grad norm are told, few or shared ones are not; the counting agrees with the textbook."""

from __future__ import annotations

import math

import numpy as np
import pytest

from runtriage.analysis.detectors.bursts import rarest_count, summit_rows
from runtriage.analysis.tails import Tail
from runtriage.model.vocab import FindingKind
from tests.drawn_cohort import ALARMS, Curves, cohort, first, near, the

PLACES = (400, 470, 555, 610, 720, 805)
DIRTY = (130, 300, 520, 850)
"""Where single siblings have a burst of their own: the cohort's tail is heavy."""


def _dirty(runs: list[Curves]) -> list[Curves]:
    for i, place in enumerate(DIRTY):
        runs[1 + i % (len(runs) - 1)]["grad_norm"][place] *= 25.0
    return runs


def test_bursts_are_found_in_a_cohort_with_heavy_tails() -> None:
    """Six bursts no larger than the siblings' single ones are told from the first on."""
    runs = _dirty(cohort())
    for place in PLACES:
        runs[0]["grad_norm"][place : place + 2] *= 25.0
    report = first(runs)
    assert report.verdict in ALARMS
    assert near(the(report, FindingKind.GRAD_SPIKE), PLACES[0], 2)
    assert any("bursts" in line for line in the(report, FindingKind.GRAD_SPIKE).evidence)


def test_one_burst_in_a_cohort_with_heavy_tails_is_healthy() -> None:
    """One more bad batch of the size that siblings have, too, is no alarm."""
    runs = _dirty(cohort())
    runs[0]["grad_norm"][PLACES[0]] *= 25.0
    assert first(runs).verdict not in ALARMS


def test_bursts_at_which_all_siblings_burst_are_healthy() -> None:
    """Six hard batches that every run sees at the same steps say nothing of one run."""
    runs = cohort()
    for run in runs:
        for place in PLACES:
            run["grad_norm"][place : place + 2] *= 25.0
    assert first(runs).verdict not in ALARMS


def test_bursts_that_the_loss_shares_are_bad_batches() -> None:
    """Where the loss of the same row is raised as well, a little, the batch was bad and nothing is hidden."""
    runs = _dirty(cohort())
    for place in PLACES:
        runs[0]["grad_norm"][place] *= 25.0
    assert first(runs).verdict in ALARMS
    for place in PLACES:
        runs[0]["loss"][place] *= 1.06
    assert first(runs).verdict not in ALARMS


def _at_least(count: int, rank: int, runs: int, share: float) -> float:
    """Chance of at least ``count`` before the ``rank``-th of the others, summed over every smaller number."""
    ours = share / (runs + share)
    return 1.0 - sum(math.comb(i + rank - 1, i) * (1 - ours) ** rank * ours**i for i in range(count))


@pytest.mark.parametrize("seed", range(20))
def test_counting_agrees_with_the_sum_of_its_terms(seed: int) -> None:
    """The rarest count and its chance are those of a loop over the counts."""
    rng = np.random.default_rng(seed)
    sizes = np.sort(rng.pareto(2.0, int(rng.integers(0, 14))) + 1.0)[::-1] * 4.0
    runs, rank, index = int(rng.integers(2, 30)), int(rng.integers(1, 9)), float(rng.uniform(2, 3))
    tail = Tail(anchor=float(rng.uniform(2, 8)), rate=rank / runs, index=3.0, runs=runs)
    tried = [
        (6 * _at_least(k, rank, runs, (sizes[k - 1] / tail.anchor) ** -index), k)
        for k in range(3, 9) if k <= sizes.size and sizes[k - 1] > tail.anchor
    ]
    p, count = min(tried, default=(1.0, 0))
    found = rarest_count(sizes, tail, index)
    assert found[1] == pytest.approx(min(1.0, p), rel=1e-6, abs=1e-12)
    assert found[0] == count


@pytest.mark.parametrize("runs", [2, 4, 10])
def test_number_beyond_an_order_statistic_of_others_is_as_said(runs: int) -> None:
    """Five thousand cohorts of heavy-tailed runs: how often the last holds three beyond the others' third largest."""
    rng = np.random.default_rng(runs)
    drawn = rng.pareto(2.0, (5000, runs + 1, 40))
    third = np.sort(drawn[:, :runs].reshape(5000, -1), axis=1)[:, -3]
    share = float(np.mean((drawn[:, runs] > third[:, None]).sum(axis=1) >= 3))
    assert share == pytest.approx(_at_least(3, 3, runs, 1.0), rel=0.2, abs=0.002)


def test_neighbouring_bins_are_one_excursion() -> None:
    """A burst that reaches over a bin's edge counts once, at its highest row."""
    z = np.array([0, 0, 9, 8, 7, 0, 0, 0, 5, 0, 0, 6.0])
    assert summit_rows(z, np.array([0, 3, 6, 9, 12])) == [2, 11]

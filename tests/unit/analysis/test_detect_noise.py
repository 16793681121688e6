"""Swings, short excursions and small steps: what shows in the size of the noise, and its negative twins."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.model.vocab import FindingKind, Outcome
from tests.drawn_cohort import ALARMS, Curves, alarms, cohort, first, near, reports, steps, the

AT = 600


def test_oscillation_is_found() -> None:
    """Swings with a period, several times the noise, are an oscillation."""
    runs = cohort()
    runs[0]["loss"][AT:] *= 1 + 0.25 * np.sin(2 * np.pi * steps()[AT:] / 10)
    assert near(the(first(runs), FindingKind.OSCILLATION), AT, 60)


def test_oscillation_of_a_run_that_was_always_better_is_found() -> None:
    """A level far below the siblings' is no progress: what counts is how it moves while it swings."""
    runs = cohort(8)
    for run, level in zip(runs, np.linspace(0.8, 1.2, 8), strict=True):
        run["loss"] *= level
    runs[0]["loss"][AT:] *= 1 + 0.25 * np.sin(2 * np.pi * steps()[AT:] / 10)
    assert near(the(first(runs), FindingKind.OSCILLATION), AT, 60)


def apart(seed: int, noise: float) -> list[Curves]:
    """Return six runs of 2,000 steps whose levels lie up to a third apart, which hides small departures."""
    runs = cohort(6, count=2000, seed=seed, noise=noise)
    for run, level in zip(runs, np.linspace(0.85, 1.15, 6), strict=True):
        run["loss"] *= level
    return runs


@pytest.mark.parametrize("seed", [3, 4])
def test_excursion_that_the_siblings_spikes_hide_is_found_by_its_noise(seed: int) -> None:
    """Three of five siblings had such an excursion, elsewhere: its size proves little, the noise around it does."""
    runs = apart(seed, 0.02)
    for run, at in zip(runs[:4], (1000, 400, 700, 1300), strict=True):
        run["loss"][at:] *= 1 + 0.3 * np.exp(-(steps(2000)[at:] - at) / 60)
    finding = the(first(runs), FindingKind.LOSS_SPIKE)
    assert near(finding, 1000, 20)
    assert finding.outcome == Outcome.RECOVERED
    assert not any("0 time" in why for cause in finding.causes for why in cause.because)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_small_step_among_levels_apart_is_found_by_its_noise(seed: int) -> None:
    """A step of a twentieth, ten times the noise, drowns in levels a third apart, and stays."""
    runs = apart(seed, 0.005)
    runs[2]["loss"][1000:] *= 1.05
    assert near(the(reports(runs)[2], FindingKind.STEP_UP), 1000, 20)


def test_small_step_of_the_whole_cohort_is_healthy() -> None:
    """The noise of all siblings rises where all step."""
    runs = apart(4, 0.005)
    for run in runs:
        run["loss"][1000:] *= 1.05
    assert not ALARMS & {r.verdict for r in reports(runs)}


def test_noise_that_is_larger_all_along_is_no_spike() -> None:
    """Irregular noise four times the siblings' from start to end has no place, and no row of it is an excursion."""
    runs = cohort(6, count=2000)
    rng = np.random.default_rng(8)
    runs[0]["loss"] *= np.exp(0.1 * rng.standard_normal(2000))
    assert not {FindingKind.LOSS_SPIKE, FindingKind.STEP_UP} & {f.kind for f in first(runs).findings}


def test_small_batch_noise_is_no_oscillation() -> None:
    """Irregular noise three times the siblings', on a falling trend, is what small batches give."""
    runs = cohort(1, noise=0.15)
    assert not alarms(first(runs))

"""Forms of the loss: each is found where it is, and its negative twin is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.model.vocab import Explanation, FindingKind, Level, Outcome
from tests.drawn_cohort import ALARMS, Curves, alarms, cohort, cosine, first, near, reports, steps, the

AT = 600
SIZES = (6, 1)


@pytest.mark.parametrize("size", SIZES)
def test_loss_that_becomes_nan_is_broken_from_there(size: int) -> None:
    """A loss that ends in NaN is found at its first bad row, with and without siblings."""
    runs = cohort(size)
    runs[0]["loss"][AT:] = np.nan
    finding = the(first(runs), FindingKind.NON_FINITE)
    assert (finding.start_step, finding.outcome) == (AT, Outcome.DIVERGED)


def test_skipped_steps_of_mixed_precision_are_no_alarm() -> None:
    """Norms that overflow now and then beside a loss scale, with a finite loss, are by design."""
    runs = cohort(6, loss_scale=lambda _, n: np.full(n, 65536.0))
    for run in runs:
        run["grad_norm"][[100, 101, 350, 351, 352, 700]] = np.inf
    assert not ALARMS & {r.verdict for r in reports(runs)}


def _spike(run: Curves, at: int) -> None:
    run["loss"][at : at + 5] *= 1 + 1.5 * np.exp(-np.arange(5) / 1.5)
    run["grad_norm"][at : at + 5] *= 1 + 20 * np.exp(-np.arange(5) / 1.5)


def test_spike_is_found_at_its_row() -> None:
    """A loss spike that recovers is suspicious and is placed to the row."""
    runs = cohort()
    _spike(runs[0], AT)
    finding = the(first(runs), FindingKind.LOSS_SPIKE)
    assert near(finding, AT, 1)
    assert finding.outcome == Outcome.RECOVERED
    assert "it happens 1 time(s) in the run" in {why for cause in finding.causes for why in cause.because}


def test_spike_that_all_siblings_share_is_explained() -> None:
    """The same batch at the same step in every run is told, explained and no alarm."""
    runs = cohort()
    for run in runs:
        _spike(run, AT)
    report = first(runs)
    assert report.verdict == Level.HEALTHY
    assert Explanation.SHARED_BATCH in {f.explained_by for f in report.findings}


def test_lone_row_of_heavy_noise_is_watched_not_alarmed() -> None:
    """One row of twice the loss, with a calm grad norm and nothing around it, is worth a look and no alarm."""
    runs = cohort(6, seed=3)
    runs[0]["loss"][AT] *= 2.0
    report = first(runs)
    assert report.verdict == Level.WATCH
    assert the(report, FindingKind.LOSS_SPIKE).start_step == AT


@pytest.mark.parametrize(
    ("rows", "norm_at", "alarm"), [(4, AT, True), (1, AT, False), (4, AT + 200, False), (4, None, False)],
    ids=["both", "a_batch", "apart", "loss"],
)
@pytest.mark.parametrize("seed", [2, 3])
def test_rows_that_loss_and_norm_share_are_an_alarm(seed: int, rows: int, norm_at: int | None, *, alarm: bool) -> None:
    """What either tail alone may hold by chance is none where both leave for some rows; a heavy batch is one row."""
    runs, size = cohort(6, seed=seed, noise=0.01), np.linspace(1.0, 0.3, rows)
    runs[0]["loss"][AT : AT + rows] *= 1.2**size
    if norm_at is not None:
        runs[0]["grad_norm"][norm_at : norm_at + rows] *= 4.0**size
    assert (first(runs).verdict in ALARMS) == alarm


@pytest.mark.parametrize("size", SIZES)
def test_divergence_is_broken(size: int) -> None:
    """A loss that runs away and stays away is found near its onset, with and without siblings."""
    runs = cohort(size)
    behind = steps()[AT:] - AT
    runs[0]["loss"][AT:] += 6.0 * (1 - np.exp(-behind / 60))
    runs[0]["grad_norm"][AT:] *= 1 + 20 * (1 - np.exp(-behind / 60))
    report = first(runs)
    assert report.verdict in ALARMS
    assert near(report.findings[0], AT, 60)


@pytest.mark.parametrize("size", SIZES)
def test_step_up_is_found(size: int) -> None:
    """A level that jumps by a tenth and stays is found at its row, with and without siblings."""
    runs = cohort(size)
    runs[0]["loss"][AT:] *= 1.10
    finding = the(first(runs), FindingKind.STEP_UP)
    assert near(finding, AT, 10)


@pytest.mark.parametrize("size", SIZES)
def test_slow_cosine_is_no_step(size: int) -> None:
    """A loss that follows a slow cosine, half a turn over the run, has no step."""
    runs = cohort(size)
    for run in runs:
        run["loss"] *= 1.0 + 0.25 * np.cos(np.pi * steps() / steps().size)
    assert not alarms(first(runs))


@pytest.mark.parametrize("size", SIZES)
def test_drop_at_a_planned_decay_is_no_finding(size: int) -> None:
    """StepLR: the loss falls at once when the lr falls to a tenth."""
    runs = cohort(size)
    for run in runs:
        run["lr"] = np.where(steps() < AT, 3e-4, 3e-5)
        run["loss"][AT:] *= 0.85
    assert not alarms(first(runs))


def test_announced_data_switch_is_explained() -> None:
    """A step of the loss at a logged change of the data source is shown and explained."""
    runs = cohort(6, data_source=lambda _, n: np.zeros(n))
    runs[0]["data_source"][AT:] = 1.0
    runs[0]["loss"][AT:] *= 1.12
    report = first(runs)
    assert report.verdict not in ALARMS
    assert Explanation.DATA_SWITCH in {f.explained_by for f in report.findings}


def test_data_switch_of_the_whole_cohort_is_healthy() -> None:
    """All runs change their data at one step: no run differs from the others."""
    runs = cohort()
    for run in runs:
        run["loss"][AT:] *= 1.3
    assert {r.verdict for r in reports(runs)} == {Level.HEALTHY}


@pytest.mark.parametrize("size", SIZES)
def test_epoch_sawtooth_is_neither_step_nor_oscillation(size: int) -> None:
    """A loss that falls within each epoch and jumps at its boundary repeats itself: explained or silent."""
    runs = cohort(size, epoch=lambda _, n: np.floor(np.arange(n) / 125.0))
    for run in runs:
        run["loss"] *= 1.0 + 0.2 * (0.5 - (steps() % 125) / 125)
    assert not alarms(first(runs))


def test_plateau_against_a_cohort_that_goes_on() -> None:
    """A loss that stands still from a third of the run on is found."""
    runs = cohort()
    for run in runs:
        run["loss"] *= np.exp(-0.6 * steps() / steps().size)
    stand = runs[0]["loss"][280:320].mean()
    runs[0]["loss"][300:] = stand * np.exp(0.02 * np.random.default_rng(5).standard_normal(700))
    report = first(runs)
    assert report.verdict in ALARMS
    assert report.findings[0].kind in {FindingKind.PLATEAU, FindingKind.BASELINE_DRIFT}


def test_loss_that_saturates_in_every_run_is_healthy() -> None:
    """A flat end that all siblings have is where training ends."""
    assert {r.verdict for r in reports(cohort(5, seed=11))} == {Level.HEALTHY}


def test_warmup_rise_is_found() -> None:
    """A loss that climbs over its minimum while the lr warms up, where the cohort's falls, is found."""
    runs = cohort(6, count=2000)
    for run in runs:
        run["lr"] = 3e-4 * np.minimum(1.0, (steps(2000) + 1) / 400)
    runs[0]["loss"] *= 1 + 0.8 * np.exp(-(((steps(2000) - 300) / 90) ** 2))
    report = first(runs)
    assert report.verdict in ALARMS
    assert [f.kind for f in report.findings] == [FindingKind.WARMUP_RISE]


def test_warmup_bump_of_all_siblings_is_healthy() -> None:
    """The same bump in every run is this config's way to warm up."""
    runs = cohort(6, count=2000)
    for run in runs:
        run["lr"] = 3e-4 * np.minimum(1.0, (steps(2000) + 1) / 400)
        run["loss"] *= 1 + 0.8 * np.exp(-(((steps(2000) - 300) / 90) ** 2))
    assert not ALARMS & {r.verdict for r in reports(runs)}


def _evaluated(_: np.random.Generator, count: int) -> np.ndarray:
    return np.where(steps(count) % 20 == 0, 1.0, np.nan)


def test_overfit_is_found() -> None:
    """Validation climbs while training sinks below the cohort: told once, as overfitting."""
    runs = cohort(6, val_loss=_evaluated)
    for run in runs:
        run["val_loss"] *= run["loss"] * 1.02
    away = np.maximum(0.0, (steps() - 400) / 600)
    runs[0]["loss"] *= np.exp(-0.35 * away)
    runs[0]["val_loss"] *= np.exp(0.35 * away)
    report = first(runs)
    assert report.verdict in ALARMS
    assert report.findings[0].kind == FindingKind.OVERFIT


def test_exchanged_data_begins_at_the_first_evaluation_that_shows_it() -> None:
    """Validation leaves at one evaluation and is slightly further at the next: the data changed before the first."""
    runs = cohort(6, val_loss=_evaluated)
    for run in runs:
        run["val_loss"] *= run["loss"] * 1.02
    runs[0]["loss"][AT + 10 :] *= 0.8
    runs[0]["val_loss"][AT + 10 :] *= 1.3
    runs[0]["val_loss"][AT + 30 :] *= 1.04
    finding = the(first(runs), FindingKind.STEP_DOWN)
    assert AT < finding.start_step < AT + 20


def test_validation_gap_of_the_whole_cohort_is_healthy() -> None:
    """All siblings overfit alike: that is the config, not the run."""
    runs = cohort(6, val_loss=_evaluated)
    for run in runs:
        run["val_loss"] *= run["loss"] * np.exp(0.5 * np.maximum(0.0, (steps() - 400) / 600))
    assert not ALARMS & {r.verdict for r in reports(runs)}


def test_run_without_fault_follows_the_cosine() -> None:
    """The drawn lr itself is no finding."""
    runs = cohort(1)
    assert runs[0]["lr"].tolist() == cosine().tolist()
    assert first(runs).verdict == Level.HEALTHY


@pytest.mark.parametrize("seed", [2, 3])
def test_sharp_edge_of_a_step_is_no_spike(seed: int) -> None:
    """A loss that is a quarter higher from one quiet row on, and no higher than that, stepped up."""
    runs = cohort(seed=seed, noise=0.004)
    runs[0]["loss"][AT:] *= 1.25
    finding = the(first(runs), FindingKind.STEP_UP)
    assert near(finding, AT)
    assert FindingKind.LOSS_SPIKE not in {f.kind for f in first(runs).findings}


def bump(n: int, height: float, tau: float) -> np.ndarray:
    """Return a factor that rises over ten rows at AT and falls back with time constant ``tau``."""
    x = np.arange(n - AT, dtype=float)
    return np.concatenate([np.ones(AT), 1 + height * np.minimum(1.0, (x + 1) / 10) * np.exp(-x / tau)])


LEVELS = (-0.05, 0.05, -0.05, 0.03, -0.03, 0.0)


def spread(seed: int) -> list[Curves]:
    """Return siblings whose losses differ by up to a tenth, the first among the lowest."""
    runs = cohort(seed=seed)
    for run, level in zip(runs, LEVELS, strict=True):
        run["loss"] *= np.exp(level)
    return runs


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_short_departure_that_was_made_good_is_a_spike(seed: int) -> None:
    """A loss that leaves its siblings for a twentieth of the run is no step, whatever its level before and after."""
    runs = spread(seed)
    runs[0]["loss"] *= bump(runs[0]["loss"].size, 0.5, 40.0)
    finding = the(first(runs), FindingKind.LOSS_SPIKE)
    assert finding.outcome == Outcome.RECOVERED
    assert near(finding, AT, 5)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_departure_that_stays_is_no_spike(seed: int) -> None:
    """The same rise without the way back."""
    runs = spread(seed)
    runs[0]["loss"] *= bump(runs[0]["loss"].size, 0.25, 1e6)
    assert FindingKind.LOSS_SPIKE not in {f.kind for f in first(runs).findings}

"""Cohorts as they are: broken members, few members, other lengths and cadences, the same data in the same order."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage import pipeline
from runtriage.model.history import RunHistory, Track
from runtriage.model.report import Report
from runtriage.model.vocab import BaselineKind, FindingKind, Level
from tests.drawn_cohort import ALARMS, STEPS, cohort, first, histories, near, reports, steps

AT = 600


def _rejudged(runs: list[RunHistory]) -> list[Report]:
    return [t.report for t in pipeline.triage_cohort(runs)]


def _cut(run: RunHistory, keep: slice) -> RunHistory:
    return RunHistory(
        info=run.info, tracks={n: Track(step=t.step[keep], value=t.value[keep]) for n, t in run.tracks.items()}
    )


def test_two_broken_members_of_five_do_not_mask_each_other() -> None:
    """Both runs that leave the other three are found, and the three stay healthy."""
    runs = cohort(5)
    for run in runs[:2]:
        run["loss"][AT:] *= 1.15
    judged = reports(runs)
    assert [r.verdict in ALARMS for r in judged] == [True, True, False, False, False]


def test_diverged_member_does_not_widen_the_band() -> None:
    """Beside a run that went four times too high, one that is a seventh too high is found, and found in place."""
    runs = cohort(6)
    runs[0]["loss"][AT:] *= 1.15
    runs[1]["loss"][300:] *= 4.0
    judged = reports(runs)
    assert judged[0].verdict in ALARMS
    assert near(judged[0].findings[0], AT, 20)
    assert judged[1].verdict in ALARMS


def test_excluded_member_is_named() -> None:
    """A run that is broken from its first step is named as left out of its siblings' baseline."""
    runs = cohort(5)
    runs[4]["loss"][:] *= 3.0
    assert "r4" in first(runs).baseline.excluded


@pytest.mark.parametrize("size", [1, 2])
def test_cohorts_of_one_and_two_are_judged_by_their_own_past(size: int) -> None:
    """One other run has no spread: the basis of the judgement is the run itself, and says so."""
    judged = reports(cohort(size))
    assert {r.baseline.kind for r in judged} == {BaselineKind.SELF}
    assert {r.verdict for r in judged} == {Level.HEALTHY}


def test_cohort_of_three_is_a_cohort() -> None:
    """Two others are the least that have a spread."""
    runs = cohort(3)
    runs[0]["loss"][AT:] *= 1.5
    judged = reports(runs)
    assert judged[0].baseline.kind == BaselineKind.COHORT
    assert [r.verdict in ALARMS for r in judged] == [True, False, False]


def test_pair_with_one_broken_run_blames_the_broken_one() -> None:
    """Of two runs the one whose loss becomes NaN is broken and the other healthy."""
    runs = cohort(2)
    runs[0]["loss"][AT:] = np.nan
    assert [r.verdict for r in reports(runs)] == [Level.BROKEN, Level.HEALTHY]


def test_runs_of_other_length_are_healthy() -> None:
    """A run that was stopped at half and one that went on twice as long are compared where they overlap."""
    runs = histories(cohort(5, count=2 * STEPS))
    mixed = [_cut(runs[0], slice(0, STEPS // 2)), _cut(runs[1], slice(0, STEPS)), *runs[2:]]
    assert not ALARMS & {r.verdict for r in _rejudged(mixed)}


def test_runs_of_other_cadence_are_healthy() -> None:
    """A run that logs every tenth step is no noisier than one that logs each."""
    runs = histories(cohort(5, count=2 * STEPS))
    mixed = [_cut(runs[0], slice(None, None, 10)), _cut(runs[1], slice(None, None, 3)), *runs[2:]]
    assert not ALARMS & {r.verdict for r in _rejudged(mixed)}


def test_fault_is_found_across_cadences() -> None:
    """A step up in a run that logs every fifth step is found against siblings that log each."""
    curves = cohort(6, count=2 * STEPS)
    curves[0]["loss"][1200:] *= 1.15
    runs = histories(curves)
    report = _rejudged([_cut(runs[0], slice(None, None, 5)), *runs[1:]])[0]
    assert report.verdict in ALARMS
    assert near(report.findings[0], 1200, 60)


def test_levels_that_differ_by_a_tenth_between_runs_are_healthy() -> None:
    """Where siblings lie apart by design, lying apart is normal."""
    runs = cohort(8, seed=5)
    for run, factor in zip(runs, np.exp(0.08 * np.random.default_rng(8).standard_normal(8)), strict=True):
        run["loss"] *= factor
    assert not ALARMS & {r.verdict for r in reports(runs)}


def _same_order(size: int, seed: int) -> list[dict[str, np.ndarray]]:
    """Draw runs that saw the same batches: equal noise, a twentieth of it their own."""
    batches = np.exp(0.05 * np.random.default_rng(seed).standard_normal(STEPS))
    runs = cohort(size, seed=seed, noise=0.0025)
    for run in runs:
        run["loss"] *= batches
    return runs


def test_equal_data_order_is_noticed() -> None:
    """Residuals that agree row by row are paired, and the runs healthy."""
    judged = reports(_same_order(5, 3))
    assert {r.baseline.paired for r in judged} == {True}
    assert {r.verdict for r in judged} == {Level.HEALTHY}


def test_other_data_order_is_not_paired() -> None:
    """Residuals without correlation are not subtracted."""
    assert {r.baseline.paired for r in reports(cohort(5))} == {False}


def test_pairing_finds_a_spike_below_the_noise_of_the_batches() -> None:
    """An excursion of the size of the batch noise is found once the batches are subtracted."""
    runs = _same_order(6, 4)
    runs[0]["loss"][AT : AT + 4] *= [1.3, 1.25, 1.2, 1.12]
    runs[0]["grad_norm"][AT : AT + 4] *= [6.0, 5.0, 3.0, 2.0]
    report = first(runs)
    assert report.baseline.paired
    assert {f.kind for f in report.findings} & {FindingKind.LOSS_SPIKE, FindingKind.GRAD_SPIKE}


def test_heavy_batch_of_an_equal_order_is_explained() -> None:
    """A hard batch that every run saw at the same step alarms nobody."""
    runs = _same_order(5, 6)
    for run in runs:
        run["loss"][AT] *= 2.0
        run["grad_norm"][AT] *= 15.0
    assert not ALARMS & {r.verdict for r in reports(runs)}


def test_finding_is_the_same_in_any_unit() -> None:
    """Losses in other units, for the whole cohort, are judged alike."""
    runs = cohort(6)
    runs[0]["loss"][AT:] *= 1.1
    plain = first(runs)
    for run in runs:
        run["loss"] *= 1000.0
    scaled = first(runs)
    assert [(f.kind, f.start_step) for f in scaled.findings] == [(f.kind, f.start_step) for f in plain.findings]


def test_duplicate_ids_are_each_judged() -> None:
    """Two runs of one id (two folders, one name) both get a report."""
    runs = histories(cohort(4))
    assert len(_rejudged([*runs, runs[0]])) == 5


def test_steps_of_the_drawn_cohort_are_those_of_the_report() -> None:
    """A span ends within the run."""
    runs = cohort(6)
    runs[0]["loss"][AT:] *= 1.1
    finding = first(runs).findings[0]
    assert 0 <= finding.start_step <= finding.peak_step <= steps()[-1]

"""The whole triage of bad data: a reason or a verdict, never an exception; learned baselines in use."""

from __future__ import annotations

import re

import numpy as np
import pytest

from runtriage import pipeline
from runtriage.codec_baselines import decode_baselines, encode_baselines
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.report import Report
from runtriage.model.vocab import BaselineKind, FindingKind, Lang, Level, RunState
from tests.drawn_cohort import ALARMS, cohort, histories, steps

NONE: list[float] = []


def _judge(value: list[float], step: list[int] | None = None) -> Report:
    at = np.arange(len(value)) if step is None else np.array(step, dtype=np.int64)
    info = RunInfo(source="bad:", id="bad", state=RunState.FINISHED, config={"width": 1})
    loss = Track(step=at.astype(np.int64), value=np.array(value, dtype=np.float64))
    return pipeline.triage_cohort([RunHistory(info=info, tracks={"loss": loss})])[0].report


def test_no_runs_give_no_verdicts() -> None:
    """An empty source is an empty answer."""
    assert pipeline.triage_cohort([]) == []


def test_run_without_metrics_is_withheld_with_its_reason() -> None:
    """Nothing logged: the reason says that the loss is missing."""
    run = RunHistory(info=RunInfo(source="bad:", id="bad"), tracks={})
    report = pipeline.triage_cohort([run])[0].report
    assert report.verdict == Level.WITHHELD
    assert "loss" in report.reason


@pytest.mark.parametrize("value", [NONE, [1.0], [1.0, 2.0]], ids=["empty", "one", "two"])
def test_too_few_rows_are_withheld(value: list[float]) -> None:
    """Less than three rows say nothing."""
    assert _judge(value).verdict == Level.WITHHELD


def test_constant_loss_is_judged_without_alarm() -> None:
    """A loss without any noise divides by nothing."""
    assert _judge([2.5] * 200).verdict not in ALARMS


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=["nan", "inf", "-inf"])
def test_loss_that_never_is_a_number_is_broken(value: float) -> None:
    """All rows not finite: broken from the first row on."""
    report = _judge([value] * 50)
    assert report.verdict == Level.BROKEN
    assert (report.findings[0].kind, report.findings[0].start_step) == (FindingKind.NON_FINITE, 0)


@pytest.mark.parametrize("size", [1e300, 1e-300, -1e300], ids=["huge", "tiny", "negative"])
def test_extreme_values_are_judged(size: float) -> None:
    """Squares would overflow; a verdict comes all the same."""
    falling = np.linspace(3.0, 2.0, 200) * size
    assert _judge(falling.tolist()).verdict in {Level.HEALTHY, Level.WATCH, Level.WITHHELD}


def test_steps_backwards_are_told_as_a_seam() -> None:
    """A log that goes back is evidence, not an error."""
    step = [*range(100), *range(60, 160)]
    report = _judge(np.linspace(4.0, 2.0, 200).tolist(), step)
    assert FindingKind.RESUME_DISCONTINUITY in {f.kind for f in report.findings}


def test_equal_steps_keep_the_last_value() -> None:
    """One step logged a hundred times is one row, which is too few."""
    assert _judge([2.0] * 100, [7] * 100).verdict == Level.WITHHELD


@pytest.mark.parametrize("first", [-1000, 2**62, 2**63 - 300], ids=["negative", "large", "last"])
def test_steps_at_the_limits_of_int64_are_judged(first: int) -> None:
    """Far steps change nothing about the curve."""
    step = [first + i for i in range(200)]
    assert _judge(np.linspace(4.0, 2.0, 200).tolist(), step).verdict == Level.HEALTHY


def test_metric_names_with_slashes_have_their_role() -> None:
    """``train/loss`` is the loss, under its own name in the report."""
    info = RunInfo(source="bad:", id="bad")
    loss = Track(step=np.arange(50), value=np.linspace(4, 2, 50))
    report = pipeline.triage_cohort([RunHistory(info=info, tracks={"train/loss": loss})])[0].report
    assert report.series == {"train/loss": "loss"}


def test_bad_run_is_withheld_and_the_others_go_on() -> None:
    """A run without a loss has no part in the judgement of its siblings."""
    runs = histories(cohort(4))
    bad = RunHistory(info=RunInfo(source="drawn:", id="bad", config=runs[0].info.config), tracks={})
    judged = [t.report.verdict for t in pipeline.triage_cohort([bad, *runs])]
    assert judged == [Level.WITHHELD, *[Level.HEALTHY] * 4]


def test_runs_are_grouped_by_their_config() -> None:
    """Runs of another width are no siblings."""
    runs = [*histories(cohort(3)), *histories(cohort(3, seed=2), {"width": 128})]
    assert {t.report.baseline.runs for t in pipeline.triage_cohort(runs)} == {2}


def test_run_without_a_config_is_judged_alone() -> None:
    """Nothing tells what it trains, so nothing is its sibling."""
    runs = [RunHistory(info=RunInfo(source="x:", id=r.info.id), tracks=r.tracks) for r in histories(cohort(4))]
    assert {t.report.baseline.kind for t in pipeline.triage_cohort(runs)} == {BaselineKind.SELF}


def test_learned_baselines_find_what_siblings_find() -> None:
    """A fault is found against learned members, after they went through their file."""
    learned = decode_baselines(encode_baselines(pipeline.learn(histories(cohort(6)), source="drawn:")))
    curves = cohort(2, seed=9)
    curves[0]["loss"][600:] *= 1.1
    sick, well = (t.report for t in pipeline.triage_cohort(histories(curves), baselines=learned))
    assert sick.verdict in ALARMS
    assert abs(sick.findings[0].start_step - 600) <= 10
    assert well.verdict == Level.HEALTHY


def test_learning_leaves_out_what_is_broken() -> None:
    """A member that never was a number is named among the excluded."""
    curves = cohort(6)
    curves[2]["loss"][:] = np.nan
    curves[2]["grad_norm"][:] = np.nan
    [baseline] = pipeline.learn(histories(curves)).cohorts.values()
    assert baseline.excluded == ("r2",)
    assert len(baseline.members) == 5


def test_fingerprint_that_was_not_learned_is_judged_alone() -> None:
    """Baselines of another config say nothing, and siblings in the source are not used in their stead."""
    learned = pipeline.learn(histories(cohort(4), {"width": 128}))
    judged = pipeline.triage_cohort(histories(cohort(4)), baselines=learned)
    assert {t.report.baseline.kind for t in judged} == {BaselineKind.SELF}


def test_one_run_makes_no_baseline() -> None:
    """One run has no spread."""
    assert not pipeline.learn(histories(cohort(1))).cohorts


def test_run_of_the_cohort_itself_is_judged_as_if_left_out() -> None:
    """A learned member that is judged again is not compared with itself."""
    runs = histories(cohort(5))
    judged = pipeline.triage_cohort(runs, baselines=pipeline.learn(runs))
    assert {t.report.baseline.runs for t in judged} == {4}


def test_inputs_are_not_changed() -> None:
    """Arrays of the histories are the same before and after."""
    runs = histories(cohort(3))
    before = [{k: (t.step.copy(), t.value.copy()) for k, t in r.tracks.items()} for r in runs]
    pipeline.triage_cohort(runs)
    for run, kept in zip(runs, before, strict=True):
        for name, (step, value) in kept.items():
            np.testing.assert_array_equal(run.tracks[name].step, step)
            np.testing.assert_array_equal(run.tracks[name].value, value)


def test_curves_for_the_eye_have_a_band_against_siblings() -> None:
    """Loss and grad norm come with the cohort's band, below and above the centre."""
    triage = pipeline.triage_cohort(histories(cohort(5)))[0]
    loss = next(c for c in triage.curves if c.role == "loss")
    assert loss.band_low is not None
    assert loss.band_high is not None
    assert (loss.band_low < loss.band_high).all()
    assert loss.step.size == steps().size


def test_stricter_budget_never_raises_a_verdict() -> None:
    """What is healthy at one in a hundred is healthy at one in a hundred thousand."""
    curves = cohort(5)
    curves[0]["loss"][600:] *= 1.03
    runs = histories(curves)
    strict = pipeline.triage_cohort(runs, params=pipeline.Params(false_alarm_budget=1e-5))
    loose = pipeline.triage_cohort(runs, params=pipeline.Params(false_alarm_budget=0.2))
    alarmed = [sum(t.report.verdict in ALARMS for t in judged) for judged in (strict, loose)]
    assert alarmed[0] <= alarmed[1]


def test_a_metric_with_a_better_name_and_few_rows_gives_way() -> None:
    """Of two learning rates the one logged every step is read, though ``lr`` is the plainer name."""
    at, rate = np.arange(100), np.linspace(1e-3, 1e-4, 100)
    tracks = {
        "loss": Track(step=at, value=np.linspace(3.0, 1.0, 100)), "lr-Adam": Track(step=at, value=rate),
        "lr": Track(step=at[:2], value=rate[:2]),
    }
    run = RunHistory(info=RunInfo(source="two:", id="two"), tracks=tracks)
    assert pipeline.triage_cohort([run])[0].report.series.get("lr-Adam") == "lr"


def test_a_language_changes_the_sentences_and_nothing_else() -> None:
    """Verdict, places, sizes and ids are the same in Chinese; every sentence is Chinese."""
    runs = cohort(7)
    runs[0]["loss"][600:] += 1.5
    runs[0]["grad_norm"][600:] *= 3.0
    english, chinese = (
        pipeline.triage_cohort(histories(runs), params=pipeline.Params(lang=lang))[0].report for lang in Lang
    )
    assert (chinese.verdict, chinese.p_false_alarm) == (english.verdict, english.p_false_alarm)
    assert chinese.verdict in ALARMS
    for one, other in zip(chinese.findings, english.findings, strict=True):
        assert (one.kind, one.start_step, one.z, one.outcome) == (other.kind, other.start_step, other.z, other.outcome)
        assert [(c.id, c.weight) for c in one.causes] == [(c.id, c.weight) for c in other.causes]
        sentences = [*one.evidence, *(text for c in one.causes for text in (*c.because, *c.verify, *c.try_))]
        assert all(re.search("[\u4e00-\u9fff]", text) for text in (chinese.reason, *sentences))

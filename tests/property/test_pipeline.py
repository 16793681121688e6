"""What holds for the whole triage whatever was logged."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from runtriage import pipeline
from runtriage.codec import encode_report
from runtriage.codec_baselines import decode_baselines, encode_baselines
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.vocab import Level, RunState
from runtriage.testing.strategies import tracks
from tests.drawn_cohort import cohort, histories

NAMES = (
    "loss", "grad_norm", "lr", "val_loss", "loss_scale", "epoch", "data_source", "seq_len", "clip_fired",
    "grad_norm_clipped", "update_ratio", "param_norm", "grad_norm/a", "grad_norm/b", "grad_norm/c", "global_step",
)
INT64 = np.iinfo(np.int64)


@st.composite
def hostile(draw: st.DrawFn) -> list[RunHistory]:
    """Return up to four runs of one config with metrics that have a role and any content."""
    out = []
    for i in range(draw(st.integers(1, 4))):
        logged = draw(st.dictionaries(st.sampled_from(NAMES), tracks(), max_size=6))
        if draw(st.booleans()):
            logged["loss"] = draw(tracks())
        info = RunInfo(source="hostile:", id=f"r{i}", state=RunState.FINISHED, config={"width": 8})
        out.append(RunHistory(info=info, tracks=logged))
    return out


@settings(deadline=None)
@given(hostile())
def test_no_history_raises_and_every_run_is_answered(runs: list[RunHistory]) -> None:
    """One report a run, in order, that can be written."""
    judged = pipeline.triage_cohort(runs)
    assert [t.report.run.id for t in judged] == [r.info.id for r in runs]
    assert all(encode_report(t.report) for t in judged)


@settings(deadline=None)
@given(hostile())
def test_stated_chances_are_chances(runs: list[RunHistory]) -> None:
    """The chance of a false alarm is a number from 0 to 1 wherever there is a verdict."""
    for triage in pipeline.triage_cohort(runs):
        if triage.report.verdict != Level.WITHHELD:
            assert triage.report.p_false_alarm is not None
            assert 0.0 <= triage.report.p_false_alarm <= 1.0
            assert all(math.isfinite(f.p_false_alarm or 0.0) for f in triage.report.findings)


@settings(deadline=None, max_examples=30)
@given(hostile())
def test_what_is_learned_of_anything_can_be_written_read_and_used(runs: list[RunHistory]) -> None:
    """Baselines learned from hostile runs survive the file and judge the same runs."""
    learned = pipeline.learn(runs)
    again = decode_baselines(encode_baselines(learned))
    assert len(pipeline.triage_cohort(runs, baselines=again)) == len(runs)


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_hostile_run_changes_no_verdict_of_its_siblings(data: st.DataObject) -> None:
    """Five healthy runs stay healthy beside a sixth of any content."""
    runs = histories(cohort(5, seed=2, count=300))
    info = RunInfo(source="hostile:", id="bad", state=RunState.FINISHED, config={"width": 64, "seed": 9})
    bad = RunHistory(info=info, tracks={name: data.draw(tracks()) for name in ("loss", "grad_norm", "lr")})
    judged = pipeline.triage_cohort([*runs, bad])
    assert {t.report.verdict for t in judged[:5]} <= {Level.HEALTHY, Level.WATCH}


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 40), st.sampled_from([INT64.min, -5, 0, 10**12, 2**53, INT64.max - 120]), st.integers(1, 3))
def test_place_on_the_axis_is_no_matter(count: int, first: int, stride: int) -> None:
    """Steps that are negative or near the limits of int64 give an answer."""
    step = first + stride * np.arange(count, dtype=np.int64)
    info = RunInfo(source="far:", id="far", state=RunState.FINISHED)
    loss = Track(step=step, value=np.linspace(4.0, 2.0, count))
    [triage] = pipeline.triage_cohort([RunHistory(info=info, tracks={"loss": loss})])
    assert triage.report.verdict in {Level.HEALTHY, Level.WITHHELD}


@settings(deadline=None, max_examples=10)
@given(st.permutations(range(6)))
def test_order_of_the_runs_is_no_matter(order: list[int]) -> None:
    """Every run gets the verdict it gets in any other order."""
    curves = cohort(6, seed=4, count=400)
    curves[0]["loss"][250:] *= 1.5
    curves[3]["loss"][300:] = np.nan
    runs = histories(curves)
    expected = {t.report.run.id: t.report.verdict for t in pipeline.triage_cohort(runs)}
    judged = pipeline.triage_cohort([runs[i] for i in order])
    assert {t.report.run.id: t.report.verdict for t in judged} == expected

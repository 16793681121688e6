"""Forms of norms, schedules and logged settings: each is found where it is, and its negative twin is left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from runtriage import pipeline
from runtriage.model.history import RunHistory, Track
from runtriage.model.vocab import Explanation, FindingKind, Level
from tests.drawn_cohort import ALARMS, Array, Curves, Draw, alarms, cohort, first, histories, near, reports, steps, the

AT = 600


def test_explosion_of_the_norm_is_found() -> None:
    """A grad norm that rises forty-fold and stays, with a loss that suffers, is found at its row."""
    runs = cohort()
    runs[0]["grad_norm"][AT:] *= 40.0
    runs[0]["loss"][AT:] *= 1.2
    report = first(runs)
    assert report.verdict in ALARMS
    assert near(report.findings[0], AT)


@pytest.mark.parametrize("size", [6, 1])
def test_smooth_growth_of_the_norm_is_no_explosion(size: int) -> None:
    """A norm that doubles slowly over the run in all siblings is how this config trains."""
    runs = cohort(size)
    for run in runs:
        run["grad_norm"] *= 2.0 ** (steps() / steps().size)
    assert not alarms(first(runs))


def test_spike_of_the_norm_alone_is_found() -> None:
    """A grad norm that is thirty times as high for three rows is told at its row."""
    runs = cohort()
    runs[0]["grad_norm"][AT : AT + 3] *= 30.0
    finding = the(first(runs), FindingKind.GRAD_SPIKE)
    assert near(finding, AT, 2)


def test_norm_spike_of_the_whole_cohort_is_explained() -> None:
    """The same batch shows in every run's norm."""
    runs = cohort()
    for run in runs:
        run["grad_norm"][AT : AT + 3] *= 30.0
    report = first(runs)
    assert report.verdict == Level.HEALTHY
    assert Explanation.SHARED_BATCH in {f.explained_by for f in report.findings}


def test_vanishing_gradient_is_found() -> None:
    """A norm that falls to a fiftieth while the loss stops falling is found near its onset."""
    runs = cohort()
    runs[0]["grad_norm"][AT:] *= 0.02
    runs[0]["loss"][AT:] *= 1.08
    report = first(runs)
    assert report.verdict in ALARMS
    assert near(report.findings[0], AT)
    assert report.findings[0].kind == FindingKind.VANISHING_GRADIENT


def test_norm_that_fades_in_every_run_is_healthy() -> None:
    """A norm that decays with the lr in all siblings vanishes nowhere."""
    runs = cohort()
    for run in runs:
        run["grad_norm"] *= run["lr"] / run["lr"].max() + 0.01
    assert not ALARMS & {r.verdict for r in reports(runs)}


def test_constant_factor_is_a_matter_of_logging() -> None:
    """A norm that is the square root of eight times as high from one row on, with nothing else, changed its scope."""
    runs = cohort()
    runs[0]["grad_norm"][AT:] *= np.sqrt(8.0)
    assert near(the(first(runs), FindingKind.SCOPE_CHANGE), AT)


def test_constant_factor_in_all_runs_is_healthy() -> None:
    """All siblings log another norm from one row on: none differs."""
    runs = cohort()
    for run in runs:
        run["grad_norm"][AT:] *= np.sqrt(8.0)
    assert not ALARMS & {r.verdict for r in reports(runs)}


def test_lr_that_leaves_the_schedule_is_found_at_its_row() -> None:
    """A schedule that starts over is the root of what follows."""
    runs = cohort()
    runs[0]["lr"][AT:] = 3e-4
    runs[0]["loss"][AT:] *= 1 + 0.3 * np.exp(-(steps()[AT:] - AT) / 40)
    finding = the(first(runs), FindingKind.LR_DISCONTINUITY)
    assert finding.start_step == AT


def test_warm_restarts_of_the_whole_cohort_are_healthy() -> None:
    """A cosine with restarts jumps in every run alike."""
    runs = cohort()
    for run in runs:
        run["lr"] = 3e-4 * (0.5 + 0.45 * np.cos(np.pi * (steps() % 250) / 250))
    assert not ALARMS & {r.verdict for r in reports(runs)}


def test_step_that_goes_back_is_a_seam() -> None:
    """A log that resumes from an older step is found at that step."""
    [run] = histories(cohort(1))
    rows = np.r_[:AT, AT - 50 : 1000]
    back = {name: Track(step=t.step[rows], value=t.value[rows]) for name, t in run.tracks.items()}
    report = pipeline.triage_cohort([RunHistory(info=run.info, tracks=back)])[0].report
    assert the(report, FindingKind.RESUME_DISCONTINUITY).start_step == AT - 50


def test_rows_written_in_another_order_are_no_seam_of_the_loss() -> None:
    """Two metrics whose rows are interleaved by step have no step that goes back."""
    [run] = histories(cohort(1))
    halves = {name: Track(step=t.step[i::2], value=t.value[i::2]) for i, (name, t) in enumerate(run.tracks.items())}
    report = pipeline.triage_cohort([RunHistory(info=run.info, tracks=halves)])[0].report
    assert not [f for f in report.findings if f.kind == FindingKind.RESUME_DISCONTINUITY]


def _scale(rng: np.random.Generator, count: int) -> Array:
    """Draw a scaler at work: doubled every 200 rows, halved at a random row of each stretch."""
    out = np.full(count, 16.0)
    for a in range(0, count, 200):
        out[a + int(rng.integers(50, 150)) :] -= 1 if a else 0
        out[a:] += 1 if a else 0
    return np.asarray(2.0**out)


def test_collapsing_loss_scale_is_found() -> None:
    """Ten halvings in fifty rows are a collapse, at the first of them."""
    runs = cohort(6, loss_scale=_scale)
    for k in range(10):
        runs[0]["loss_scale"][AT + 5 * k :] /= 2.0
    assert near(the(first(runs), FindingKind.LOSS_SCALE_COLLAPSE), AT, 10)


def test_usual_halvings_are_no_collapse() -> None:
    """A scaler that grows and halves now and then does its work."""
    assert not ALARMS & {r.verdict for r in reports(cohort(6, loss_scale=_scale))}


def test_clip_that_becomes_the_rule_is_found() -> None:
    """A norm pinned at a clip value a tenth of the siblings' norm is found."""
    runs = cohort(6, count=2000)
    runs[0]["grad_norm"][AT:] = np.minimum(runs[0]["grad_norm"][AT:], 0.05)
    runs[0]["loss"][AT:] *= 1.08
    report = first(runs)
    assert report.verdict in ALARMS
    assert near(the(report, FindingKind.CLIP_SATURATION), AT, 80)


CLIP = {"max_grad_norm": 0.6}


def _behind_a_clip(scales: Sequence[float], since: int) -> list[dict[str, Array]]:
    """Return runs whose norms differ by factors, all logged behind a clip that fires in their first rows."""
    runs = cohort(len(scales), count=2000)
    for run, scale in zip(runs, scales, strict=True):
        run["grad_norm"] *= scale
        run["grad_norm"][:150] *= 20
    runs[0]["grad_norm"][since:] *= 20
    for run in runs:
        run["grad_norm"] = np.minimum(run["grad_norm"], CLIP["max_grad_norm"])
    return runs


def test_clip_that_becomes_the_rule_is_found_in_a_cohort_that_differs_in_level() -> None:
    """The level of the norm tells nothing where siblings spread over it; that theirs are rarely clipped does."""
    report = reports(_behind_a_clip([0.8, 0.4, 0.6, 0.9, 1.1, 0.5], AT), CLIP)[0]
    assert report.verdict in ALARMS
    assert near(the(report, FindingKind.CLIP_SATURATION), AT, 10)


@pytest.mark.parametrize(("rises", "kind"), [(True, FindingKind.DIVERGENCE), (False, FindingKind.CLIP_SATURATION)])
def test_clipping_that_a_rising_loss_brings_about_is_told_as_that(kind: FindingKind, *, rises: bool) -> None:
    """Siblings differ in level, so that the clipping is certain first; the root is the loss, where it rises itself."""
    runs = cohort(6, count=2000)
    for run, level in zip(runs, (1.0, 0.85, 0.92, 1.05, 1.15, 1.2), strict=True):
        run["loss"] *= level
        run["grad_norm"] *= level
    since = np.maximum(0.0, (steps(2000) - 1000) / 1000)
    since = since if rises else 0.5 * (since > 0)
    runs[0]["loss"] *= 1 + 0.25 * since
    runs[0]["grad_norm"] *= np.exp(2.2 * since)
    found = first(runs, {"max_grad_norm": 1.0}).findings[0]
    assert (found.kind, near(found, 1000, 200)) == (kind, True)


def test_clip_that_fires_at_the_start_is_healthy() -> None:
    """All siblings clip in their first rows and none later."""
    found = reports(_behind_a_clip([0.8, 0.4, 0.6, 0.9, 1.1, 0.5], 2000), CLIP)
    assert not ALARMS & {r.verdict for r in found}


def test_clip_that_always_fires_in_the_whole_cohort_is_healthy() -> None:
    """A clip value below every norm is a choice of this config."""
    runs = cohort(6, clip_fired=lambda _, n: np.ones(n), grad_norm_clipped=lambda _, n: np.full(n, 0.1))
    assert not ALARMS & {r.verdict for r in reports(runs, {"max_grad_norm": 0.1})}


def _layer(scale: float) -> Draw:
    return lambda rng, n: scale * np.exp(0.15 * rng.standard_normal(n))


LAYERS: dict[str, Draw] = {f"grad_norm/layer{i}": _layer(0.1 * (i + 1)) for i in range(4)}


def test_layer_that_leaves_its_balance_is_named() -> None:
    """One layer's gradient rises eightfold against the others: the finding names the layer."""
    runs = cohort(6, **LAYERS)
    runs[0]["grad_norm/layer2"][AT:] *= 8.0
    finding = the(first(runs), FindingKind.LAYER_IMBALANCE)
    assert finding.metric.endswith("layer2")
    assert near(finding, AT)


def test_layers_that_differ_alike_in_every_run_are_healthy() -> None:
    """A layer with a tenth of the others' gradient in all siblings is the model's own."""
    runs = cohort(6, **LAYERS)
    for run in runs:
        run["grad_norm/layer2"] *= 0.1
    assert not ALARMS & {r.verdict for r in reports(runs)}


def _longer(run: Curves) -> None:
    run["seq_len"][AT:] = 1024.0


def test_sequence_length_that_changes_is_found() -> None:
    """A length that doubles where the siblings' does not is found at its row."""
    runs = cohort(6, seq_len=lambda _, n: np.full(n, 512.0))
    _longer(runs[0])
    runs[0]["loss"][AT:] *= 0.97
    report = first(runs)
    assert report.verdict in ALARMS
    assert report.findings[0].start_step == AT


def test_sequence_length_curriculum_of_all_siblings_is_healthy() -> None:
    """A length that doubles in every run, with a loss that drops in every run, is a curriculum."""
    runs = cohort(6, seq_len=lambda _, n: np.full(n, 512.0))
    for run in runs:
        _longer(run)
        run["loss"][AT:] *= 0.93
    assert not ALARMS & {r.verdict for r in reports(runs)}


def _thin(keep: Callable[[Array], Array]) -> Level:
    [run] = histories(cohort(1))
    kept = keep(steps())
    tracks = {n: Track(step=t.step[kept], value=t.value[kept]) for n, t in run.tracks.items()}
    report = pipeline.triage_cohort([RunHistory(info=run.info, tracks=tracks)])[0].report
    return Level.WATCH if any(f.kind == FindingKind.LOGGING_GAP for f in report.findings) else Level.HEALTHY


def test_hole_in_an_even_log_is_told() -> None:
    """Two hundred rows missing from a log of every step are a gap."""
    assert _thin(lambda t: (t < 400) | (t >= 600)) == Level.WATCH


def test_uneven_log_has_no_hole() -> None:
    """A log that grows sparser by design has no cadence and so no gap."""
    assert _thin(lambda t: np.isin(t, np.unique(np.geomspace(1, 999, 120).astype(int)))) == Level.HEALTHY


def halved_norm(seed: int, *, stalls: bool) -> list[Curves]:
    """Return siblings of which the first has half the norm from row 400 on; its loss stands still or not."""
    runs = cohort(5, seed=seed)
    if stalls:
        rows = steps(runs[0]["loss"].size)
        learnt = 2.0 + 4.0 * (1.0 + rows / (0.02 * rows.size)) ** -0.8
        runs[0]["loss"][400:] *= learnt[400] / learnt[400:]
    runs[0]["grad_norm"][400:] *= 0.5
    return runs


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", [FindingKind.PLATEAU, FindingKind.SCOPE_CHANGE])
def test_halved_norm_is_named_by_the_loss_beside_it(seed: int, kind: FindingKind) -> None:
    """The norm raises the alarm; whether the loss still falls, in itself no alarm, says what it is."""
    runs = halved_norm(seed, stalls=kind == FindingKind.PLATEAU)
    assert near(the(first(runs), kind), 400, 35)

"""How fast runs are judged, and what one very long run costs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtriage.model.history import RunHistory
from runtriage.pipeline import triage_cohort
from runtriage.testing import synth
from tests.conftest import CORPORA_VARIABLE

pytestmark = pytest.mark.bench
WINDOW = 51
"""Rows of the plain scan's windows."""

MOST = 1.0
"""CPU seconds of a triage over those of the plain scan, at most."""

METRICS = ("loss", "grad_norm", "learning_rate", "loss_scale")
FAULTS = ("spike", "divergence", "step_up", "plateau")

ONE_LONG_RUN = """
import json, time
import numpy as np
from runtriage.pipeline import triage_cohort
from runtriage.testing.synth import history
n = 1_000_000
rng, step = np.random.default_rng(0), np.arange(n)
curve = 2.0 + 8.0 / np.sqrt(1.0 + step / 500.0)
tracks = {
    "train/loss": (step, curve * np.exp(rng.normal(0, 0.02, n))),
    "train/grad_norm": (step, np.exp(rng.normal(0, 0.2, n))),
    "train/lr": (step, 1e-3 * np.minimum(step / 2000.0, 1.0)),
    "train/update_ratio": (step, 1e-3 * np.exp(rng.normal(0, 0.1, n))),
    "train/throughput": (step, 1e5 * np.exp(rng.normal(0, 0.1, n))),
}
run = history(tracks, config={"lr": 1e-3})
start = time.process_time()
verdict = triage_cohort([run])[0].report.verdict
cpu = time.process_time() - start
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"verdict": verdict, "cpu_s": cpu, "peak_mb": peak / 1024}))
"""


def cpu_s(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of the fastest of three tries."""
    tries = []
    for _ in range(3):
        start = time.process_time()
        work()
        tries.append(time.process_time() - start)
    return min(tries)


def plain_scan(runs: Sequence[RunHistory]) -> float:
    """Scan loss and grad norm of each run for its largest distance from a running median, in running MADs."""
    largest = 0.0
    for run in runs:
        for name in METRICS[:2]:
            windows = np.lib.stride_tricks.sliding_window_view(run.tracks[name].value, WINDOW)
            middle = np.median(windows, axis=1)
            spread = np.median(np.abs(windows - middle[:, None]), axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                z = np.abs(windows[:, WINDOW // 2] - middle) / spread
            largest = max(largest, float(np.nan_to_num(z, posinf=0.0).max()))
    return largest


def corpus(folder: Path | None) -> list[RunHistory]:
    """Make 200 runs in 20 cohorts of 10: by the generator of the labelled corpora, else by our own."""
    if folder is None:
        runs = []
        for group in range(20):
            config = {**synth.CONFIG, "group": group}
            runs += synth.cohort(6, first_seed=10 * group, steps=5000, config=config)
            runs += [synth.faulty(f, 10 * group + 6 + i, steps=5000, config=config) for i, f in enumerate(FAULTS)]
        return runs
    spec = importlib.util.spec_from_file_location("curvegen", folder / "bench" / "curvegen.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    sys.modules["curvegen"] = generator
    spec.loader.exec_module(generator)
    runs = []
    for run, columns in generator.corpus(20, 7, 0.0):
        tracks = {name: (columns["step"], columns[name]) for name in METRICS}
        logged = np.asarray(columns["_eval_at"], dtype=bool)
        tracks["eval_loss"] = (np.asarray(columns["step"])[logged], np.asarray(columns["eval_loss"])[logged])
        runs.append(synth.history(tracks, run_id=run.run_id, config={**run.config, "seed": run.seed}))
    return runs


def test_triage_keeps_pace_with_a_plain_scan(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judging 200 runs against their cohorts takes no more CPU time than a running median and MAD of two metrics."""
    try:
        folder: Path | None = request.getfixturevalue("corpora")
    except pytest.skip.Exception:
        folder = None
    runs = corpus(folder)
    rows = sum(max(track.step.size for track in run.tracks.values()) for run in runs)
    triage_cohort(runs[:10])  # imports and tables
    ours, plain = cpu_s(lambda: triage_cohort(runs)), cpu_s(lambda: plain_scan(runs))
    with capsys.disabled():
        made = f"generator of {CORPORA_VARIABLE}" if folder is not None else "runtriage.testing.synth"
        said = f"{rows / ours / 1e6:.2f} M rows/CPU s, plain scan {rows / plain / 1e6:.2f}, ratio {ours / plain:.2f}"
        print(f"\ntriage of {rows:,} rows in {len(runs)} runs ({made}): {said}")  # noqa: T201 - what a bench is for
    assert ours < MOST * plain


def test_a_million_steps_stay_small(capsys: pytest.CaptureFixture[str]) -> None:
    """One run of a million steps of five metrics takes at most 2 CPU seconds and 1 GB in a process of its own."""
    done = subprocess.run([sys.executable, "-c", ONE_LONG_RUN], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    with capsys.disabled():
        print(f"\none run of 1 M steps x 5 metrics: {figures}")  # noqa: T201 - what a bench is for
    assert figures["cpu_s"] <= 2.0
    assert figures["peak_mb"] <= 1024

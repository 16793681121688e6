r"""Triages made by hand, and the golden files that tell them. `python -m tests.golden.made` writes the files anew.

The run, with a spike in the loss that the gradient norm shares::

    loss  |              norm  |
           \        /\           \      |
            \______/  \___        \____|\____
                   60                  60
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from runtriage.model.curve import Curve, Triage
from runtriage.model.report import BaselineUse, Cause, Finding, Phase, Report, RunSummary, Tool
from runtriage.model.vocab import (
    BaselineKind,
    CauseId,
    Explanation,
    FindingKind,
    Level,
    Outcome,
    RunState,
    Severity,
)
from runtriage.outputs.report.markdown import render_digest, render_markdown
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.report.text import render_text

FOLDER = Path(__file__).resolve().parent / "reports"
STEPS = 120


def spike_finding(metric: str = "train/loss") -> Finding:
    """Return a loss spike with two candidate causes."""
    bad_batch = Cause(
        id=CauseId.BAD_BATCH, weight=0.7, because=("the grad norm rises at the same step (z 18.3)",),
        verify=("Replay the step with the same batch.", "Look at the samples of the step."), try_=("Skip the step.",),
    )
    overflow = Cause(id=CauseId.NUMERICAL_OVERFLOW, weight=0.3, verify=("Replay the step in fp32.",))
    return Finding(
        kind=FindingKind.LOSS_SPIKE, metric=metric, role="loss", start_step=60, end_step=70, peak_step=61,
        severity=Severity.WARNING, z=19.5, p_false_alarm=0.0004, outcome=Outcome.RECOVERED,
        evidence=("grad_norm z 18.3 at the same step",), causes=(bad_batch, overflow),
    )


def by_design() -> Finding:
    """Return a finding that is explained."""
    return Finding(
        kind=FindingKind.STEP_DOWN, metric="train/loss", role="loss", start_step=100, peak_step=100,
        severity=Severity.INFO, z=-5.6, outcome=Outcome.ONGOING, explained_by=Explanation.LR_DECAY,
    )


def report(level: Level = Level.SUSPICIOUS, *, name: str = "gpt-small lr 3e-4", run_id: str = "r1") -> Report:
    """Return a report of a run with a spike and a planned step, or of a run without."""
    healthy = level in {Level.HEALTHY, Level.WITHHELD}
    return Report(
        run=RunSummary(
            source="mlflow://host:5000/lm", id=run_id, name=name, state=RunState.FINISHED,
            url="http://host:5000/#/experiments/1/runs/r1",
        ),
        verdict=level,
        reason="Within the band of 8 runs." if healthy else "Loss spike in train/loss from step 60, recovered.",
        p_false_alarm=1.0 if healthy else 0.0004,
        baseline=BaselineUse(kind=BaselineKind.COHORT, runs=8, fingerprint="ab12", formed_by="equal config"),
        phases=(Phase(name="warmup", start_step=0, end_step=10),),
        findings=() if healthy else (by_design(), spike_finding()),
        missing=("pre-clip grad norm is not logged",),
        series={"train/loss": "loss", "grad_norm": "grad_norm", "lr": "lr"},
        tool=Tool(version="0.1.0"),
    )


def triage(level: Level = Level.SUSPICIOUS, *, name: str = "gpt-small lr 3e-4", run_id: str = "r1") -> Triage:
    """Return a triage with loss, gradient norm and learning rate."""
    step = np.arange(STEPS, dtype=np.int64)
    trend = 2.5 + 4.0 * np.exp(-step / 15.0)
    bump = np.where((step >= 60) & (step < 70), 3.0 * np.exp(-(step - 60) / 3.0), 0.0)
    wave = 0.05 * np.sin(1.7 * step)
    norm = 0.6 + 3.0 * np.exp(-step / 8.0) + 2.0 * bump + np.abs(wave)
    band = np.arange(0.0, STEPS, 10.0)
    centre = 2.5 + 4.0 * np.exp(-band / 15.0)
    curves = (
        Curve(
            metric="train/loss", role="loss", step=step, value=trend + bump + wave, smooth=trend,
            band_step=band, band_low=centre - 0.2, band_high=centre + 0.2,
        ),
        Curve(metric="grad_norm", role="grad_norm", step=step, value=norm),
        Curve(metric="lr", role="lr", step=step, value=3e-4 * np.minimum(1.0, (step + 1) / 10.0)),
    )
    return Triage(report=report(level, name=name, run_id=run_id), curves=curves)


def cohort() -> list[Report]:
    """Return reports of every level."""
    broken = report(Level.BROKEN, name="b|roken", run_id="r0")
    piped = msgspec.structs.replace(broken, findings=(spike_finding("l|oss"),))
    withheld = report(Level.WITHHELD, name="short", run_id="r3")
    return [report(), piped, report(Level.HEALTHY, name="fine", run_id="r2"), withheld]


GOLDENS: dict[str, Callable[[], str]] = {
    "spike.txt": lambda: render_text(triage(), width=88),
    "healthy.txt": lambda: render_text(triage(Level.HEALTHY), width=60),
    "spike.md": lambda: render_markdown(report()),
    "digest.md": lambda: render_digest(cohort()),
    "spike.svg": lambda: render_svg(triage()),
}
"""File name to what it should hold."""


def main() -> None:
    """Write the files."""
    for name, render in GOLDENS.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()

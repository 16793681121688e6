"""A small drawn cohort of healthy runs that a test can spoil in one place, and what is said of its first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtriage import pipeline
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.report import Finding, Report
from runtriage.model.vocab import Level, RunState

Array = NDArray[np.float64]
Curves = dict[str, Array]
Draw = Callable[[np.random.Generator, int], Array]

STEPS = 1000
ALARMS = frozenset({Level.SUSPICIOUS, Level.BROKEN})


def steps(count: int = STEPS) -> Array:
    """Return the steps of a run as floats, 0 to ``count - 1``."""
    return np.arange(count, dtype=np.float64)


def cosine(count: int = STEPS) -> Array:
    """Return an lr that warms up over a twentieth of the run and decays as a cosine."""
    t = steps(count) / count
    return np.asarray(3e-4 * np.minimum(1.0, (steps(count) + 1) / (0.05 * count)) * (0.55 + 0.45 * np.cos(np.pi * t)))


def cohort(runs: int = 6, *, seed: int = 1, count: int = STEPS, noise: float = 0.02, **more: Draw) -> list[Curves]:
    """Draw healthy runs: a power law with a floor, lognormal norms, 1 % between runs.

    Parameters
    ----------
    runs, seed, count, noise
        Number of runs, seed, rows of each and relative noise of the loss.
    more
        Further metrics by name: a function of the generator and the number of rows.
    """
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(runs):
        level, scale = np.exp(0.01 * rng.standard_normal(2))
        mean = level * (2.0 + 4.0 * scale * (1.0 + steps(count) / (0.02 * count)) ** -0.8)
        curves = {
            "loss": mean * np.exp(noise * rng.standard_normal(count)),
            "grad_norm": (0.5 + 2 * np.exp(-steps(count) / (0.02 * count))) * np.exp(0.15 * rng.standard_normal(count)),
            "lr": cosine(count),
        }
        curves.update({name: draw(rng, count) for name, draw in more.items()})
        out.append(curves)
    return out


def histories(
    curves: Sequence[Curves], config: Mapping[str, Any] | None = None, at: Sequence[Array] | None = None
) -> list[RunHistory]:
    """Put curves into runs of one config; NaN in a curve whose name starts with ``val`` means not logged.

    Parameters
    ----------
    curves, config
        As drawn, and what they train.
    at
        Steps of each run, where they are not 0, 1, 2 and so on.
    """
    out = []
    for i, run in enumerate(curves):
        info = RunInfo(
            source="drawn:", id=f"r{i}", name=f"r{i}", state=RunState.FINISHED,
            config={"width": 64, **(config or {}), "seed": i},
        )
        tracks = {}
        for name, value in run.items():
            step = (steps(value.size) if at is None else at[i]).astype(np.int64)
            keep = np.isfinite(value) | (not name.startswith("val"))
            tracks[name] = Track(step=step[keep], value=value[keep])
        out.append(RunHistory(info=info, tracks=tracks))
    return out


def reports(curves: Sequence[Curves], config: Mapping[str, Any] | None = None) -> list[Report]:
    """Judge drawn runs against each other."""
    return [t.report for t in pipeline.triage_cohort(histories(curves, config))]


def first(curves: Sequence[Curves], config: Mapping[str, Any] | None = None) -> Report:
    """Judge drawn runs against each other; what is said of the first."""
    return reports(curves, config)[0]


def alarms(report: Report) -> list[str]:
    """Kinds of the findings that are neither explained nor mere information."""
    return [str(f.kind) for f in report.findings if f.explained_by is None and f.severity != "info"]


def the(report: Report, kind: str) -> Finding:
    """Return the one finding of a kind.

    Raises
    ------
    AssertionError
        There is none, or more than one.
    """
    found = [f for f in report.findings if f.kind == kind]
    assert len(found) == 1, f"{[str(f.kind) for f in report.findings]}: {report.reason}"
    return found[0]


def near(finding: Finding, step: int, tolerance: int = 40) -> bool:
    """Tell whether a finding begins within ``tolerance`` steps of a place."""
    return abs(finding.start_step - step) <= tolerance

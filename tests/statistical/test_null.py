"""Healthy cohorts, drawn from the null model: how often they alarm, and whether the stated chance of that is honest.

``python -m tests.statistical.test_null`` prints the table of the README.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from runtriage import pipeline
from runtriage.model.vocab import Level
from tests.statistical.null_model import KINDS, LENGTHS, SPREADS, full_logs, healthy_histories, linked

pytestmark = pytest.mark.statistical

NOMINAL = 0.01
"""False-alarm budget per run that the pipeline is asked for."""

COHORTS = {1: 320, 3: 160, 5: 96, 10: 48, 30: 16}
"""Runs of a cohort to number of cohorts drawn: 320 to 480 runs each; a cohort of one is judged by its own past."""

CONFIDENCE = 0.999
HONEST = (0.01, 0.05, 0.2)


@dataclass(slots=True)
class Tally:
    """Healthy runs judged, those that alarmed, and the chance of a false alarm that each report states."""

    runs: int = 0
    alarms: int = 0
    watched: int = 0
    chances: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Share of the runs that alarmed."""
        return self.alarms / max(self.runs, 1)

    def bound(self, nominal: float) -> int:
        """Most alarms that chance alone makes at a nominal rate."""
        return int(binom.ppf(CONFIDENCE, self.runs, nominal))


def _draws(size: int, seed: int) -> Iterator[tuple[str, list[pipeline.Triage]]]:
    rng = np.random.default_rng([seed, size])
    for i in range(COHORTS[size]):
        kind, spread = KINDS[i % len(KINDS)], SPREADS[i // len(KINDS) % len(SPREADS)]
        runs = healthy_histories(rng, size, kind, spread, int(rng.choice(LENGTHS)))
        yield kind, pipeline.triage_cohort(runs)


@cache
def tallies(size: int, seed: int = 20) -> dict[str, Tally]:
    """Judge healthy cohorts of one size; by kind of noise."""
    out = {kind: Tally() for kind in KINDS}
    for kind, judged in _draws(size, seed):
        tally = out[kind]
        for triage in judged:
            report = triage.report
            tally.runs += 1
            tally.alarms += report.verdict in {Level.SUSPICIOUS, Level.BROKEN}
            tally.watched += report.verdict == Level.WATCH
            tally.chances.append(report.p_false_alarm)
    return out


def together(parts: dict[str, Tally]) -> Tally:
    """Add the tallies of all kinds of noise."""
    return Tally(
        runs=sum(t.runs for t in parts.values()), alarms=sum(t.alarms for t in parts.values()),
        watched=sum(t.watched for t in parts.values()), chances=[c for t in parts.values() for c in t.chances],
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", COHORTS)
def test_healthy_runs_alarm_no_more_often_than_budgeted(size: int) -> None:
    """Alarms stay within the 99.9 % binomial bound of the budget, for every cohort size and for a run on its own."""
    tally = together(tallies(size))
    assert tally.alarms <= tally.bound(NOMINAL), f"{tally.alarms} of {tally.runs}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", COHORTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_noise_alarms_by_itself(size: int, kind: str) -> None:
    """No noise (white, autocorrelated, shrinking, heavy-tailed) passes the bound of the budget."""
    tally = tallies(size)[kind]
    assert tally.alarms <= tally.bound(NOMINAL), f"{tally.alarms} of {tally.runs}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", COHORTS)
@pytest.mark.parametrize("chance", HONEST)
def test_the_stated_chance_is_honest(size: int, chance: float) -> None:
    """Of healthy runs, a share of about p or less is reported with a chance of false alarm of p or less."""
    tally = together(tallies(size))
    below = sum(c <= chance for c in tally.chances)
    assert below <= tally.bound(chance), f"{below} of {tally.runs} at or below {chance}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [size for size in COHORTS if size > 1])
@pytest.mark.parametrize("chance", HONEST[1:])
def test_the_stated_chance_is_graded(size: int, chance: float) -> None:
    """Of healthy runs of a cohort, at least half of p are reported with a chance of p or less: it is no mere bound."""
    tally = together(tallies(size))
    below = sum(c <= chance for c in tally.chances)
    assert below >= binom.ppf(1 - CONFIDENCE, tally.runs, chance / 2), f"{below} of {tally.runs} at or below {chance}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("size", "cohorts"), [(3, 96), (5, 64), (10, 32)])
def test_full_logs_alarm_no_more_often_than_budgeted(size: int, cohorts: int) -> None:
    """Layers, validation, parameter norms and update ratios beside the loss do not add false alarms of their own."""
    rng = np.random.default_rng([21, size])
    tally = Tally()
    for i in range(cohorts):
        kind, spread = KINDS[i % len(KINDS)], SPREADS[i // len(KINDS) % len(SPREADS)]
        runs = full_logs(rng, healthy_histories(rng, size, kind, spread, int(rng.choice(LENGTHS))))
        verdicts = [triage.report.verdict for triage in pipeline.triage_cohort(runs)]
        tally.runs += len(verdicts)
        tally.alarms += sum(verdict in {Level.SUSPICIOUS, Level.BROKEN} for verdict in verdicts)
    assert tally.alarms <= tally.bound(NOMINAL), f"{tally.alarms} of {tally.runs}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("correlation", [1.0, 0.0, -0.5])
@pytest.mark.parametrize(("size", "cohorts"), [(5, 64), (10, 32)])
def test_levels_that_go_together_alarm_no_more_often_than_budgeted(size: int, cohorts: int, correlation: float) -> None:
    """Loss and norm that wander together are no departure of both; nor, within reason, those that wander apart."""
    rng = np.random.default_rng([22, size])
    tally = Tally()
    for i in range(cohorts):
        kind, spread = KINDS[i % len(KINDS)], SPREADS[i // len(KINDS) % len(SPREADS)]
        runs = linked(rng, healthy_histories(rng, size, kind, spread, int(rng.choice(LENGTHS))), correlation)
        verdicts = [triage.report.verdict for triage in pipeline.triage_cohort(runs)]
        tally.runs += len(verdicts)
        tally.alarms += sum(verdict in {Level.SUSPICIOUS, Level.BROKEN} for verdict in verdicts)
    assert tally.alarms <= tally.bound(NOMINAL), f"{tally.alarms} of {tally.runs}"


def table(seed: int = 20) -> str:
    """Lay the rates out as a Markdown table: one row per cohort size."""
    kinds = " | ".join(k.replace("_", " ") for k in KINDS)
    lines = [
        f"| runs in cohort | healthy runs | false alarms | rate | {kinds} | watch | p ≤ .01 | p ≤ .05 | p ≤ .2 |",
        "|" + "---|" * (8 + len(KINDS)),
    ]
    for size in COHORTS:
        parts = tallies(size, seed)
        tally = together(parts)
        by_kind = " | ".join(f"{parts[k].alarms}/{parts[k].runs}" for k in KINDS)
        below = " | ".join(f"{np.mean(np.array(tally.chances) <= p):.3f}" for p in HONEST)
        name = "1 (its own past)" if size == 1 else str(size)
        lines.append(
            f"| {name} | {tally.runs} | {tally.alarms} | {tally.rate:.4f} | {by_kind} | {tally.watched} | {below} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table(int(sys.argv[1]) if len(sys.argv) > 1 else 20) + "\n")

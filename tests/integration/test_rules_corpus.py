"""Rules learned from the fault lab's healthy runs, tried on runs they have not seen, beside W&B's z-score."""

from __future__ import annotations

from pathlib import Path

import pytest
from accuracy.rules import lab

from runtriage.rules.score import Score

pytestmark = [pytest.mark.corpus, pytest.mark.integration]


@pytest.fixture(scope="module")
def scores(corpora: Path) -> dict[str, Score]:
    """Return the overall score of the derived rules, and of W&B's z-score, on the same candidates."""
    found = lab(corpora)
    return {"ours": found.ours[-1], "wandb": found.wandb[-1]}


def test_all_rules_together_stay_quiet_on_most_healthy_runs(scores: dict[str, Score]) -> None:
    """At most one healthy run in five makes any of fifteen kinds of rules fire; the z-score fires on most."""
    assert scores["ours"].false_alarms.runs == scores["wandb"].false_alarms.runs == 33
    assert scores["ours"].false_alarms.rate <= 0.2
    assert scores["wandb"].false_alarms.rate >= 0.8


def test_most_faulty_runs_are_caught_soon(scores: dict[str, Score]) -> None:
    """Nine in ten are caught, half of them within ten steps, and few fire before the fault."""
    ours = scores["ours"]
    assert ours.hits.rate >= 0.9
    assert ours.median_delay is not None
    assert ours.median_delay <= 10
    assert ours.early <= 8 < scores["wandb"].early

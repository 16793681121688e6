"""Rules learned from the fault lab's healthy runs, tried on runs they have not seen, beside W&B's z-score."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from runtriage.analysis.cohorts import fingerprint
from runtriage.analysis.prepare import prepare
from runtriage.cli.rules_test import WANDB_DEFAULT
from runtriage.model.history import RunHistory
from runtriage.model.rule import AlertRule
from runtriage.registry import open_source
from runtriage.rules.derive import Cohort, derive
from runtriage.rules.recipes import Member
from runtriage.rules.replay import replay
from runtriage.rules.score import Replayed, Score, decode_known, score

pytestmark = [pytest.mark.corpus, pytest.mark.integration]
TODAY = date(2026, 11, 30)


def histories(folder: Path) -> list[RunHistory]:
    source = open_source(f"files:{folder}")
    return [source.read(info) for info in source.list_runs()]


@pytest.fixture(scope="module")
def scores(corpora: Path) -> dict[str, Score]:
    """Return the overall score of the derived rules, and of W&B's z-score, on the same candidates."""
    lab = corpora / "data/faultlab"
    groups: dict[str, list[Member]] = {}
    for history in histories(lab / "baselines"):
        groups.setdefault(fingerprint(history.info.config), []).append(Member(run=prepare(history), history=history))
    rules = derive([Cohort(config=config, healthy=runs) for config, runs in groups.items()], today=TODAY).rules
    known = decode_known((lab / "labels.jsonl").read_bytes())
    covered = {rule.config for rule in rules}
    unseen = [h for h in histories(lab / "candidates") if fingerprint(h.info.config) in covered]
    return {name: overall(some, unseen, known) for name, some in (("ours", rules), ("wandb", WANDB_DEFAULT))}


def overall(rules: tuple[AlertRule, ...], runs: list[RunHistory], known: dict) -> Score:  # type: ignore[type-arg]
    replayed = [
        Replayed(
            run_id=history.info.id, name=history.info.name, first_step=0,
            last_step=max(int(track.step[-1]) for track in history.tracks.values()),
            rules=tuple(rule.id for rule in rules), firings=replay(rules, history),
        )
        for history in runs
    ]
    return score(rules, replayed, known)[-1]


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

"""Rules from cohorts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import msgspec
import numpy as np
import pytest

from runtriage.analysis.cohorts import fingerprint
from runtriage.analysis.prepare import prepare
from runtriage.model.history import RunHistory, Track
from runtriage.model.rule import Above, AlertRule, NonFinite, RuleSet
from runtriage.rules.codec import encode_rules
from runtriage.rules.derive import WIDENING, Cohort, derive, merge, most_likely_rate
from runtriage.rules.recipes import Member
from runtriage.rules.replay import replay
from runtriage.testing.synth import FAULTS, cohort, faulty, healthy

TODAY = date(2026, 11, 30)


def members(histories: Sequence[RunHistory]) -> list[Member]:
    return [Member(run=prepare(history), history=history) for history in histories]


def derived(good: Sequence[RunHistory], bad: Sequence[RunHistory] = (), *, today: date = TODAY) -> RuleSet:
    config = fingerprint(good[0].info.config)
    return derive([Cohort(config=config, healthy=members(good), bad=members(bad))], today=today)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return derived(cohort(6), [faulty("nan"), faulty("explosion")])


def by_kind(rules: RuleSet, kind: str) -> AlertRule:
    (found,) = (rule for rule in rules.rules if rule.id.startswith(f"{kind}-") and len(rule.id) == len(kind) + 13)
    return found


def test_the_rules_a_project_should_have_are_made(rules: RuleSet) -> None:
    """What the runs log decides the kinds of rules."""
    kinds = {rule.id.rpartition("-")[0] for rule in rules.rules}
    assert kinds == {
        "loss-non-finite", "grad-norm-non-finite", "loss-spike", "grad-norm-spike", "step-backwards", "loss-band",
        "grad-norm-band", "lr-band",
    }


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_each_fault_makes_some_rule_fire_near_its_onset(rules: RuleSet, fault: str) -> None:
    """A faulty run of the config fires within 40 steps of the onset, and not before it."""
    steps = [firing.step for firing in replay(rules.rules, faulty(fault, seed=77, onset=240))]
    assert steps
    assert 240 <= steps[0] <= 280


def test_a_healthy_run_that_was_not_seen_stays_silent(rules: RuleSet) -> None:
    """Twelve further seeds of the config fire nothing."""
    assert [replay(rules.rules, healthy(seed)) for seed in range(50, 62)] == [()] * 12


def test_runs_of_another_config_are_left_alone(rules: RuleSet) -> None:
    """A rule is for the runs of its config only."""
    assert replay(rules.rules, faulty("nan", config={"lr": 1.0})) == ()


def test_provenance_tells_what_was_measured(rules: RuleSet) -> None:
    """Six healthy runs left out one by one, two faulty ones, one of which has NaN."""
    measured = by_kind(rules, "loss-non-finite").measured
    assert measured is not None
    assert (measured.runs, measured.false_alarms.rate, measured.hits.fired, measured.hits.runs) == (6, 0.0, 1, 2)


def test_few_runs_do_not_promise_much(rules: RuleSet) -> None:
    """No false alarm in six runs still allows a rate of four in ten."""
    measured = by_kind(rules, "loss-band").measured
    assert measured is not None
    assert measured.at_most == 0.39


@pytest.mark.parametrize(("fired", "runs", "rate"), [(0, 1, 0.95), (0, 59, 0.0495), (1, 10, 0.394), (3, 3, 1.0)])
def test_the_upper_bound_is_that_of_clopper_and_pearson(fired: int, runs: int, rate: float) -> None:
    """Values of the one-sided 95 % bound from its definition by the binomial distribution."""
    assert most_likely_rate(fired, runs) == pytest.approx(rate, abs=5e-4)


def test_a_second_derivation_is_the_same_byte_for_byte(rules: RuleSet) -> None:
    """The order of the runs and the day of the month do not matter."""
    again = derived(cohort(6)[::-1], [faulty("explosion"), faulty("nan")], today=date(2026, 11, 2))
    assert encode_rules(again) == encode_rules(rules)


def test_one_more_ordinary_run_changes_few_lines(rules: RuleSet) -> None:
    """Provenance aside, a seventh run leaves most lines of the file as they were."""
    def lines(some: RuleSet) -> list[str]:
        bare = [msgspec.structs.replace(rule, measured=None) for rule in some.rules]
        return encode_rules(msgspec.structs.replace(some, rules=tuple(bare))).decode().splitlines()

    before, after = lines(rules), lines(derived(cohort(7)))
    assert len(before) == len(after)
    without_knots = [(a, b) for a, b in zip(before, after, strict=True) if "step:" not in a and a != b]
    assert len(without_knots) <= 2


def restless(seed: int) -> RunHistory:
    """Return a healthy run; that of seed 0 has a harmless spike in its loss."""
    run = healthy(seed)
    loss = run.tracks["train/loss"]
    value = loss.value.copy()
    value[100] *= 1.35 if seed == 0 else 1.0
    return RunHistory(info=run.info, tracks={**run.tracks, "train/loss": Track(step=loss.step, value=value)})


def test_a_rule_over_its_budget_is_widened() -> None:
    """When one run has a larger spike than its siblings, the margin grows until it would not have fired on it."""
    measured = by_kind(derived([restless(seed) for seed in range(5)]), "loss-spike").measured
    assert measured is not None
    assert measured.widened in WIDENING[1:]
    assert measured.false_alarms.fired == 0


def test_a_rule_that_cannot_keep_its_budget_is_dropped_with_the_reason() -> None:
    """One run of four that is thirty times above the others cannot be expected from them at any margin tried."""
    runs = cohort(4)
    norm = runs[0].tracks["grad_norm"]
    value = np.where(norm.step > 60, norm.value * 30.0, norm.value)
    runs[0] = RunHistory(info=runs[0].info, tracks={**runs[0].tracks, "grad_norm": Track(step=norm.step, value=value)})
    found = derived(runs)
    reasons = {one.id.rpartition("-")[0]: one.reason for one in found.dropped}
    assert "fires on 1 of 4 healthy runs left out" in reasons["grad-norm-band"]
    assert not [rule for rule in found.rules if rule.id.startswith("grad-norm-band")]


def test_two_runs_are_too_few_and_it_is_said() -> None:
    """A config with two healthy runs gets no rules but a line among the dropped."""
    found = derived(cohort(2))
    assert not found.rules
    assert found.dropped[0].reason.startswith("2 healthy run(s)")


def test_healthy_overflows_of_half_precision_only_raise_the_number_of_points() -> None:
    """Where healthy runs log two infinite norms in a row, three are needed."""
    runs = [faulty("infinite_norm", seed, config={"lr": 1e-3}) for seed in range(4)]
    assert by_kind(derived(runs), "grad-norm-non-finite").for_points == 4


def test_a_kept_rule_survives_a_new_derivation(rules: RuleSet) -> None:
    """``keep`` wins over the new rule of the same id, and a rule by hand stays beside the new ones."""
    mine = msgspec.structs.replace(by_kind(rules, "loss-spike"), for_points=7, keep=True)
    extra = AlertRule(id="mine", about="x", role="lr", condition=Above(value=1.0), keep=True)
    gone = AlertRule(id="old", about="x", role="lr", condition=NonFinite())
    merged = merge(rules, msgspec.structs.replace(rules, rules=(mine, extra, gone)))
    assert mine in merged.rules
    assert extra in merged.rules
    assert len(merged.rules) == len(rules.rules) + 1

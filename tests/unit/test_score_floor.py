"""The floor of the accuracy figures rises and never falls."""

from __future__ import annotations

from tests.accuracy.score import fallen, raised

FLOOR = {"fpr": 0.01, "recall": 0.95, "located": 0.94}


def test_a_floor_is_lifted_and_never_lowered() -> None:
    """A better figure replaces its floor, a worse one does not, a new one is taken."""
    assert raised(FLOOR, {"fpr": 0.02, "recall": 0.97, "located": 0.90, "typed": 0.8}) == {
        "fpr": 0.01, "recall": 0.97, "located": 0.94, "typed": 0.8,
    }
    assert raised(FLOOR, {"fpr": 0.0})["fpr"] == 0.0


def test_figures_below_their_floor_are_told() -> None:
    """More false alarms and a smaller recall are; figures as good as the floor are not."""
    assert list(fallen({"a": {**FLOOR, "fpr": 0.0125}}, {"a": FLOOR}, {})) == ["a: fpr is 0.0125, its floor 0.0100"]
    assert list(fallen({"a": {**FLOOR, "recall": 0.9}}, {"a": FLOOR}, {})) == ["a: recall is 0.9000, its floor 0.9500"]
    assert not list(fallen({"a": FLOOR}, {"a": FLOOR}, {}))


def test_false_alarms_within_the_budget_are_no_fall() -> None:
    """Fewer than the allowance are luck; more than both are told."""
    assert not list(fallen({"a": {**FLOOR, "fpr": 0.0125}}, {"a": FLOOR}, {"a": 0.02}))
    told = list(fallen({"a": {**FLOOR, "fpr": 0.025}}, {"a": FLOOR}, {"a": 0.02}))
    assert told == ["a: fpr is 0.0250, its floor 0.0200"]

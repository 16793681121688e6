"""What a config trains, whatever dress its numbers come in."""

from __future__ import annotations

from typing import Any

import pytest

from runtriage.analysis.cohorts import fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"lr": 1}, {"lr": 1.0}),
        ({"betas": [0, 0.95]}, {"betas": (0.0, 0.95)}),
        ({"layers": [{"size": 2}]}, {"layers": [{"size": 2.0}]}),
    ],
)
def test_whole_numbers(one: dict[str, Any], other: dict[str, Any]) -> None:
    """JSON drops the point of a whole number, in lists as well: that makes no other training."""
    assert fingerprint(one) == fingerprint(other)


def test_yes_is_not_one() -> None:
    """A switch is not a number."""
    assert fingerprint({"clip": True}) != fingerprint({"clip": 1})


def test_a_number_beyond_all_floats() -> None:
    """A number that no float can hold is told from its neighbour."""
    assert fingerprint({"n": 10**400}) != fingerprint({"n": 10**400 + 1})

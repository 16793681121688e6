"""When rounds are due."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtriage.sweep.schedule import next_due

MOMENTS = st.floats(0, 1e9)
PERIODS = st.floats(1, 1e6)


@given(MOMENTS, PERIODS, st.floats(0, 1e7))
def test_the_next_beat_is_ahead_and_not_far(start: float, every: float, since: float) -> None:
    """Whatever a round took, the next one is due after now, and at most one period after."""
    now = start + since
    assert now < next_due(start, every, now) <= now + every * (1 + 1e-6) + 1e-6


def test_a_late_beginning_does_not_move_what_follows() -> None:
    """A thousand rounds that each begin late and take their time begin on the beats of the first."""
    now = start = 17.0
    for _ in range(1000):
        now = next_due(start, 60.0, now + 3.7)
    assert now == start + 60_000.0


@pytest.mark.parametrize(("took", "due"), [(59.0, 60.0), (60.0, 120.0), (61.0, 120.0), (500.0, 540.0)])
def test_what_a_long_round_slept_through_is_left_out(took: float, due: float) -> None:
    """Rounds do not pile up behind a long one."""
    assert next_due(0.0, 60.0, took) == due

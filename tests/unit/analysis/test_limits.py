"""Shares of the false-alarm budget that a detector sees."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.analysis.compare import compare
from runtriage.analysis.prepare import prepare
from runtriage.model.vocab import Role
from tests.drawn_cohort import cohort, histories


@pytest.mark.parametrize("part", [1.0, 0.5, 0.1])
def test_a_part_of_the_budget_has_a_higher_limit(part: float) -> None:
    """A healthy run passes it as much more rarely as the part is smaller, as far as chances are tabled."""
    runs = [prepare(history) for history in histories(cohort(12))]
    view = compare(runs, None, 0.01)[0].view
    limit, stricter = view.limit(Role.LOSS), view.stricter_limit(Role.LOSS, part)
    ratio = view.expected(Role.LOSS, stricter) / view.expected(Role.LOSS, limit)
    assert stricter >= limit
    np.testing.assert_allclose(ratio, part, rtol=0.02)

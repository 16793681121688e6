"""The summary as text: whose a member is."""

from __future__ import annotations

import pytest

from runtriage.trackers.wandb.summary import own_values, with_own


@pytest.mark.parametrize("theirs", ['{"runtriage": {"min":  1.0}}', '{"runtriage": {}}', '{"runtriage": 3}'])
def test_a_member_that_only_has_our_name_is_not_ours(theirs: str) -> None:
    """A metric called ``runtriage`` stays byte for byte when our values go."""
    assert (own_values(theirs), with_own(theirs, {})) == ({}, theirs)


def test_our_values_are_found_when_they_come_back_nested() -> None:
    """W&B may nest dotted keys: the values are still ours, and go."""
    nested = '{"loss": 1e5, "runtriage": {"status": "broken", "loss": {"z_max": 5.8}}}'
    assert own_values(nested) == {"runtriage.status": "broken", "runtriage.loss.z_max": "5.8"}
    assert with_own(nested, {}) == '{"loss": 1e5}'

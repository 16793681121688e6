"""Rules hold up whatever runs have logged."""

from __future__ import annotations

from datetime import date

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtriage.analysis.cohorts import fingerprint
from runtriage.analysis.prepare import prepare
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.rules.codec import decode_rules, encode_rules
from runtriage.rules.derive import Cohort, derive
from runtriage.rules.recipes import Member
from runtriage.rules.replay import replay

NAMES = (
    "loss", "grad_norm", "lr", "val_loss", "loss_scale", "clip_rate", "param_norm", "update_ratio", "attn_logit_max",
)
CONFIG = {"lr": 1.0}
values = st.one_of(st.floats(width=64), st.floats(0.1, 10.0), st.sampled_from([0.0, 1.0, 1e300, 5e-324, -1.0]))
steps = st.one_of(st.integers(0, 500), st.sampled_from([-(2**62), 2**62, 0]))


@st.composite
def tracks(draw: st.DrawFn) -> Track:
    size = draw(st.integers(0, 40))
    tidy = draw(st.booleans())
    step = np.arange(size) if tidy else np.array(draw(st.lists(steps, min_size=size, max_size=size)), dtype=np.int64)
    base = np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype=np.float64)
    value = np.tile(base, 12)
    step = np.concatenate([step + i * (size if tidy else 0) for i in range(12)]).astype(np.int64)
    pace = draw(st.sampled_from([None, 1.0, 1e5, 1e308]))
    wall = np.arange(value.size) + pace if pace is not None else None
    return Track(step=step, value=value, wall=wall)


@st.composite
def runs(draw: st.DrawFn) -> list[RunHistory]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    return [
        RunHistory(
            info=RunInfo(source="memory:", id=f"r{i}", config=CONFIG), tracks={name: draw(tracks()) for name in names}
        )
        for i in range(draw(st.integers(3, 5)))
    ]


@given(runs())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_runs_give_rules_that_can_be_written_read_and_replayed(some: list[RunHistory]) -> None:
    """No run makes derivation fail; what comes out validates, and is silent on the very runs it allows for."""
    members = [Member(run=prepare(history), history=history) for history in some]
    config = fingerprint(CONFIG)
    rules = derive([Cohort(config=config, healthy=members)], today=date(2026, 11, 30))
    read = decode_rules(encode_rules(rules))
    assert {rule.id: rule for rule in read.rules} == {rule.id: rule for rule in rules.rules}
    # A run that logs too little for a rule is not among those it was made from.
    from_all = [rule for rule in rules.rules if rule.measured is not None and rule.measured.runs == len(some)]
    assert [firing for history in some for firing in replay(from_all, history)] == []

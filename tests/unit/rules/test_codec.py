"""Rules as YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtriage.errors import CodecError
from runtriage.model.rule import RULES_SCHEMA, Above, AlertRule, Dropped, Ended, Knot, OutsideBand, RuleSet
from runtriage.rules.codec import decode_rules, encode_rules

HEAD = f"schema: {RULES_SCHEMA}\nrules:\n"
GOOD = HEAD + "  - {id: a, about: x, role: loss, condition: {is: above, value: 3}}\n"
ENDED = HEAD + "  - {id: a, about: x, condition: {is: ended, states: [failed]}}\n"
BAND = HEAD + "  - {id: a, about: x, role: loss, condition: {is: outside_band, window: 3, knots: [%s]}}\n"


def test_a_rule_written_by_hand_needs_only_what_it_says() -> None:
    """Id, sentence, role and condition make a rule; all else has defaults."""
    (rule,) = decode_rules(GOOD.encode()).rules
    assert rule == AlertRule(id="a", about="x", role="loss", condition=Above(value=3.0))


def test_a_rule_on_the_end_of_a_run_watches_no_metric() -> None:
    """The run itself is watched: neither role nor metric is asked for."""
    (rule,) = decode_rules(ENDED.encode()).rules
    assert rule == AlertRule(id="a", about="x", condition=Ended(states=("failed",)))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (GOOD.replace("value: 3", "value: high"), "$.rules[0].condition.value"),
        (GOOD.replace("value: 3", "value: .nan"), "$.rules[0].condition.value"),
        (GOOD.replace("value: 3", "value: 3, valve: 4"), "$.rules[0].condition"),
        (GOOD.replace("is: above", "is: abov"), "$.rules[0].condition.is"),
        (GOOD.replace("id: a", "id: a b"), "$.rules[0].id"),
        (GOOD.replace("role: loss, ", ""), "$.rules[0].role"),
        (ENDED.replace("[failed]", "[running]"), "$.rules[0].condition.states[0]"),
        (ENDED.replace("[failed]", "[]"), "$.rules[0].condition.states"),
        (ENDED.replace("x, ", "x, for_points: 2, "), "$.rules[0].for_points"),
        (GOOD.replace("x, ", "x, for_points: 0, "), "$.rules[0].for_points"),
        (GOOD.replace("x, ", "x, severity: loud, "), "$.rules[0].severity"),
        (GOOD.replace("x, ", "x, expires: 2026-13-01, "), "$.rules[0].expires"),
        (GOOD + GOOD.splitlines()[-1], "$.rules[1].id"),
        (BAND % "{step: 0, high: 1}, {step: 0, high: 2}", "$.rules[0].condition.knots[1].step"),
        (BAND % "{step: 0, low: 2, high: 1}, {step: 1, high: 2}", "$.rules[0].condition.knots[0].low"),
        (BAND % "{step: 0}, {step: 1, high: 2}", "$.rules[0].condition.knots[0]"),
        (BAND % "{step: 0, high: -1}, {step: 1, high: 2}", "$.rules[0].condition.knots[0].high"),
        (GOOD.replace(RULES_SCHEMA, "runtriage.rules/9"), "$.schema"),
        ("- 1\n", "$"),
        ("a: [1\n", "line 2, column 1"),
        (GOOD.replace("id: a,", "id: a, id: b,"), "line 3, column 13"),
        ("a: &x 1\nb: *x\n", "line 2, column 4"),
    ],
)
def test_a_mistake_is_named_by_its_path(text: str, where: str) -> None:
    """Each mistake is one CodecError whose ``where`` leads to it."""
    with pytest.raises(CodecError, match=r".") as caught:
        decode_rules(text.encode())
    assert caught.value.where == where


@pytest.mark.parametrize("content", [b"\xff\xfe", b"!!python/object:os.system {}", b"[" * 5000, b"x" * 8_000_001])
def test_hostile_files_are_refused(content: bytes) -> None:
    """Binary, tagged, deeply nested and huge files give a typed error."""
    with pytest.raises(CodecError, match=r"rules file"):
        decode_rules(content)


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
bounds = st.floats(1e-6, 1e6)
rules = st.builds(
    AlertRule, id=st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True), about=names, role=st.just("loss"),
    metric=names, config=names, for_points=st.integers(1, 9),
    condition=st.one_of(
        st.builds(Above, value=bounds),
        st.builds(
            lambda low, high: OutsideBand(
                window=3, knots=(Knot(step=0, low=low, high=low + high), Knot(step=9, high=high))
            ),
            bounds, bounds,
        ),
    ),
)


@given(st.lists(rules, max_size=4, unique_by=lambda rule: rule.id), names)
def test_what_is_written_is_read_again(some: list[AlertRule], hostile: str) -> None:
    """Decoding gives the rules back in the order of their ids, whatever names and sentences hold."""
    written = RuleSet(
        schema=RULES_SCHEMA, source=hostile, rules=tuple(some), dropped=(Dropped(id="x", reason=hostile),)
    )
    read = decode_rules(encode_rules(written))
    assert (read.rules, read.source) == (tuple(sorted(some, key=lambda rule: rule.id)), hostile)

"""Rules as W&B automations: what is said exactly, nearly, or not at all."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtriage.model.alert import Change, Channel, ChannelKind, Deviation, Over, RunEnd, Threshold, Trigger
from runtriage.model.rule import (
    Above,
    AlertRule,
    Backwards,
    Below,
    Condition,
    Drop,
    Ended,
    Jump,
    Knot,
    Measured,
    NonFinite,
    OutsideBand,
    OverBest,
    Provenance,
    ShareAbove,
    Stalled,
    ZScore,
)
from runtriage.outputs.wandb_automations import Compiled, compile_rules
from runtriage.outputs.wandb_triggers import Watched
from runtriage.testing.strategies import names

SLACK = Channel(kind=ChannelKind.SLACK, id="s", name="#alerts", place="Acme")
BAND = OutsideBand(window=1, knots=(Knot(step=0, high=1.0), Knot(step=9, high=2.0)))


def rule(condition: Condition, id_: str = "a", **fields: object) -> AlertRule:
    """Return a rule on the metric m."""
    return AlertRule(**{"id": id_, "about": "It is bad.", "metric": "m", "condition": condition, **fields})


def compiled(*rules: AlertRule, squared: bool = False, approximate: bool = False) -> Compiled:
    """Compile rules for the project p."""
    watched = {one.id: Watched(metric=one.metric, squared=squared) for one in rules}
    return compile_rules(rules, watched, project="p", channel=SLACK, approximate=approximate)


@pytest.mark.parametrize(
    ("condition", "points", "trigger"),
    [
        (Above(value=3), 1, Threshold(metric="m", above=True, value=3)),
        (Above(value=3), 4, Threshold(metric="m", above=True, value=3, over=Over.MIN, window=4)),
        (Below(value=3), 1, Threshold(metric="m", above=False, value=3)),
        (Below(value=3), 4, Threshold(metric="m", above=False, value=3, over=Over.MAX, window=4)),
        (Drop(window=30, factor=4), 1, Change(metric="m", up=False, share=0.75, over=Over.MAX, window=1, before=30)),
        (Ended(states=("failed", "finished")), 1, RunEnd(states=("failed", "finished"))),
    ],
)
def test_what_an_automation_says_exactly_is_compiled(condition: Condition, points: int, trigger: Trigger) -> None:
    """For so many points in a row means that the smallest, or the largest, of them passes the limit."""
    found = compiled(rule(condition, for_points=points))
    assert [alert.trigger for alert in found.alerts] == [trigger]
    assert found.left == ()


@pytest.mark.parametrize(
    ("condition", "fields", "trigger", "words"),
    [
        (
            Jump(window=30, factor=1.62), {},
            Change(metric="m", up=True, share=0.62, over=Over.AVERAGE, window=1, before=30), "stands for their median",
        ),
        (
            Jump(window=30, factor=2), {"for_points": 3},
            Change(metric="m", up=True, share=1.0, over=Over.AVERAGE, window=3, before=30), "mean of 3 values",
        ),
        (
            Drop(window=30, factor=2), {"for_points": 3},
            Change(metric="m", up=False, share=0.5, over=Over.MAX, window=3, before=30), "largest of 3 values",
        ),
        (
            ShareAbove(window=200, share=0.4), {},
            Threshold(metric="m", above=True, value=0.4, over=Over.AVERAGE, window=200), "zeros and ones",
        ),
        (ZScore(window=30, limit=3), {}, Deviation(metric="m", window=30, limit=3), "across runs"),
        (Above(value=3), {"after_step": 9}, Threshold(metric="m", above=True, value=3), "before step 9"),
        (Above(value=3), {"config": "c0ffee"}, Threshold(metric="m", above=True, value=3), "every config"),
        (Ended(states=("failed", "killed")), {}, RunEnd(states=("failed",)), "nothing of a run that was killed"),
    ],
)
def test_what_it_says_nearly_is_compiled_only_when_asked_for(
    condition: Condition, fields: dict[str, object], trigger: Trigger, words: str
) -> None:
    """Without being asked the rule is left with what would differ; when asked, that is written into the automation."""
    one = rule(condition, **fields)
    ((left,), found) = compiled(one).left, compiled(one, approximate=True)
    assert (left.nearly, words in left.reason) == (True, True)
    assert [alert.trigger for alert in found.alerts] == [trigger]
    assert words in found.alerts[0].description


@pytest.mark.parametrize(
    ("condition", "points", "words"),
    [
        (NonFinite(), 1, "NaN"),
        (BAND, 1, "changes with the step"),
        (OverBest(factor=2), 1, "best value"),
        (Backwards(), 1, "go back"),
        (Stalled(seconds=600), 1, "no value arrives"),
        (ZScore(window=30, limit=3), 2, "several points"),
        (ShareAbove(window=30, share=0.5), 2, "several points"),
        (Jump(window=30, factor=1e200), 1, "beyond any automation"),
        (Ended(states=("killed",)), 1, "killed"),
    ],
)
def test_what_it_cannot_say_is_left_with_the_reason(condition: Condition, points: int, words: str) -> None:
    """Nothing is dropped without a word, asked for or not."""
    found = compiled(rule(condition, for_points=points), approximate=True)
    assert found.alerts == ()
    assert [words in left.reason and not left.nearly for left in found.left] == [True]


@pytest.mark.parametrize(
    ("condition", "trigger"),
    [
        (Above(value=3), Threshold(metric="m", above=True, value=9)),
        (Jump(window=30, factor=2), Change(metric="m", up=True, share=3.0, over=Over.AVERAGE, window=1, before=30)),
        (Drop(window=30, factor=2), Change(metric="m", up=False, share=0.75, over=Over.MAX, window=1, before=30)),
    ],
)
def test_limits_on_a_root_are_squared_where_the_square_is_logged(condition: Condition, trigger: Trigger) -> None:
    """The rule is about the norm; the automation sees its square."""
    found = compiled(rule(condition), squared=True, approximate=True)
    assert [alert.trigger for alert in found.alerts] == [trigger]


@pytest.mark.parametrize("condition", [Below(value=-1), Above(value=1e200), ZScore(window=9, limit=3)])
def test_what_squares_cannot_say_is_left(condition: Condition) -> None:
    """A negative limit, one without a square, and deviations of a square mean nothing."""
    assert compiled(rule(condition), squared=True, approximate=True).alerts == ()


def test_rules_of_several_configs_become_one_with_the_loosest_limit() -> None:
    """An automation sees every run: only what would alarm in each of the configs is an alarm."""
    rules = [
        rule(Jump(window=30, factor=f), f"spike-{c}", config=c) for f, c in ((1.5, "aa"), (2.5, "bb"), (2.0, "cc"))
    ]
    (alert,) = compiled(*rules, approximate=True).alerts
    assert (alert.name, alert.trigger.share) == ("runtriage:p:spike.any", 1.5)
    assert "loosest of the limits of 3 configs" in alert.description


@pytest.mark.parametrize(("condition", "loosest"), [(Above, 3.0), (Below, 1.0)])
def test_the_loosest_limit_is_the_one_that_speaks_least(condition: type[Above | Below], loosest: float) -> None:
    """The highest of upper limits, the lowest of lower ones."""
    rules = [rule(condition(value=v), f"x-{c}", config=c) for v, c in ((1.0, "aa"), (3.0, "bb"))]
    (alert,) = compiled(*rules, approximate=True).alerts
    assert alert.trigger.value == loosest


def test_what_differs_in_more_than_its_limit_is_not_put_together() -> None:
    """Another metric or window is another automation, with a name of its own."""
    rules = [
        rule(Jump(window=w, factor=2), f"spike-{c}", config=c, metric=m)
        for w, c, m in ((30, "aa", "m"), (30, "bb", "n"), (50, "cc", "m"))
    ]
    found = compiled(*rules, approximate=True).alerts
    assert len({alert.name for alert in found}) == 3
    assert {(alert.trigger.metric, alert.trigger.before) for alert in found} == {("m", 30), ("n", 30), ("m", 50)}


def test_a_rule_of_which_nothing_is_known_keeps_what_is_there() -> None:
    """A metric that cannot be looked up now takes no automation away, under none of the names it may have."""
    rules = [rule(Above(value=1), "x-aa", config="aa"), rule(Above(value=1), "y")]
    found = compile_rules(rules, {"x-aa": "unread", "y": "unread"}, project="p", channel=SLACK)
    assert [left.reason for left in found.left] == ["unread", "unread"]
    kept = ["runtriage:p:x.any", "runtriage:p:x.any-0123ab", "runtriage:p:x-aa", "runtriage:p:y"]
    assert [found.keeps(name) for name in [*kept, "runtriage:p:z", "runtriage:p:y-z"]] == [True] * 4 + [False] * 2


def test_a_metric_that_is_no_text_is_left() -> None:
    """Half a surrogate pair cannot be sent, and would arrive as another name."""
    assert "no text" in compiled(rule(Above(value=1), metric="\ud800")).left[0].reason


def test_provenance_is_told() -> None:
    """People see how often the rule was wrong on healthy runs."""
    measured = Provenance(
        runs=8, false_alarms=Measured(fired=1, runs=8), pooled=Measured(fired=1, runs=8), at_most=0.5,
        hits=Measured(fired=0, runs=0),
    )
    (alert,) = compiled(rule(Above(value=1), measured=measured)).alerts
    assert "fired on 1 of 8 healthy runs" in alert.text


texts = st.one_of(names(), st.text(max_size=300))
conditions = st.one_of(
    st.builds(Above, value=st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(Jump, window=st.integers(2, 99), factor=st.floats(1.0, 1e99, exclude_min=True)),
    st.builds(Drop, window=st.integers(2, 99), factor=st.floats(1.0, 1e99, exclude_min=True)),
    st.builds(ZScore, window=st.integers(2, 99), limit=st.floats(0, 9, exclude_min=True)),
    st.builds(ShareAbove, window=st.integers(2, 99), share=st.floats(0, 1, exclude_min=True, exclude_max=True)),
    st.just(NonFinite()), st.just(BAND), st.just(Ended()),
)
rules = st.builds(
    AlertRule, id=st.from_regex(r"[A-Za-z0-9_-]{1,80}", fullmatch=True), about=texts, metric=texts, config=texts,
    condition=conditions, for_points=st.integers(1, 3), after_step=st.integers(0, 2),
)


@given(st.lists(rules, max_size=5, unique_by=lambda one: one.id), st.text(max_size=128), st.booleans(), st.booleans())
def test_hostile_rules_make_harmless_automations(
    some: list[AlertRule], project: str, approximate: bool, squared: bool  # noqa: FBT001
) -> None:
    """Names stay short, unique and ours; texts mention nobody and name no secret; every rule is told of once."""
    watched = {one.id: Watched(metric=one.metric, squared=squared) for one in some}
    found = compile_rules(some, watched, project=project, channel=SLACK, approximate=approximate)
    assert found.said + len(found.left) == len(some)
    assert len({alert.name for alert in found.alerts}) == len(found.alerts)
    for alert in found.alerts:
        assert alert.name.startswith("runtriage:")
        assert len(alert.name) <= 255
        said = [alert.title, alert.text, *(v for k, v in alert.facts.items() if k in {"about", "condition", "rule"})]
        assert not set("<>@$\r\x1b\u202e\u2028") & set("".join(said))
        assert len(alert.description) < 3000
        share = getattr(alert.trigger, "share", 1.0)
        assert 0 < share < float("inf")
        assert msgspec.json.encode(alert)


@given(st.lists(rules, max_size=5, unique_by=lambda one: one.id))
def test_the_order_of_the_rules_does_not_matter(some: list[AlertRule]) -> None:
    """The same rules give the same automations with the same digests."""
    there, back = (compiled(*order, approximate=True).alerts for order in (some, some[::-1]))
    assert [alert.digest for alert in there] == [alert.digest for alert in back]


def test_compiled_is_a_value() -> None:
    """Two compilations of the same rules are equal, field by field."""
    one, two = (compiled(rule(Above(value=1))) for _ in range(2))
    assert dataclasses.asdict(one) == dataclasses.asdict(two)

"""The provisioning file for Grafana: its documented form, hostile words, and rules that are no longer wanted."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
import pytest
import yaml

from runtriage.cli.rules_targets import Grafana
from runtriage.errors import UsageError
from runtriage.model.rule import (
    RULES_SCHEMA,
    Above,
    AlertRule,
    Backwards,
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
    RuleSet,
    ShareAbove,
    Stalled,
    ZScore,
)
from runtriage.outputs.grafana_rules import FILE, MARK, uid

HOSTILE = (
    '{{{ $labels.run }} $HOME ${x} $__file{/etc/passwd} {$ "\\ '
    '\n- uid: runtriage-000000000000000000000000\n\x1b[31m'
)
CONDITIONS: tuple[Condition, ...] = (
    NonFinite(), Above(value=1.0), Jump(window=30, factor=2.0), Drop(window=3, factor=2.0), OverBest(factor=2.0),
    ShareAbove(window=3, share=0.5), ZScore(window=3, limit=2.0), Backwards(), Stalled(seconds=600.0), Ended(),
    OutsideBand(window=3, knots=(Knot(step=0, high=2.0), Knot(step=9, high=1.0))),
)

Duration = Annotated[str, msgspec.Meta(pattern=r"^([0-9]+(ms|[smhdwy]))+$|^0$")]
Uid = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=190)]


class Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Unknown fields are mistakes, which Grafana itself would pass over."""


class Range(Strict):
    """The field ``relativeTimeRange``."""

    from_: int = msgspec.field(name="from")
    to: int


class Asked(Strict):
    """One of ``data``."""

    ref_id: str
    relative_time_range: Range
    datasource_uid: Uid
    model: dict[str, Any]


class Alert(Strict):
    """One of ``rules``: the required fields of the documentation, and of the optional ones those that we use."""

    uid: Uid
    title: Name
    condition: str
    data: Annotated[list[Asked], msgspec.Meta(min_length=1)]
    no_data_state: Literal["NoData", "Alerting", "OK", "KeepLast"]
    exec_err_state: Literal["Error", "Alerting", "OK", "KeepLast"]
    for_: Duration = msgspec.field(name="for")
    annotations: dict[str, str]
    labels: dict[Annotated[str, msgspec.Meta(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")], str]
    is_paused: bool


class Group(Strict):
    """One of ``groups``."""

    org_id: int
    name: Name
    folder: Name
    interval: Duration
    rules: list[Alert]


class Gone(Strict):
    """One of ``deleteRules``."""

    org_id: int
    uid: Uid


class File(Strict):
    """The file as docs/sources/alerting/…/file-provisioning of Grafana describes it."""

    api_version: Literal[1]
    groups: list[Group] = []
    delete_rules: list[Gone] = []


def compiled(*rules: AlertRule, source: str = "", present: str | None = None) -> str:
    before = {FILE: present.encode()} if present is not None else {}
    whole = RuleSet(schema=RULES_SCHEMA, source=source, rules=rules)
    return Grafana("mlflow").compile(whole, before).files[FILE].decode()


def parsed(text: str) -> File:
    return msgspec.convert(yaml.safe_load(text), File)


def rule(rule_id: str = "a", **facts: Any) -> AlertRule:
    given = {"about": "The loss is bad.", "role": "loss", "metric": "loss", "condition": NonFinite()}
    return AlertRule(id=rule_id, **{**given, **facts})


def test_every_kind_of_rule_has_the_documented_form() -> None:
    """All conditions make a file that has no unknown field and misses no required one."""
    rules = [rule(f"r{i}", condition=condition, config="0123e5678901") for i, condition in enumerate(CONDITIONS)]
    (group,) = parsed(compiled(*rules)).groups
    assert (group.name, group.interval, len(group.rules)) == ("runtriage 0123e5678901", "1m", len(CONDITIONS))


def test_a_rule_asks_the_data_source_and_fires_on_a_step() -> None:
    """Query A is a table from the data source, B a threshold over it; no run and a broken query are told apart."""
    ((alert,),) = (group.rules for group in parsed(compiled(rule())).groups)
    a, b = alert.data
    assert (a.datasource_uid, a.model["format"], a.model["rawSql"].split()[0]) == ("mlflow", "table", "with")
    assert (b.datasource_uid, b.model["expression"], b.ref_id) == ("__expr__", "A", alert.condition)
    assert b.model["conditions"][0]["evaluator"] == {"type": "gt", "params": [-1]}
    assert (alert.no_data_state, alert.exec_err_state) == ("OK", "Error")


def test_an_alert_says_what_was_seen_what_may_be_the_cause_and_how_to_check() -> None:
    """The three parts, the run from its labels, and how far the rule can be trusted."""
    measured = Provenance(
        runs=5, false_alarms=Measured(fired=0, runs=5), pooled=Measured(fired=1, runs=90), at_most=0.05,
        hits=Measured(fired=1, runs=2),
    )
    ((alert,),) = (group.rules for group in parsed(compiled(rule(measured=measured, expires="2027-04-01"))).groups)
    text = alert.annotations["description"]
    assert text.startswith("Seen: The loss is bad. Run {{ .Labels.run }} of {{ .Labels.experiment }}.")
    assert "Likely causes: Numerical overflow (45%); LR too large (25%)" in text
    assert "How to check: Replay the step in fp32" in text
    assert "From 5 healthy runs" in text
    assert "on 1 of 90 over all configs" in text
    assert "Derive it again after 2027-04-01." in text


@pytest.mark.parametrize("where", ["about", "metric", "config"])
def test_hostile_words_make_no_variable_and_no_template(where: str) -> None:
    """Outside of comments no ``$`` is left, every ``{{`` opens one of our own actions, and no uid is planted."""
    text = compiled(rule(**{where: HOSTILE}))
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert "$" not in body
    ((alert,),) = (group.rules for group in parsed(text).groups)
    for annotation in alert.annotations.values():
        rest = re.sub(
            r'\{\{ (\.Labels\.\w+|"\{"|"\\x24"|with \.Values\.A|printf "%\.0f" \.Value|end) \}\}', "", annotation
        )
        assert "{" not in rest
    assert all(letter.isprintable() or letter == "\n" for note in alert.annotations.values() for letter in note)
    assert parsed(compiled(present=text)).delete_rules == [Gone(org_id=1, uid=uid("a"))]


def test_what_a_template_says_is_what_was_written() -> None:
    """Expanded as Grafana would, an annotation shows the braces and dollars of the rule's own words."""
    ((alert,),) = (group.rules for group in parsed(compiled(rule(about="Is {{ $x }} > ${y}?"))).groups)
    shown = alert.annotations["summary"].replace('{{ "{" }}', "{").replace('{{ "\\x24" }}', "$")
    assert shown.startswith("Is {{ $x }} > ${y}? Run")


def test_rules_in_another_order_give_the_same_bytes() -> None:
    """The order in the rules file does not matter."""
    rules = [rule(name, config=config) for name, config in (("b", ""), ("a", "ab"), ("c", "ab"), ("d", ""))]
    assert compiled(*rules) == compiled(*reversed(rules))


def test_a_rule_that_is_no_longer_wanted_is_deleted_until_it_is_wanted_again() -> None:
    """Grafana keeps what it was given: the file goes on asking for its deletion, and stops once the rule is back."""
    first = compiled(rule("a"), rule("b"))
    second = compiled(rule("b"), present=first)
    assert [gone.uid for gone in parsed(second).delete_rules] == [uid("a")]
    assert compiled(rule("b"), present=second) == second
    assert parsed(compiled(rule("a"), rule("b"), present=second)).delete_rules == []


def test_a_farewell_deletes_all_and_is_said_once() -> None:
    """The file that replaces the rules has none and deletes each of them; it is itself simply removed."""
    target = Grafana("mlflow")
    present = compiled(rule("b"), present=compiled(rule("a"))).encode()
    (last,) = target.farewell({FILE: present}).values()
    assert parsed(last.decode()).groups == []
    assert {gone.uid for gone in parsed(last.decode()).delete_rules} == {uid("a"), uid("b")}
    assert last.startswith(MARK.encode())
    assert target.farewell({FILE: last}) == {}


def test_what_cannot_be_said_stands_in_the_file_and_is_told() -> None:
    """A rule by role alone is no part of the groups; its reason is a comment and a note."""
    whole = RuleSet(schema=RULES_SCHEMA, rules=(rule("a", metric=""), rule("b", config="ab12")))
    done = Grafana("mlflow").compile(whole, {})
    text = done.files[FILE].decode()
    assert [alert.title for group in parsed(text).groups for alert in group.rules] == ["b"]
    assert "# Not said here: a: it names no metric" in text
    assert [note.partition(":")[0] for note in done.notes] == ["not for Grafana", "1 rule"]


@pytest.mark.parametrize(
    ("source", "found"),
    [("mlflow://h:1/pre train", True), ("mlflow-sql:postgresql://h/db#pre train", True), ("files:pre train", False)],
)
def test_the_experiment_of_the_rules_is_the_only_one_looked_at(source: str, *, found: bool) -> None:
    """Rules derived from an experiment of MLflow's stay with it; others look at the whole database."""
    assert ("e.name = 'pre train'" in compiled(rule(), source=source)) is found


@pytest.mark.parametrize("bad", ["", "a b", "$X", "x" * 41])
def test_a_uid_that_grafana_would_refuse_is_refused(bad: str) -> None:
    """The data source is named by its uid."""
    with pytest.raises(UsageError, match="no uid"):
        Grafana(bad)

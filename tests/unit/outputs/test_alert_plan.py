"""What has to change so that a tracker watches for exactly our alerts."""

from __future__ import annotations

import msgspec
import pytest

from runtriage.model.alert import PREFIX, Alert, Channel, ChannelKind, Placed, Threshold
from runtriage.model.vocab import Severity
from runtriage.outputs.alert_plan import AlertPlan, plan_alerts

OURS = f"{PREFIX}p:"


def alert(key: str, value: float = 1.0) -> Alert:
    """Return an alert."""
    return Alert(
        name=OURS + key, about="a", title="t", text="x", facts={}, severity=Severity.WARNING,
        trigger=Threshold(metric="m", above=True, value=value),
        channel=Channel(kind=ChannelKind.SLACK, id="s", name="c"),
    )


def placed(one: Alert, id_: str = "1", **fields: object) -> Placed:
    """Return what is found once an alert was put."""
    found = Placed(id=id_, name=one.name, description=one.description, trigger=one.trigger)
    return msgspec.structs.replace(found, **fields)


def plan(wanted: list[Alert], present: list[Placed]) -> AlertPlan:
    """Plan for the project p."""
    return plan_alerts(wanted, present, prefix=OURS)


def test_a_second_plan_is_empty() -> None:
    """What was put is as it should be."""
    assert not plan([alert("a")], [placed(alert("a"))])


def test_new_changed_and_vanished_ones() -> None:
    """Each is made, changed where it stands, or removed."""
    found = plan([alert("new"), alert("a", 2.0)], [placed(alert("a")), placed(alert("old"), "2")])
    assert [one.name for one in found.make] == [OURS + "new"]
    assert [(one.id, new.trigger.value) for one, new in found.change] == [("1", 2.0)]
    assert [one.id for one in found.remove] == ["2"]


@pytest.mark.parametrize(
    "foreign",
    [
        Placed(id="f", name="runtriage:p:a", description="made by hand"),
        Placed(id="f", name="runtriage", description=alert("a").description),
        Placed(id="f", name="Runtriage:p:a", description=alert("a").description),
        Placed(id="f", name="runtriage:p:a copy", description=alert("a").description),
        Placed(id="f", name="runtriage:p:b", description=alert("a").description),
        Placed(id="f", name="runtriage:p:a", description=alert("a").description + " edited"),
        Placed(id="f", name="runtriage:p:a", description=""),
    ],
)
def test_what_is_not_ours_is_never_in_a_plan(foreign: Placed) -> None:
    """Neither the prefix nor the mark alone makes an alert ours, and a mark is good for one name only."""
    assert foreign.digest is None
    found = plan([], [foreign])
    assert (bool(found), found.kept, found.same) == (False, (), ())


def test_a_name_that_is_taken_is_told_and_left_alone() -> None:
    """Somebody else's alert under our name stays; ours cannot be made."""
    found = plan([alert("a")], [Placed(id="f", name=alert("a").name, description="mine")])
    assert (bool(found), [one.name for one in found.blocked]) == (False, [OURS + "a"])


def test_other_projects_are_left_alone() -> None:
    """Ours of another project are not vanished."""
    other = msgspec.structs.replace(alert("a"), name=f"{PREFIX}q:a")
    assert not plan([], [placed(other)])


def test_of_twins_one_stays() -> None:
    """Two of ours with one name, after a race, become one."""
    found = plan([alert("a")], [placed(alert("a"), "2"), placed(alert("a"), "1")])
    assert [one.id for one in found.remove] == ["2"]


def test_an_edit_at_the_tracker_is_told_and_kept() -> None:
    """A limit that somebody changed there stays until the rule changes, and is no reason to write."""
    edited = placed(alert("a"), trigger=Threshold(metric="m", above=True, value=7.0))
    found = plan([alert("a")], [edited])
    assert (bool(found), found.edited) == (False, (edited,))


def test_what_cannot_be_said_now_is_kept() -> None:
    """An alert whose rule is unclear is neither wanted nor removed."""
    found = plan_alerts([], [placed(alert("a"))], prefix=OURS, keep=lambda name: name == OURS + "a")
    assert (bool(found), [one.name for one in found.kept]) == (False, [OURS + "a"])

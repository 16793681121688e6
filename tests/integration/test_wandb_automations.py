"""Automations through the real client: what is sent, what is found again, and what goes wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

pytest.importorskip("wandb")

from wandb_server import Behaviour, StandIn
from wandb_server.automations import add_foreign, add_slack, add_webhook
from wandb_server.samples import QUICK

from runtriage.errors import AccessRefusedError, AlertWriteError, SourceError
from runtriage.model.alert import (
    Alert,
    Change,
    Channel,
    ChannelKind,
    Deviation,
    Over,
    Placed,
    RunEnd,
    Threshold,
    Trigger,
)
from runtriage.model.vocab import Severity
from runtriage.outputs.alert_plan import plan_alerts
from runtriage.testing.strategies import HOSTILE_NAMES
from runtriage.trackers.base import RuleTarget
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
BY_TEAM = "QUERY_AUTOMATIONS_ON_ENTITY"
NEW = frozenset({BY_TEAM, "AUTOMATION_EVENT_RUN_METRIC_ZSCORE", "AUTOMATION_ACTION_NO_OP"})
TRIGGERS: tuple[Trigger, ...] = (
    Threshold(metric="m", above=True, value=1.5),
    Threshold(metric="m", above=False, value=-3.0, over=Over.MAX, window=5),
    Threshold(metric="m", above=True, value=0.4, over=Over.AVERAGE, window=200),
    Change(metric="m", up=True, share=0.62, over=Over.AVERAGE, window=1, before=30),
    Change(metric="m", up=False, share=0.5, over=Over.MAX, window=1, before=30),
    Deviation(metric="m", window=30, limit=3.0),
    RunEnd(states=("failed", "finished")),
)


@pytest.fixture(params=["old", "new"])
def target(server: StandIn, source: WandbSource, request: pytest.FixtureRequest) -> Iterator[WandbSource]:
    """Open the project team/p of a server that lists automations by project (old) or by team (new)."""
    server.world.triggers.clear()
    server.world.integrations.clear()
    server.world.behaviour = Behaviour(features=NEW if request.param == "new" else NEW - {BY_TEAM})
    opened = WandbSource("wandb://team/p", limits=QUICK)  # the service asks once for a server's features
    opened.client.service()
    yield opened
    opened.close()


@pytest.fixture
def slack(server: StandIn, target: WandbSource) -> Channel:
    """Connect a Slack channel."""
    add_slack(server.world, "#alerts")
    return target.channels()[0]


def alert(channel: Channel, key: str = "a", trigger: Trigger = TRIGGERS[0], **fields: object) -> Alert:
    """Return an alert."""
    facts = {"name": f"runtriage:p:{key}", "about": "About.", "title": "Title", "text": "Text"} | fields
    return Alert(
        facts={"run": "x"}, severity=Severity.CRITICAL, trigger=trigger, channel=channel, **facts
    )


def planned(target: WandbSource, *wanted: Alert) -> bool:
    """Tell whether there is anything to do."""
    return bool(plan_alerts(wanted, target.read_alerts(), prefix="runtriage:p:"))


def test_a_project_is_a_rule_target(target: WandbSource) -> None:
    """The ability is part of the source."""
    assert isinstance(target, RuleTarget)


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda trigger: type(trigger).__name__)
def test_what_is_put_is_found_again(target: WandbSource, slack: Channel, trigger: Trigger) -> None:
    """The server takes it, and it comes back with our mark and the same trigger."""
    wanted = alert(slack, trigger=trigger)
    target.put_alert(wanted)
    (found,) = target.read_alerts()
    assert (found.digest, found.trigger, planned(target, wanted)) == (wanted.digest, trigger, False)


def test_a_webhook_gets_the_facts(server: StandIn, target: WandbSource) -> None:
    """The payload is the object that was made, and the channel shows its host but not its secret path."""
    add_webhook(server.world, "ci")
    (hook,) = target.channels()
    target.put_alert(alert(hook))
    (stored,) = server.world.triggers.values()
    assert (hook.kind, hook.place) == (ChannelKind.WEBHOOK, "hooks.example.invalid")
    assert stored["action"]["requestPayload"] == '{"run":"x"}'


def test_hostile_metric_names_arrive_as_they_are(target: WandbSource, slack: Channel) -> None:
    """Neither GraphQL nor the JSON in JSON in it is broken by a name."""
    for i, name in enumerate(HOSTILE_NAMES):
        trigger = Threshold(metric=name, above=True, value=1.0)
        target.put_alert(alert(slack, f"a{i}", trigger, title=name, text=name, about=name))
    found = target.read_alerts()
    assert [one.trigger.metric for one in found] == list(HOSTILE_NAMES)
    assert all(one.digest for one in found)


def test_a_change_keeps_id_and_switch(server: StandIn, target: WandbSource, slack: Channel) -> None:
    """An automation that somebody switched off stays off when its limit changes."""
    target.put_alert(alert(slack))
    (stored,) = server.world.triggers.values()
    stored["enabled"] = False
    (before,) = target.read_alerts()
    target.put_alert(alert(slack, trigger=TRIGGERS[5]), before)
    (after,) = target.read_alerts()
    assert (after.id, after.enabled, after.trigger) == (before.id, False, TRIGGERS[5])


def test_an_edit_in_the_pages_is_seen(server: StandIn, target: WandbSource, slack: Channel) -> None:
    """A limit changed there differs from ours, and is no reason to write."""
    wanted = alert(slack)
    target.put_alert(wanted)
    (stored,) = server.world.triggers.values()
    stored["event"] = (stored["event"][0], stored["event"][1].replace("1.5", "7.5"))
    plan = plan_alerts([wanted], target.read_alerts(), prefix="runtriage:p:")
    assert (bool(plan), [one.trigger.value for one in plan.edited]) == (False, [7.5])


def test_everything_is_listed_page_by_page(server: StandIn, target: WandbSource, slack: Channel) -> None:
    """Ours is found behind more than a page of others, and those of other projects are not shown."""
    server.world.add_project("team", "other")
    for i in range(230):
        add_foreign(server.world, f"theirs {i}", project="other" if i % 10 == 0 else "p")
    target.put_alert(alert(slack))
    found = target.read_alerts()
    assert (len(found), sum(one.digest is not None for one in found)) == (208, 1)


@pytest.mark.parametrize("kind", ["weave", "push", "artifact"])
def test_automations_the_client_cannot_read_do_no_harm(
    server: StandIn, target: WandbSource, slack: Channel, kind: str
) -> None:
    """A Weave or push automation of the team, at which the client's own listing stops, hides none of ours."""
    add_foreign(server.world, "theirs", kind=kind)
    target.put_alert(alert(slack))
    assert sorted((one.name, one.digest is not None) for one in target.read_alerts()) == [
        ("runtriage:p:a", True), ("theirs", False),
    ]
    target.put_alert(alert(slack, trigger=TRIGGERS[1]), next(o for o in target.read_alerts() if o.digest))
    for one in target.read_alerts():
        target.remove_alert(one)
    assert [one["name"] for one in server.world.triggers.values()] == ["theirs"]


@pytest.mark.parametrize("field", ["name", "description"])
def test_what_was_taken_over_meanwhile_is_left_alone(
    server: StandIn, target: WandbSource, slack: Channel, field: str
) -> None:
    """Between the look and the change somebody made it theirs: neither a change nor a removal touches it."""
    target.put_alert(alert(slack))
    (before,) = target.read_alerts()
    (stored,) = server.world.triggers.values()
    stored[field] = f"{stored[field]} is mine"
    kept = dict(stored)
    target.remove_alert(before)
    with contextlib.suppress(AlertWriteError):  # the name is taken, unless it is the name that was changed
        target.put_alert(alert(slack, trigger=TRIGGERS[1]), before)
    assert kept in server.world.triggers.values()


def test_a_name_that_is_taken_is_an_error(server: StandIn, target: WandbSource, slack: Channel) -> None:
    """Somebody else's automation under our name is not changed, in this project or in another of the team."""
    for project in ("p", "other"):
        server.world.triggers.clear()
        server.world.add_project("team", "other")
        add_foreign(server.world, alert(slack).name, project=project)
        with pytest.raises(AlertWriteError, match="is not ours"):
            target.put_alert(alert(slack))
        assert len(server.world.triggers) == 1


def test_what_the_server_has_not_is_said(server: StandIn, slack: Channel) -> None:
    """A server without z-scores is told from one that refuses."""
    server.world.behaviour = Behaviour()
    plain = WandbSource("wandb://team/p", limits=QUICK)
    with pytest.raises(AlertWriteError, match="not supported on this wandb server"):
        plain.put_alert(alert(slack, trigger=TRIGGERS[5]))


def test_missing_projects_and_teams_are_said(target: WandbSource) -> None:
    """Neither is a bug of ours nor a silent nothing."""
    elsewhere = WandbSource("wandb://nobody/nothing", limits=QUICK)
    with pytest.raises(SourceError, match="no such project"):
        elsewhere.read_alerts()
    with pytest.raises(SourceError, match="no such team"):
        elsewhere.channels()


LISTINGS = "GetEntityAutomations|GetEntityAutomationsLegacy"


@pytest.mark.parametrize(
    ("where", "kind"),
    [("GetProject", 500), (LISTINGS, 429), (LISTINGS, 500), ("CreateAutomation", 429), ("CreateAutomation", 500)],
)
def test_passing_faults_are_retried(
    server: StandIn, target: WandbSource, slack: Channel, where: str, kind: int
) -> None:
    """One bad answer of any request changes nothing."""
    server.fail(where, kind)
    target.put_alert(alert(slack))
    assert not any(fault.times for fault in server.faults)
    assert not planned(target, alert(slack))


def test_a_lost_answer_makes_no_second_one(server: StandIn, target: WandbSource, slack: Channel) -> None:
    """The server did it and answered 500: the client's own second try meets the first, or finds nothing to remove."""
    server.fail("CreateAutomation", "late")
    target.put_alert(alert(slack))
    server.fail("DeleteAutomation", "late")
    (found,) = target.read_alerts()
    target.remove_alert(found)
    assert server.world.triggers == {}


@pytest.mark.parametrize("where", ["CreateAutomation", "UpdateAutomation", "DeleteAutomation"])
def test_a_refusal_is_a_refusal(
    server: StandIn, target: WandbSource, slack: Channel, where: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """403 on a write is a typed error, and the client itself says nothing beside it."""
    before = None
    if where != "CreateAutomation":
        target.put_alert(alert(slack))
        (before,) = target.read_alerts()
    server.fail(where, 403, times=9)
    capfd.readouterr()
    with pytest.raises(AccessRefusedError):
        _write(target, slack, where, before)
    assert "ERROR" not in "".join(capfd.readouterr())


def test_a_failing_write_is_one_of_many(server: StandIn, target: WandbSource, slack: Channel) -> None:
    """What W&B says of a write it does not take is passed on; the next one can go on."""
    server.fail("CreateAutomation", 400)
    with pytest.raises(AlertWriteError, match="injected 400"):
        target.put_alert(alert(slack))
    target.put_alert(alert(slack))
    assert not planned(target, alert(slack))


def _write(target: WandbSource, slack: Channel, where: str, before: Placed | None) -> None:
    if where == "DeleteAutomation":
        assert before is not None
        target.remove_alert(before)
    else:
        target.put_alert(alert(slack, trigger=TRIGGERS[1]), before)

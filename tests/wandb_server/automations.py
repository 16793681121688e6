"""Automations and integrations of the stand-in: what is sent is checked, stored, and delivered page by page.

The checks are those of the client's generated input types and of W&B's documentation. Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from wandb_server.state import World
from wandb_server.writes import RefusalError

AGGREGATES = (None, "AVERAGE", "MIN", "MAX")
DIRECTIONS = ("INCREASE", "DECREASE", "ANY")
WEBHOOK = "https://hooks.example.invalid/x?key=s3cret"
SEVERITIES = ("INFO", "WARN", "ERROR")
ACTIONS = {
    "NOTIFICATION": "notificationActionInput", "GENERIC_WEBHOOK": "genericWebhookActionInput",
    "NO_OP": "noOpActionInput",
}
GATED = {
    "RUN_METRIC_ZSCORE": "AUTOMATION_EVENT_RUN_METRIC_ZSCORE", "NO_OP": "AUTOMATION_ACTION_NO_OP",
}
_WANTED = {"name", "enabled", "scopeType", "scopeID", "triggeringEventType", "eventFilter", "triggeredActionType",
           "triggeredActionConfig"}  # fmt: skip
_KNOWN = _WANTED | {"id", "description", "clientMutationId"}


def add_slack(world: World, channel: str, team: str = "Acme", *, entity: str = "team") -> str:
    """Connect a Slack channel, as only W&B's pages can; return its id."""
    return _add(world, entity, {"__typename": "SlackIntegration", "teamName": team, "channelName": channel})


def add_webhook(world: World, name: str, *, entity: str = "team") -> str:
    """Register a webhook; return its id."""
    return _add(world, entity, {"__typename": "GenericWebhookIntegration", "name": name, "urlEndpoint": WEBHOOK})


def add_foreign(
    world: World, name: str, *, description: str | None = None, project: str = "p", kind: str = "metric"
) -> str:
    """Make an automation as a person or another tool would; return its id.

    ``kind``: ``metric``, ``artifact``, or one that the client 0.31 cannot read: ``weave`` and ``push``.
    """
    with world.lock:
        key = world.next_id("VHJpZ2dlcjoy")
        metric = {"threshold_filter": {
            "name": "acc", "agg_op": None, "window_size": 1, "cmp_op": "$gt", "threshold": 0.9}}  # fmt: skip
        event_type, spec = "RUN_METRIC", {"run_filter": '{"$and":[]}', "run_metric_filter": metric}
        if kind == "artifact":
            event_type, spec = "LINK_MODEL", {"filter": json.dumps({"$or": [{"$and": []}]})}
        if kind == "weave":
            event_type, spec = "WEAVE_METRIC_THRESHOLD", {"weave": 1}
        action: dict[str, Any] = {"__typename": "NoOpTriggeredAction", "noOp": True}
        if kind == "push":
            action = {"__typename": "PushNotificationTriggeredAction"}
        world.triggers[key] = {
            "id": key, "name": name, "description": description, "enabled": True, "createdAt": "2026-11-01T00:00:00Z",
            "updatedAt": None, "key": ("team", project), "event": (event_type, json.dumps(spec)), "action": action,
        }
        return key


def trigger_node(world: World, trigger: dict[str, Any]) -> dict[str, Any]:
    """Return an automation as answers show it."""
    entity, project = trigger["key"]
    event_type, spec = trigger["event"]
    return {
        "__typename": "Trigger",
        **{k: trigger[k] for k in ("id", "name", "description", "enabled", "createdAt", "updatedAt")},
        "scope": {"__typename": "Project", "id": project_id(world, entity, project), "name": project},
        "event": {"__typename": "FilterEventTriggeringCondition", "eventType": event_type, "filter": spec},
        "action": trigger["action"],
    }


def project_id(world: World, entity: str, project: str) -> str:
    """Return the GraphQL id of a project."""
    return f"UHJvamVjdDp{world.projects[entity, project]}"


def _add(world: World, entity: str, fields: dict[str, Any]) -> str:
    with world.lock:
        key = world.next_id("SW50ZWdyYXRpb246")
        world.integrations[key] = {"id": key, "entity": entity, **fields}
        return key


def _need(condition: object, message: str) -> None:
    if not condition:
        raise RefusalError(400, message)


def _page(nodes: list[dict[str, Any]], v: dict[str, Any]) -> dict[str, Any]:
    """Cut a page out; a cursor is the place behind which it begins."""
    start = int(v["cursor"] or 0) if v.get("cursor") else 0
    part = nodes[start : start + (v.get("perPage") or 50)]
    stop = start + len(part)
    return {
        "edges": [{"node": node} for node in part],
        "pageInfo": {"endCursor": str(stop) if part else None, "hasNextPage": stop < len(nodes)},
    }


def _integrations(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    if v["entity"] not in {entity for entity, _ in world.projects}:
        return {"entity": None}
    known = ("__typename", "id", "teamName", "channelName", "name", "urlEndpoint")
    mine = [one for one in world.integrations.values() if one["entity"] == v["entity"]]
    return {"entity": {"integrations": _page([{k: one[k] for k in known if k in one} for one in mine], v)}}


def _of(world: World, keep: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    return [trigger_node(world, one) for one in world.triggers.values() if keep(one)]


def _by_entity(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    asked = json.loads(v.get("filters") or "{}")
    _need(set(asked) <= {"name"}, "unknown filter")
    name = asked.get("name")
    found = _of(world, lambda one: one["key"][0] == v["entity"] and name in {None, one["name"]})
    return {"scope": {"triggers": _page(found, v)}}


def _by_projects(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    keys = [key for key in world.projects if v.get("entity") in {None, key[0]}]
    nodes = [
        {"__typename": "Project", "triggers": _of(world, lambda one, key=key: one["key"] == key)} for key in keys
    ]
    return {"scope": {"projects": _page(nodes, v)}}


def _of_project(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    key = (v["entity"], v["project"])
    if key not in world.projects:
        return {"project": None}
    return {"project": {"id": project_id(world, *key), "triggers": _of(world, lambda one: one["key"] == key)}}


def _create(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    given = v["input"]
    _need(given.keys() >= _WANTED, f"missing: {sorted(_WANTED - given.keys())}")
    fields = _checked(world, given)
    if any(one["name"] == fields["name"] and one["key"][0] == fields["key"][0] for one in world.triggers.values()):
        raise RefusalError(409, "trigger with that name already exists")
    key = world.next_id("VHJpZ2dlcjox")
    world.triggers[key] = {"id": key, "createdAt": "2026-11-01T00:00:00Z", "updatedAt": None, **fields}
    return {"result": {"trigger": trigger_node(world, world.triggers[key])}}


def _update(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    given = v["input"]
    old = world.triggers.get(given["id"])
    if old is None:
        raise RefusalError(404, "trigger not found")
    _need(given.keys() >= _WANTED, "the client sends whole automations")
    fields = _checked(world, given)
    twin = [one for one in world.triggers.values() if one["name"] == fields["name"] and one is not old]
    if any(one["key"][0] == fields["key"][0] for one in twin):
        raise RefusalError(409, "trigger with that name already exists")
    old.update(fields, updatedAt="2026-11-02T00:00:00Z")
    return {"result": {"trigger": trigger_node(world, old)}}


def _delete(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    if world.triggers.pop(v["id"], None) is None:
        raise RefusalError(404, "trigger not found")
    return {"result": {"success": True}}


def _checked(world: World, given: dict[str, Any]) -> dict[str, Any]:
    """Return an automation to store, or refuse what was sent."""
    _need(given.keys() <= _KNOWN, f"unknown: {sorted(given.keys() - _KNOWN)}")
    name, scope, event = given["name"], given["scopeID"], given["triggeringEventType"]
    _need(isinstance(name, str) and 1 <= len(name) <= 255, "the name has 1 to 255 characters")
    _need(isinstance(given["enabled"], bool), "enabled is a boolean")
    _need(given["scopeType"] == "PROJECT", "only projects here")
    keys = [key for key in world.projects if project_id(world, *key) == scope]
    _need(keys, "no such project")
    for feature in (GATED.get(event), GATED.get(given["triggeredActionType"])):
        _need(feature is None or feature in world.behaviour.features, f"{feature} is off")
    try:
        _check_event(event, json.loads(given["eventFilter"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RefusalError(400, f"bad event filter: {error!r}") from None
    action = _action(world, keys[0][0], given["triggeredActionType"], given["triggeredActionConfig"])
    return {
        "name": name, "description": given.get("description"), "enabled": given["enabled"], "key": keys[0],
        "event": (event, given["eventFilter"]), "action": action,
    }


def _check_event(event: str, spec: dict[str, Any]) -> None:
    runs = json.loads(spec.pop("run_filter"))
    _need(set(runs) == {"$and"} and isinstance(runs["$and"], list), "a run filter is an $and")
    if event == "RUN_STATE":
        states = spec["run_state_filter"]["states"]
        _need(set(spec) == {"run_state_filter"} and states, "states")
        _need(set(states) <= {"RUNNING", "FINISHED", "FAILED"}, "unknown state")
        return
    _need(set(spec) == {"run_metric_filter", "metric_filter"} and spec["metric_filter"] is None, "metric filter")
    ((kind, inner),) = spec["run_metric_filter"].items()
    expected, keys = {
        "threshold_filter": ("RUN_METRIC", {"name", "agg_op", "window_size", "cmp_op", "threshold"}),
        "change_filter": ("RUN_METRIC_CHANGE", {"name", "agg_op", "current_window_size", "prior_window_size",
                                                "change_type", "change_dir", "change_amount"}),
        "zscore_filter": ("RUN_METRIC_ZSCORE", {"name", "window_size", "threshold", "change_dir"}),
    }[kind]  # fmt: skip
    _need(event == expected and set(inner) == keys, f"{kind} of {event}")
    _need(isinstance(inner["name"], str) and inner["name"], "a metric has a name")
    _need("\ufffd" not in inner["name"], "the name of the metric was damaged on its way")
    _need(inner.get("agg_op") in AGGREGATES, "aggregate")
    _need(inner.get("cmp_op", "$gt") in {"$gt", "$gte", "$lt", "$lte"}, "operator")
    _need(inner.get("change_dir", "ANY") in DIRECTIONS, "direction")
    _need(inner.get("change_type", "RELATIVE") in {"RELATIVE", "ABSOLUTE"}, "kind of change")
    for key in keys & {"window_size", "current_window_size", "prior_window_size"}:
        _need(type(inner[key]) is int and inner[key] >= 1, key)
    limit = inner.get("threshold", inner.get("change_amount"))
    _need(isinstance(limit, int | float) and math.isfinite(limit), "the limit is a number")
    _need(kind == "threshold_filter" or limit > 0, "the limit is positive")


def _action(world: World, entity: str, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in config.items() if value is not None}
    _need(kind in ACTIONS and set(given) == {ACTIONS[kind]}, "exactly the config of the action")
    inner = given[ACTIONS[kind]]
    if kind == "NO_OP":
        return {"__typename": "NoOpTriggeredAction", "noOp": True}
    to = world.integrations.get(inner["integrationID"])
    _need(to is not None and to["entity"] == entity, "no such integration")
    shown = {key: value for key, value in (to or {}).items() if key != "entity"}
    if kind == "NOTIFICATION":
        _need(shown["__typename"] == "SlackIntegration", "a notification goes to Slack")
        _need(inner["severity"] in SEVERITIES, "unknown severity")
        _need(set(inner) == {"integrationID", "title", "message", "severity"}, "fields of a notification")
        said = {key: inner[key] for key in ("title", "message", "severity")}
        return {"__typename": "NotificationTriggeredAction", "integration": shown, **said}
    _need(shown["__typename"] == "GenericWebhookIntegration", "a webhook needs a webhook")
    _need(isinstance(json.loads(inner["requestPayload"]), dict), "the payload is an object")
    return {
        "__typename": "GenericWebhookTriggeredAction", "integration": shown, "requestPayload": inner["requestPayload"],
    }


def ours(world: World) -> Iterable[dict[str, Any]]:
    """Return the stored automations that a run of ours would make, by their names."""
    return [one for one in world.triggers.values() if one["name"].startswith("runtriage:")]


HANDLERS: dict[str, Callable[[World, dict[str, Any], str, str], dict[str, Any]]] = {
    "IntegrationsByEntity": _integrations,
    "GetEntityAutomations": _by_entity,
    "GetEntityAutomationsLegacy": _by_projects,
    "GetAutomationsLegacy": _by_projects,
    "RuntriageAutomations": _of_project,
    "CreateAutomation": _create,
    "UpdateAutomation": _update,
    "DeleteAutomation": _delete,
}

"""Our alerts as automations of a W&B project, through the client's public API.

Automations of others are read, since there is no way to list only ours, and never changed: just before one is changed
or removed it is asked for again by its name, and left alone unless it still carries our mark. Proved with the client
0.31 against the stand-in server only.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from runtriage.errors import AlertWriteError, RunNotFoundError, RunReadError, SourceError
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
from runtriage.trackers.wandb.client import WandbClient, automation_types
from runtriage.trackers.wandb.failures import again, translated

_T = TypeVar("_T")
_PAGE = 100
_LEVELS = {Severity.INFO: "INFO", Severity.WARNING: "WARN", Severity.CRITICAL: "ERROR"}
_ALL = """query RuntriageAutomations($entity: String!, $project: String!) {
    project(name: $project, entityName: $entity) { id triggers { id name description enabled } }
}"""


def channels(client: WandbClient) -> tuple[Channel, ...]:
    """Return the Slack channels and webhooks of the team.

    Raises
    ------
    SourceError
        The server cannot be reached or refuses, or there is no such team.
    """
    with translated(client.where, whole=True):
        api = client.api()
        try:
            slack = list(api.slack_integrations(entity=client.entity, per_page=_PAGE))
            hooks = list(api.webhook_integrations(client.entity, per_page=_PAGE))
        except ValueError as error:
            if "Unexpected response data" not in str(error):
                raise
            raise SourceError("there is no such team, or it is not yours to see", where=client.where) from None
    return (
        *(Channel(kind=ChannelKind.SLACK, id=one.id, name=one.channel_name, place=one.team_name) for one in slack),
        *(
            Channel(kind=ChannelKind.WEBHOOK, id=one.id, name=one.name, place=_host(one.url_endpoint))
            for one in hooks
        ),
    )


def read_alerts(client: WandbClient) -> tuple[Placed, ...]:
    """Return the automations of the project, ours and others'.

    The client stops at the first automation of a kind that it does not know (a Weave metric, a push notification); the
    names and descriptions, which are all that matters for others', are then asked for without its help.

    Raises
    ------
    SourceError
        The server cannot be reached or refuses, or there is no such project.
    """
    with translated(client.where, whole=True):
        project = _project(client)
        try:
            found = again(lambda: list(client.api().automations(entity=client.entity, per_page=_PAGE)))
        except ValueError:  # what pydantic raises is one
            return _plain_listing(client)
    return tuple(_placed(one) for one in found if _is_in(one, project))


def put_alert(client: WandbClient, alert: Alert, before: Placed | None) -> None:
    """Make an automation, or change one of ours; whether it is switched on is left as it is.

    Raises
    ------
    AlertWriteError
        The server fails, or the name is that of an automation which is not ours.
    SourceError
        The server cannot be reached or refuses.
    """
    where = f"{client.where} {alert.name}"
    with _writing(where):
        project = _project(client)
        event, action = _event(alert.trigger, project), _action(alert)
        present = _of_name(client, project, alert.name)
        ours = [one for one in present if _placed(one).digest is not None]
        ours.sort(key=lambda one: before is None or one.id != before.id)
        if ours:
            if _placed(ours[0]).digest != alert.digest:
                _quietly(lambda: client.api().update_automation(
                    ours[0], event=event, action=action, description=alert.description
                ))
        elif present:
            raise AlertWriteError("an automation of this name is not ours", where=where)
        else:
            _make(client, project, alert, event >> action)


def remove_alert(client: WandbClient, placed: Placed) -> None:
    """Remove one of ours; one that is gone, or lost our mark, is left alone. Raises as :func:`put_alert`."""
    if placed.digest is None:
        return
    with _writing(f"{client.where} {placed.name}"):
        project = _project(client)
        for one in _of_name(client, project, placed.name):
            if one.id == placed.id and _placed(one).digest is not None:
                try:
                    client.api().delete_automation(one)
                except Exception:  # a second try of the client's own finds it gone
                    if any(left.id == one.id for left in _of_name(client, project, placed.name)):
                        raise


def _make(client: WandbClient, project: Any, alert: Alert, new: Any) -> None:
    """Make an automation; one that the server made before its answer was lost is found again."""
    try:
        client.api().create_automation(new, name=alert.name, description=alert.description, enabled=True)
    except Exception as error:
        if "exists. Unable to create" not in str(error):
            raise
        if any(_placed(one).digest == alert.digest for one in _of_name(client, project, alert.name)):
            return
        where = f"{client.where} {alert.name}"
        raise AlertWriteError("an automation of this name is not ours", where=where) from None


def _of_name(client: WandbClient, project: Any, name: str) -> list[Any]:
    """Return the automations of the project that have a name, as they are now."""
    found = again(lambda: list(client.api().automations(entity=client.entity, name=name, per_page=_PAGE)))
    return [one for one in found if one.name == name and _is_in(one, project)]


def _is_in(one: Any, project: Any) -> bool:
    return bool(getattr(one.scope, "id", None) == project.id)


def _project(client: WandbClient) -> Any:
    """Return the client's project object, read now: it raises what hides behind the client's own errors."""
    found = client.api().project(client.project, entity=client.entity)
    try:
        found.id  # noqa: B018  reads it
    except (AttributeError, ValueError) as error:
        if error.__cause__ is not None:
            raise error.__cause__ from None
        what = "there is no such project, or it is not yours to see"
        raise SourceError(what, where=client.where) from None
    return found


def _plain_listing(client: WandbClient) -> tuple[Placed, ...]:
    variables = {"entity": client.entity, "project": client.project}
    found = client.graphql(_ALL, variables, where=client.where).get("project") or {}
    return tuple(
        Placed(
            id=str(one["id"]), name=str(one["name"]), description=str(one.get("description") or ""),
            enabled=bool(one.get("enabled", True)),
        )
        for one in found.get("triggers") or ()
    )


def _placed(one: Any) -> Placed:
    return Placed(
        id=str(one.id), name=one.name, description=one.description or "", enabled=one.enabled,
        trigger=_trigger(one.event.filter),
    )


def _event(trigger: Trigger, scope: Any) -> Any:
    """Return the client's event for a trigger."""
    types = automation_types()
    match trigger:
        case Threshold():
            wanted = types.MetricThresholdFilter(
                name=trigger.metric, agg=_aggregate(trigger.over), window=trigger.window,
                cmp=">" if trigger.above else "<", threshold=trigger.value,
            )
        case Change():
            wanted = types.MetricChangeFilter(
                name=trigger.metric, agg=_aggregate(trigger.over), window=trigger.window, prior_window=trigger.before,
                change_type="RELATIVE", change_dir="INCREASE" if trigger.up else "DECREASE", threshold=trigger.share,
            )
        case Deviation():
            wanted = types.MetricZScoreFilter(
                name=trigger.metric, window=trigger.window, threshold=trigger.limit, change_dir="ANY"
            )
        case RunEnd():
            return types.OnRunState(scope=scope, filter=types.RunEvent.state.in_(list(trigger.states)))
    return types.OnRunMetric(scope=scope, filter=wanted)


def _action(alert: Alert) -> Any:
    types = automation_types()
    if alert.channel.kind is ChannelKind.SLACK:
        return types.SendNotification(
            integration_id=alert.channel.id, title=alert.title, message=alert.text, severity=_LEVELS[alert.severity]
        )
    return types.SendWebhook(integration_id=alert.channel.id, request_payload=dict(alert.facts))


def _trigger(found: Any) -> Trigger | None:
    """Return what an automation waits for, in our words; None for what we never write."""
    try:
        said = json.loads(found.model_dump_json())
        if (states := said.get("run_state_filter")) is not None:
            return RunEnd(states=tuple(sorted(state.lower() for state in states["states"])))
        metric = said["run_metric_filter"]
        if (inner := metric.get("threshold_filter")) is not None:
            return Threshold(
                metric=inner["name"], above=inner["cmp_op"] in {"$gt", "$gte"}, value=float(inner["threshold"]),
                over=_over(inner), window=inner["window_size"],
            )
        if (inner := metric.get("change_filter")) is not None:
            return Change(
                metric=inner["name"], up=inner["change_dir"] == "INCREASE", share=float(inner["change_amount"]),
                over=_over(inner), window=inner["current_window_size"], before=inner["prior_window_size"],
            )
        inner = metric["zscore_filter"]
        return Deviation(metric=inner["name"], window=inner["window_size"], limit=float(inner["threshold"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _aggregate(over: Over) -> str | None:
    return None if over is Over.EACH else over.value.upper()


def _over(inner: Mapping[str, Any]) -> Over:
    return Over(inner["agg_op"].lower()) if inner.get("agg_op") else Over.EACH


def _host(url: str) -> str:
    """Return the host of a webhook: its path and query may be secrets."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@contextmanager
def _writing(where: str) -> Iterator[None]:
    try:
        with translated(where):
            yield
    except RunNotFoundError as error:
        raise AlertWriteError("W&B does not know it, or its integration, any more", where=where) from error
    except RunReadError as error:
        raise AlertWriteError(error.message, where=where, hint=error.hint) from error


def _quietly(call: Callable[[], _T]) -> _T:
    """Call without the line that the client itself prints when an update fails: ours says the same."""
    with contextlib.redirect_stderr(io.StringIO()):
        return call()

"""Our marks on a whole project: a workspace view and a report, made once and updated in place.

A W&B project has no tags. What we would remember there is kept inside our own view, in the Markdown panel that shows
the digest, behind a marker; the view is found again by that marker and by nothing else, so one of the same name that
somebody else made is never touched. Proved with wandb-workspaces 0.4.13 against the stand-in server only.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from runtriage.errors import MarkWriteError, RunReadError, SourceUnreachableError
from runtriage.model.marks import OWN_PREFIX, Marks, WritePlan
from runtriage.model.vocab import Level
from runtriage.trackers.wandb import marks as own
from runtriage.trackers.wandb.client import WandbClient, workspace_modules
from runtriage.trackers.wandb.failures import translated
from runtriage.trackers.wandb.view import View, read_view

NAME = "runtriage"
"""Of the workspace view; the report has the title that the view's description gives."""
_MARKER = re.compile(r"<!-- runtriage:begin ([A-Za-z0-9+/=]+) -->")
_VIEWS = """query ProjectViews($project: String!, $entity: String!, $reportCursor: String, $reportLimit: Int!,
    $viewType: String = "runs", $viewName: String) {
    project(name: $project, entityName: $entity) {
        allViews(viewType: $viewType, viewName: $viewName, first: $reportLimit, after: $reportCursor) {
            edges { node { id name displayName spec } cursor }
            pageInfo { endCursor hasNextPage }
        }
    }
}"""
_DELETE = """mutation deleteView($id: ID!, $deleteDrafts: Boolean) {
    deleteView(input: { id: $id, deleteDrafts: $deleteDrafts }) { success }
}"""
FLAGGED = [own.TAG_PREFIX + level.value for level in (Level.WATCH, Level.SUSPICIOUS, Level.BROKEN)]
_KINDS = ("project-view", "runs")
_VIEW = f"{OWN_PREFIX}view"


def remember(values: Mapping[str, str]) -> str:
    """Return the marker that carries our values."""
    packed = base64.b64encode(msgspec.json.encode(dict(sorted(values.items())))).decode("ascii")
    return f"<!-- runtriage:begin {packed} -->"


def recall(spec: str) -> dict[str, str] | None:
    """Return the values in the spec of a view of ours; None if the view is not ours."""
    found = _MARKER.search(spec)
    if found is None:
        return None
    try:
        return own.decode_values(base64.b64decode(found[1], validate=True))
    except ValueError:
        return {}


def read_project(client: WandbClient) -> Marks:
    """Return our marks on a project; none that fit if view or report is missing or doubled, so that a plan mends it."""
    try:
        found = {kind: list(own_views(client, kind)) for kind in _KINDS}
    except RunReadError as error:
        raise MarkWriteError(error.message, where=error.where) from error
    values = [recall(view["spec"]) for views in found.values() for view in views]
    if not values:
        return Marks()
    if any(len(views) != 1 for views in found.values()) or values[0] != values[1]:
        return Marks(tags={_VIEW: "(incomplete)"})
    whole = dict(values[0] or {})
    note = whole.pop(own.NOTE, None)
    return Marks(tags=whole, note=note)


def apply_project(client: WandbClient, plan: WritePlan) -> None:
    """Carry out a plan on a project: write view and report, or delete them if nothing of ours is left.

    Raises
    ------
    MarkWriteError
        The server fails, or the plan holds something that is not ours to write.
    """
    own.check(plan, client.where)
    if not plan:
        return
    try:
        views = {kind: list(own_views(client, kind)) for kind in _KINDS}
        before = next((recall(each[0]["spec"]) for each in views.values() if each), None) or {}
        values = own.after(before, plan)
        for kind, present in views.items():
            _delete(client, kind, present[1:] if values else present)
        if values:
            _saved(client, "project-view", views["project-view"], partial(_save_view, client, values))
            _saved(client, "runs", views["runs"], partial(_save_report, client, values))
    except RunReadError as error:
        raise MarkWriteError(error.message, where=client.where, hint=error.hint) from error


def own_views(client: WandbClient, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the views of one kind that carry our marker."""
    variables: dict[str, Any] = {
        "entity": client.entity, "project": client.project, "viewType": kind, "reportLimit": 100, "reportCursor": None,
    }  # fmt: skip
    while True:
        page = client.graphql(_VIEWS, variables, where=client.where).get("project") or {}
        views = page.get("allViews") or {}
        for edge in views.get("edges") or ():
            node = dict(edge["node"])
            spec = node.get("spec") or ""
            node["spec"] = spec if isinstance(spec, str) else json.dumps(spec)
            if recall(node["spec"]) is not None:
                yield node
        info = views.get("pageInfo") or {}
        if not info.get("hasNextPage"):
            return
        variables["reportCursor"] = info.get("endCursor")


def _saved(
    client: WandbClient, kind: str, present: list[dict[str, Any]], save: Callable[[list[dict[str, Any]]], None]
) -> None:
    """Save a view or a report; one that is new is looked for afterwards, whatever came back.

    The client's service process sends again by itself what was answered with an error, done or not, and cannot be told
    not to. Each time it was done makes another view: one is kept.
    """
    if present:
        save(present[:1])
        return
    try:
        save([])
    except (RunReadError, SourceUnreachableError):
        if not (made := list(own_views(client, kind))):
            raise
    else:
        made = list(own_views(client, kind))
    _delete(client, kind, made[1:])


def _delete(client: WandbClient, kind: str, views: list[dict[str, Any]]) -> None:
    """Delete views; one that is gone when an error comes back was deleted before the answer was lost."""
    for view in views:
        try:
            client.graphql(_DELETE, {"id": view["id"], "deleteDrafts": True}, where=client.where)
        except RunReadError:
            if any(left["id"] == view["id"] for left in own_views(client, kind)):
                raise


def _digest(values: Mapping[str, str]) -> str:
    text = values.get(own.NOTE, "").replace("<!-- runtriage:", "&lt;!-- runtriage:")
    return f"{remember(values)}\n\n{text}"


def _plots(reports: Any, wanted: View) -> list[Any]:
    return [reports.LinePlot(title=chart.metric, x="Step", y=[chart.metric], log_y=chart.log) for chart in wanted.drawn]


def _save_view(client: WandbClient, values: Mapping[str, str], old: list[dict[str, Any]]) -> None:
    workspaces, reports = workspace_modules()
    wanted = read_view(values.get(_VIEW, ""))
    panels = [reports.MarkdownPanel(markdown=_digest(values)), *_plots(reports, wanted)]
    view = workspaces.Workspace(
        entity=client.entity,
        project=client.project,
        name=NAME,
        sections=[workspaces.Section(name="Triage", is_open=True, panels=panels)],
        runset_settings=workspaces.RunsetSettings(
            filters=[workspaces.Tags().isin(FLAGGED)], pinned_columns=wanted.pinned
        ),
    )
    if old:  # the package offers no other way to say which view is meant than to load it, ours or not as it then is
        view._internal_name, view._internal_id = old[0]["name"], old[0]["id"]  # noqa: SLF001
    with translated(client.where):  # it makes a client of its own, from the same environment
        view.save()


def _save_report(client: WandbClient, values: Mapping[str, str], old: list[dict[str, Any]]) -> None:
    workspaces, reports = workspace_modules()
    runs = reports.Runset(
        entity=client.entity, project=client.project, name="flagged", filters=[workspaces.Tags().isin(FLAGGED)]
    )
    wanted = read_view(values.get(_VIEW, ""))
    plots = _plots(reports, wanted)
    report = reports.Report(
        entity=client.entity,
        project=client.project,
        title=wanted.name,
        blocks=[reports.MarkdownBlock(_digest(values)), reports.PanelGrid(runsets=[runs], panels=plots)],
    )
    if old:
        report.id = old[0]["id"]
    with translated(client.where):  # it makes a client of its own, from the same environment
        report.save(draft=False)

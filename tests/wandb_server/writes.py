"""The mutations of the stand-in, and what goes with them: runs, files, views."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from wandb_server.state import StoredRun, World


class RefusalError(Exception):
    """An answer with a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _bucket(world: World, run: StoredRun) -> dict[str, Any]:
    from wandb_server.graphql import run_node  # noqa: PLC0415

    return run_node(world, run)


def _upsert_bucket(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    """Three documents have this name: core's (by name), the whole-run update, and narrow ones (by id)."""
    del document, url
    given = {**v, **v.get("input", {})} if isinstance(v.get("input"), dict) else v
    run = world.by_id(given.get("id"))
    inserted = False
    if run is None:
        entity = given.get("entity") or given.get("entityName") or "team"
        project = given.get("project") or given.get("modelName") or given.get("projectName") or "uncategorized"
        if given.get("name") is None:
            raise RefusalError(404, "run not found")
        run = world.runs.get((entity, project, given["name"]))
        if run is None:
            run = world.add_run(entity, project, given["name"], state="running")
            inserted = True
    for tag in given.get("tags") or ():
        if not 1 <= len(tag) <= 64:
            raise RefusalError(400, "tags must be between 1 and 64 characters")
    fields = {"tags": "tags", "notes": "notes", "config": "config", "summaryMetrics": "summary", "displayName": "display_name",  # noqa: E501
              "display_name": "display_name", "groupName": "group", "jobType": "job_type"}  # fmt: skip
    for theirs, ours in fields.items():
        if given.get(theirs) is not None:
            setattr(run, ours, list(given[theirs]) if theirs == "tags" else given[theirs])
    if run.state != "running" and given.get("name") is not None:
        run.state = "running"
    return {"upsertBucket": {"bucket": _bucket(world, run), "inserted": inserted}}


def _resume(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    run = world.runs.get((v["entity"], v["project"], v["name"]))
    if run is None:
        return {"model": {"id": "m", "name": v["project"], "entity": {"id": "e", "name": v["entity"]}, "bucket": None}}
    tail = json.dumps([world.text(run.rows[-1])] if run.rows else [])
    bucket = {
        **_bucket(world, run),
        "logLineCount": 0,
        "eventsLineCount": 0,
        "historyTail": tail,
        "eventsTail": "[]",
        "wandbConfig": None,
    }
    return {"model": {"id": "m", "name": run.project, "entity": {"id": "e", "name": run.entity}, "bucket": bucket}}


def _rewind(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    entity = v.get("entity") or v.get("entityName")
    run = world.runs.get((entity, v.get("project") or v.get("projectName"), v["runName"]))  # type: ignore[arg-type]
    if run is None:
        raise RefusalError(404, "run not found")
    run.rows = [row for row in run.rows if row["_step"] <= v["metricValue"]]
    run.state = "running"
    return {"rewindRun": {"rewoundRun": _bucket(world, run)}}


def _state(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    run = world.by_id(v["input"]["id"])
    if run is None:
        raise RefusalError(404, "run not found")
    run.state = v["input"]["state"]
    return {"updateRunState": {"success": True}}


def _delete_run(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    run = world.by_id(v["id"])
    if run is not None:
        del world.runs[run.entity, run.project, run.name]
    return {"deleteRun": {"clientMutationId": None}}


def _create_files(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document
    run = world.runs.get((v["entity"], v["project"], v["run"]))
    if run is None:
        return {"createRunFiles": {"runID": None, "uploadHeaders": [], "files": []}}
    files = [{"name": name, "uploadUrl": f"{url}/storage/{run.id}/{name}"} for name in v["files"]]
    return {"createRunFiles": {"runID": run.id, "uploadHeaders": [], "files": files}}


def _mark_uploaded(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url, world, v
    return {"markRunFilesUploaded": {"success": True}}


def _delete_files(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    for each in v["files"]:
        storage, _, name = each.partition("~")
        run = world.by_id(storage)
        if run is not None:
            run.files.pop(name, None)
    return {"deleteFiles": {"success": True}}


def _view_node(world: World, view: dict[str, Any]) -> dict[str, Any]:
    project = {"id": "UHJvamVjdDox", "name": view["projectName"], "entityName": view["entityName"]}
    return {
        **view,
        "project": project,
        "user": {"username": "tester", "photoUrl": None, "email": None, "name": "Tester"},
    }


def _upsert_view(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    inserted = v.get("id") not in world.views
    if v.get("id") and inserted:
        raise RefusalError(404, "view not found")
    key = v.get("id") or world.next_id("Vmlldzo")
    old = world.views.get(key, {"createdAt": "2026-11-01T00:00:00Z"})
    new = {k: v.get(k) for k in ("entityName", "projectName", "type", "name", "displayName", "description", "spec")}
    world.views[key] = {
        **old,
        **{k: x for k, x in new.items() if x is not None},
        "id": key,
        "updatedAt": "2026-11-02T00:00:00Z",
    }
    return {"upsertView": {"view": _view_node(world, world.views[key]), "inserted": inserted}}


def _delete_view(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    gone = world.views.pop(v["id"], None)
    return {"deleteView": {"success": gone is not None, "pendingDrafts": [], "__typename": "DeleteViewPayload"}}


def _all_views(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    entity, project = v.get("entity") or v.get("entityName"), v.get("project") or v.get("name")
    if (entity, project) not in world.projects:
        return {"project": None}
    found = [
        view
        for view in world.views.values()
        if (view["entityName"], view["projectName"]) == (entity, project)
        and view["type"] == v.get("viewType", "runs")
        and v.get("viewName") in (None, view["name"])
    ]
    edges = [{"node": _view_node(world, view), "cursor": view["id"]} for view in found]
    return {"project": {"allViews": {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}}}


def _view(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    view = world.views.get(v["reportId"])
    return {"view": None if view is None else _view_node(world, view)}


HANDLERS: dict[str, Callable[[World, dict[str, Any], str, str], dict[str, Any]]] = {
    "UpsertBucket": _upsert_bucket,
    "RunResumeStatus": _resume,
    "RewindRun": _rewind,
    "UpdateRunState": _state,
    "DeleteRun": _delete_run,
    "CreateRunFiles": _create_files,
    "MarkRunFilesUploaded": _mark_uploaded,
    "deleteFiles": _delete_files,
    "UpsertView2": _upsert_view,
    "upsertView": _upsert_view,
    "deleteView": _delete_view,
    "View": _all_views,
    "ProjectViews": _all_views,
    "SpecificReport": _view,
}

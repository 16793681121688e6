"""The GraphQL side of the stand-in: dispatch on the name inside the document, superset answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from wandb_server import automations, writes
from wandb_server.state import StoredRun, World, words

USER = {
    "__typename": "User",
    "id": "VXNlcjox",
    "name": "Tester",
    "username": "tester",
    "email": "tester@example.invalid",
    "admin": False,
    "flags": "{}",
    "entity": "team",
    "deletedAt": None,
    "photoUrl": None,
    "apiKeys": {"edges": []},
    "teams": {"edges": [{"node": {"name": "team"}}]},
}


def answer(world: World, name: str, document: str, variables: dict[str, Any], url: str) -> tuple[int, bytes]:
    """Answer one GraphQL request."""
    handler = HANDLERS.get(name)
    if handler is None:
        return 400, json.dumps({"errors": [{"message": f"the stand-in does not know {name}"}]}).encode()
    try:
        with world.lock:
            data = handler(world, variables, document, url)
    except writes.RefusalError as refusal:
        return refusal.status, json.dumps({"errors": [{"message": str(refusal)}]}).encode()
    return 200, json.dumps({"data": data}).encode()


def run_node(world: World, run: StoredRun) -> dict[str, Any]:
    """Return a run with every field any document asks for."""
    counts: dict[str, dict[str, Any]] = {}
    for row in run.rows[:1] + run.rows[-1:]:
        for key, value in row.items():
            counts[key] = {
                "typeCounts": [{"type": "number" if isinstance(value, int | float) else "string", "count": 1}]
            }
    return {
        "projectId": world.projects[run.entity, run.project],
        "id": run.id,
        "tags": list(run.tags),
        "name": run.name,
        "displayName": run.display_name,
        "sweepName": None,
        "state": run.state,
        "group": run.group,
        "jobType": run.job_type,
        "commit": None,
        "readOnly": False,
        "createdAt": run.created_at,
        "heartbeatAt": run.created_at,
        "description": None,
        "notes": run.notes,
        "historyLineCount": run.lines,
        "user": {"name": "Tester", "username": "tester"},
        "config": run.config,
        "systemMetrics": "{}",
        "summaryMetrics": run.summary,
        "historyKeys": {"lastStep": run.last, "keys": counts, "sets": []} if run.lines else None,
        "project": {
            "id": "UHJvamVjdDox",
            "name": run.project,
            "entity": {"id": "RW50aXR5OjE=", "name": run.entity},
        },
    }


def find(world: World, variables: dict[str, Any]) -> StoredRun | None:
    """Return the run that entity, project and name point at."""
    project = variables.get("project") or variables.get("projectName") or variables.get("projectName")
    name = variables.get("name") or variables.get("runName") or variables.get("run") or variables.get("runId")
    entity = variables.get("entity") or variables.get("entityName")
    return world.runs.get((entity, project, name))  # type: ignore[arg-type]


def _runs(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    key = (v["entity"], v["project"])
    if key not in world.projects:
        return {"project": None}
    found = [
        run for (e, p, _), run in world.runs.items() if (e, p) == key and _passes(run, json.loads(v["filters"] or "{}"))
    ]
    if v["order"].startswith("-"):
        found.reverse()
    start = 1 + next((i for i, run in enumerate(found) if run.id == v.get("cursor")), -1)
    if v.get("cursor") and not start:
        start = min(int(v["cursor"].rpartition("~")[2]) if "~" in v["cursor"] else 0, len(found))
    page = found[start : start + v["perPage"]]
    edges = [{"node": run_node(world, run), "cursor": f"~{start + i + 1}"} for i, run in enumerate(page)]
    return {
        "project": {
            "internalId": world.projects[key],
            "runCount": len(found),
            "readOnly": False,
            "runs": {
                "edges": edges,
                "pageInfo": {
                    "endCursor": edges[-1]["cursor"] if edges else None,
                    "hasNextPage": start + len(page) < len(found),
                },
            },
        }
    }


def _passes(run: StoredRun, filters: dict[str, Any]) -> bool:
    """Evaluate the few filters our code uses."""
    fields = {"display_name": run.display_name, "displayName": run.display_name, "name": run.name, "state": run.state}
    return all(key not in fields or fields[key] == value for key, value in filters.items())


def _run(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    if (v.get("entity"), v.get("project")) not in world.projects:
        return {"project": None}
    run = find(world, v)
    return {"project": {"run": run_node(world, run) if run else None}}


def _parquet(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document
    run = find(world, v)
    if run is None:
        return {"project": {"run": None}}
    live = run.first_live_step
    return {
        "project": {
            "run": {
                "parquetHistory": {
                    "parquetUrls": [f"{url}/export/{run.id}/{i}" for i in range(len(run.partitions))],
                    "liveData": [] if live is None else [{"_step": live}],
                }
            }
        }
    }


def _page(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    run = find(world, v)
    if run is None:
        return {"project": {"run": None}}
    low, high = v["minStep"], v["maxStep"]
    if run.texts is not None:
        return {"project": {"run": {"history": run.texts[low:high]}}}
    first = run.exported if world.behaviour.pages == "live" else 0
    rows = [world.text(row) for row in run.rows[first:] if low <= row["_step"] < high]
    return {"project": {"run": {"history": rows}}}


def _head(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    """Answer a document that asks for several fields of a run at once."""
    found = _run(world, v, document, url)
    run = (found["project"] or {}).get("run")
    if run is None:
        return found
    for word, handler in (("parquetHistory(", _parquet), ("history(minStep", _page)):
        if word in document:
            run |= handler(world, v, document, url)["project"]["run"]
    return found


def _full(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del url
    run = find(world, v)
    rows = [] if run is None or "events(" in document else run.rows[: v.get("samples") or 500]
    return {"project": {"run": {"history": [world.text(row) for row in rows], "events": []}}}


def _sampled(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    run = find(world, v)
    specs = [json.loads(spec) for spec in (v.get("specs") or [v["spec"]])]
    out = []
    for spec in specs:
        low, high = spec.get("minStep", 0), spec.get("maxStep", float("inf"))
        rows = [] if run is None else run.rows
        whole = [r for r in rows if low <= r["_step"] <= high and all(k in r for k in spec["keys"])]
        out.append([words({k: r[k] for k in spec["keys"]}) for r in whole[: spec.get("samples") or 500]])
    return {"project": {"run": {"sampledHistory": out}}}


def _files(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document
    run = find(world, v)
    if run is None:
        return {"project": {"internalId": 1, "run": None}}
    names = [n for n in run.files if (not v.get("fileNames") or n in v["fileNames"]) and _like(n, v.get("pattern"))]
    edges = [
        {
            "node": {
                "id": f"{run.id}~{name}",
                "name": name,
                "url": f"{url}/storage/{run.id}/{name}",
                "directUrl": f"{url}/storage/{run.id}/{name}",
                "sizeBytes": str(len(run.files[name])),
                "mimetype": "",
                "updatedAt": run.created_at,
                "md5": "",
            },
            "cursor": name,
        }
        for name in names
    ]
    page = {"endCursor": None, "hasNextPage": False}
    files = {"edges": edges, "pageInfo": page}
    return {"project": {"internalId": 1, "run": {"fileCount": len(run.files), "files": files}}}


def _like(name: str, pattern: str | None) -> bool:
    return pattern is None or (name.startswith(pattern[:-1]) if pattern.endswith("%") else name == pattern)


def _features(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del v, document, url
    return {"serverInfo": {"features": [{"name": n, "isEnabled": True} for n in sorted(world.behaviour.features)]}}


def _viewer(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del world, v, document, url
    return {"viewer": USER}


def _project_node(entity: str, project: str, internal: int) -> dict[str, Any]:
    return {
        "__typename": "Project",
        "id": f"UHJvamVjdDp{internal}",
        "internalId": internal,
        "name": project,
        "entityName": entity,
        "createdAt": "2026-11-01T00:00:00Z",
        "isBenchmark": False,
        "user": USER,
    }


def _projects(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    nodes = [_project_node(e, p, i) for (e, p), i in world.projects.items() if e == v["entity"]]
    page = {"__typename": "PageInfo", "endCursor": None, "hasNextPage": False}
    return {"models": {"edges": [{"node": node, "cursor": node["id"]} for node in nodes], "pageInfo": page}}


def _project(world: World, v: dict[str, Any], document: str, url: str) -> dict[str, Any]:
    del document, url
    entity, project = v.get("entity") or v.get("entityName"), v.get("name") or v.get("projectName")
    internal = world.projects.get((entity, project))  # type: ignore[arg-type]
    return {"project": None if internal is None else _project_node(str(entity), str(project), internal)}


HANDLERS: dict[str, Callable[[World, dict[str, Any], str, str], dict[str, Any]]] = {
    "Viewer": _viewer,
    "GetViewer": _viewer,
    "GetDefaultEntity": _viewer,
    "ServerFeaturesQuery": _features,
    "GetProjects": _projects,
    "GetProject": _project,
    "ProjectInternalId": _project,
    "Runs": _runs,
    "Run": _run,
    "RunState": _run,
    "RunHistoryKeys": _run,
    "RuntriageRun": _run,
    "RuntriageHead": _head,
    "RuntriageHistory": _head,
    "RuntriagePage": _page,
    "RunFullHistory": _full,
    "RunSampledHistory": _sampled,
    "SampledHistoryPage": _sampled,
    "RunParquetHistory": _parquet,
    "HistoryPage": _page,
    "RunFiles": _files,
    **writes.HANDLERS,
    **automations.HANDLERS,
}

"""Histories that are not exported: asked for directly, page by page. Part of the door of :mod:`.client`.

The client's own scan takes three requests for the first rows and decodes every cell on its own. Here the facts of a
run, whether it has exports, and its first page of rows come with one request, and a page stays text until all of it is
decoded at once (:func:`runtriage.trackers.wandb.rows.decoded`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtriage.errors import RunNotFoundError
from runtriage.trackers.wandb import wire
from runtriage.trackers.wandb.client import FIELDS, WandbClient

PAGE = 10_000
"""Steps of the first window, and rows that later windows are meant to hold."""
_PAGES_AT_MOST = 64
_EXPORTS = 'parquetHistory(liveKeys: ["_step"]) { parquetUrls }'
_WINDOW = "history(minStep: $minStep, maxStep: $maxStep, samples: $pageSize)"
_DECLARED = ", $minStep: Int64!, $maxStep: Int64!, $pageSize: Int!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What one request tells about a run.

    Attributes
    ----------
    fields
        As the server sends them: config and summary as text.
    exported
        Some of the history has been exported.
    lines
        Rows of the window asked for, as JSON texts.
    """

    fields: dict[str, Any]
    exported: bool
    lines: list[str]


def head(client: WandbClient, run_id: str, window: tuple[int, int] | None = None) -> Head:
    """Return the facts of a run, and its rows in a window of steps if one is given.

    Raises
    ------
    RunNotFoundError, RunReadError, SourceError
        As :func:`runtriage.trackers.wandb.failures.translated`.
    """
    asked = f"{FIELDS} {_EXPORTS}" + (f" {_WINDOW}" if window else "")
    fields = _ask(client, "RuntriageHistory" if window else "RuntriageHead", run_id, asked, window, PAGE)
    urls = (fields.pop("parquetHistory", None) or {}).get("parquetUrls")
    return Head(fields=fields, exported=bool(urls), lines=fields.pop("history", None) or [])


def lines(client: WandbClient, found: Head, facts: Mapping[str, Any], start: int, read: int) -> list[str]:
    """Return all rows of a run without exports from step ``start`` on, as JSON texts; raises as :func:`head`.

    Parameters
    ----------
    client
        The connection.
    found, facts
        The run, its fields as sent and decoded.
    start, read
        First step, and the first step that ``found.lines`` does not cover.
    """
    stop = wire.scan_stop(facts, facts["summaryMetrics"])
    counted = max(wire.line_count(facts), 1)
    width = page_width(start, stop, counted)
    out = list(found.lines)
    while read < stop:
        window = (read, min(read + width, stop))
        samples = min(width, max(counted, PAGE))
        out += _ask(client, "RuntriagePage", facts["name"], _WINDOW, window, samples).get("history") or []
        read += width
    return out


def page_width(start: int, stop: int, rows: int) -> int:
    """Return a width of windows such that a run logged every thousandth step does not cost a request per row."""
    sparse = -(-(stop - start) * PAGE // max(rows, PAGE))  # the steps that hold about a page of rows
    return max(PAGE, min(sparse, stop - start), -(-(stop - start) // _PAGES_AT_MOST) if rows < PAGE else 0)


def _ask(
    client: WandbClient, name: str, run_id: str, asked: str, window: tuple[int, int] | None, samples: int
) -> dict[str, Any]:
    variables: dict[str, Any] = {"entity": client.entity, "project": client.project, "name": run_id}
    if window is not None:
        variables |= {"minStep": window[0], "maxStep": window[1], "pageSize": samples}
    document = (
        f"query {name}($entity: String!, $project: String!, $name: String!{_DECLARED if window else ''}) {{ "
        f"project(name: $project, entityName: $entity) {{ run(name: $name) {{ {asked} }} }} }}"
    )
    where = f"{client.where}/{run_id}"
    found = client.graphql(document, variables, where=where).get("project") or {}
    if not found.get("run"):
        raise RunNotFoundError("there is no such run", where=where)
    return dict(found["run"])

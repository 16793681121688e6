"""What the stand-in server holds: projects, runs, their histories, files and views."""

from __future__ import annotations

import itertools
import json
import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass
class Behaviour:
    """Positions of the switches for what is not known of the real server.

    ``nan``: ``"string"`` or ``"bare"`` tokens in JSON. ``nested``: ``"dotted"`` or ``"struct"`` columns in exports.
    ``features``: names of enabled server features. ``repartition``: an export after new rows rewrites partition 0.
    ``pages``: whether a page of live history holds ``"all"`` rows of its window or only the ``"live"`` ones.
    """

    nan: str = "string"
    nested: str = "dotted"
    features: frozenset[str] = frozenset({"MARK_RUN_FILES_UPLOADED"})
    repartition: bool = True
    pages: str = "all"


@dataclass
class StoredRun:
    """One run as stored. ``config`` and ``summary`` are the very JSON texts a client reads and writes."""

    entity: str
    project: str
    name: str
    id: str
    display_name: str = ""
    state: str = "finished"
    tags: list[str] = field(default_factory=list)
    notes: str | None = None
    group: str | None = None
    job_type: str | None = None
    config: str = "{}"
    summary: str = "{}"
    rows: list[dict[str, Any]] = field(default_factory=list)
    texts: list[str] | None = None  # the rows as JSON, made beforehand where their making would be measured
    partitions: list[bytes] = field(default_factory=list)
    exported: int = 0
    line_count: int | None = None
    last_step: int | None = None
    live_first: int | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    pending_files: set[str] = field(default_factory=set)
    created_at: str = "2026-11-01T00:00:00Z"
    events: list[str] = field(default_factory=list)

    @property
    def lines(self) -> int:
        """Number of history rows the server counts."""
        return len(self.rows) if self.line_count is None else self.line_count

    @property
    def last(self) -> int:
        """The step of the last row in file order, which is what the server calls the last step; -1 for none."""
        if self.last_step is not None:
            return self.last_step
        return int(self.rows[-1]["_step"]) if self.rows else -1

    @property
    def first_live_step(self) -> int | None:
        """The first step that is not exported, None if all are."""
        if self.live_first is not None:
            return self.live_first
        return int(self.rows[self.exported]["_step"]) if self.exported < len(self.rows) else None


class World:
    """All state of the server; every access holds :attr:`lock`."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.lock = threading.RLock()
        self.runs: dict[tuple[str, str, str], StoredRun] = {}
        self.projects: dict[tuple[str, str], int] = {}
        self.views: dict[str, dict[str, Any]] = {}
        self.triggers: dict[str, dict[str, Any]] = {}
        self.integrations: dict[str, dict[str, Any]] = {}
        self._ids = itertools.count(1)

    def add_project(self, entity: str, project: str) -> int:
        """Create a project if needed; return its internal id."""
        with self.lock:
            return self.projects.setdefault((entity, project), len(self.projects) + 1)

    def add_run(
        self,
        entity: str,
        project: str,
        name: str,
        *,
        rows: Iterable[dict[str, Any]] = (),
        config: dict[str, Any] | None = None,
        summary: dict[str, Any] | None = None,
        exported: bool = False,
        **fields: Any,
    ) -> StoredRun:
        """Create a run with a history; rows get ``_step``, ``_timestamp`` and ``_runtime`` where they have none."""
        with self.lock:
            self.add_project(entity, project)
            full = [{"_step": i, "_timestamp": 1.796e9 + i, "_runtime": float(i), **row} for i, row in enumerate(rows)]
            run = StoredRun(
                entity=entity,
                project=project,
                name=name,
                id=f"UnVuOnYx{next(self._ids)}",
                config=self.text({k: {"desc": None, "value": v} for k, v in (config or {}).items()}),
                summary=self.text(summary or {}),
                rows=full,
                **{"display_name": name, **fields},
            )
            self.runs[entity, project, name] = run
            if exported:
                self.export(run)
            return run

    def export(self, run: StoredRun, upto: int | None = None) -> None:
        """Turn rows into Parquet exports, as the real server does some time after a run ended."""
        with self.lock:
            stop = len(run.rows) if upto is None else upto
            start = 0 if self.behaviour.repartition else run.exported
            rows = run.rows[start:stop]
            if self.behaviour.repartition:
                run.partitions = []
            if rows:
                run.partitions.append(parquet(rows, struct=self.behaviour.nested == "struct"))
            run.exported = stop

    def by_id(self, storage_id: str | None) -> StoredRun | None:
        """Return the run of a GraphQL id."""
        with self.lock:
            return next((run for run in self.runs.values() if run.id == storage_id), None)

    def next_id(self, kind: str) -> str:
        """Return a fresh id."""
        return f"{kind}{next(self._ids)}"

    def text(self, value: Any) -> str:
        """Write JSON with NaN as the switch says."""
        return json.dumps(words(value) if self.behaviour.nan == "string" else value)


def words(value: Any) -> Any:
    """Return a JSON value with non-finite floats as words."""
    if isinstance(value, dict):
        return {key: words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [words(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def dotted(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested dicts; media objects become JSON text."""
    out: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict) and "_type" not in value:
            out.update(dotted(value, f"{prefix}{key}."))
        else:
            out[prefix + key] = json.dumps(value) if isinstance(value, dict) else value
    return out


def parquet(rows: list[dict[str, Any]], *, struct: bool = False) -> bytes:
    """Write rows as one Parquet file; a key that a row does not have is null there."""
    flat = [dict(row) if struct else dotted(row) for row in rows]
    names = list(dict.fromkeys(key for row in flat for key in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in flat]
        if any(isinstance(v, float) for v in values) and all(isinstance(v, int | float | None) for v in values):
            values = [None if v is None else float(v) for v in values]
        elif any(isinstance(v, str) for v in values):
            values = [None if v is None else str(v) for v in values]
        columns[name] = pa.array(values)
    buffer = BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()

"""What W&B says, in our words: runs and exported tables; rows are in :mod:`.rows`. Pure.

The same number comes in many dresses: floats that are whole come as integers; NaN and infinities come as words, as bare
tokens or as floats; a key that a row does not have is missing (live rows) or null (exports); nested dictionaries come
nested or as dotted names. None of that leaves this module. Which of them the real server uses where is not published:
each was met on a stand-in server only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from runtriage.model.history import RunInfo, Track
from runtriage.model.vocab import RunState
from runtriage.trackers.columns import axis, cells, track

STEP, CLOCK = "_step", "_timestamp"
INTERNAL = frozenset({STEP, CLOCK, "_runtime", "_wandb"})
_STATES = {
    "running": RunState.RUNNING,
    "pending": RunState.UNKNOWN,
    "preempting": RunState.RUNNING,
    "finished": RunState.FINISHED,
    "failed": RunState.FAILED,
    "crashed": RunState.FAILED,
    "killed": RunState.KILLED,
    "preempted": RunState.KILLED,
}
_DEEPEST = 8
_CLIENT_KEYS = frozenset({"_wandb", "wandb_version"})


def run_state(word: str) -> RunState:
    """Fold a state of W&B's."""
    return _STATES.get(word, RunState.UNKNOWN)


def run_info(
    facts: Mapping[str, Any], *, source: str, url: str | None, tags: Mapping[str, str], config: Mapping[str, Any]
) -> RunInfo:
    """Make a :class:`RunInfo` of the fields of a run.

    Parameters
    ----------
    facts
        Fields by W&B's names.
    source, url, tags, config
        As in :class:`RunInfo`; the config without W&B's own keys.
    """
    return RunInfo(
        source=source,
        id=str(facts["name"]),
        name=str(facts.get("displayName") or ""),
        state=run_state(str(facts.get("state") or "")),
        config=dict(config),
        tags=dict(tags),
        url=url,
        started=epoch(facts.get("createdAt")),
        cursor=cursor(facts, config),
    )


def cursor(facts: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Return a text that changes when the run has to be read again; our own marks do not change it.

    The time of the last row is part of it: a run that was rewound and logged as many rows again counts as many.
    """
    seen = [facts.get("id"), facts.get("createdAt"), json.dumps(config, sort_keys=True, default=str)]
    digest = hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:12]
    stamp = (facts.get("summaryMetrics") or {}).get(CLOCK)
    clock = stamp if isinstance(stamp, int | float) else ""
    return f"{facts.get('state')}:{facts.get('historyLineCount')}:{last_step(facts)}:{clock}:{digest}"


def facts_of_fields(fields: Mapping[str, Any], url: str | None = None) -> dict[str, Any]:
    """Return the fields of a run as sent, with config and summary decoded, as the client decodes those of a listing."""
    config = {
        key: value["value"] if isinstance(value, dict) and "value" in value else value
        for key, value in read_object(fields.get("config")).items()
    }
    return {
        **fields,
        "tags": list(fields.get("tags") or ()),
        "config": {key: value for key, value in config.items() if key not in _CLIENT_KEYS},
        "internal": config.get("_wandb"),
        "summaryMetrics": read_object(fields.get("summaryMetrics")),
        "url": url,
    }


def read_object(text: Any) -> dict[str, Any]:
    """Return the JSON object in a text; empty if there is none."""
    try:
        found = json.loads(text or "{}", strict=False)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def last_step(facts: Mapping[str, Any]) -> int:
    """Return the last step the server knows of, -1 for none.

    A run that was started again under the same id without resuming appends rows from step 0: the server's "last step"
    is then that of the last row. The number of rows is a second, independent bound, so the larger of the two is meant
    for scanning.
    """
    keys = facts.get("historyKeys")
    found = keys.get("lastStep") if isinstance(keys, Mapping) else None
    return int(found) if isinstance(found, int | float) else -1


def scan_stop(facts: Mapping[str, Any], summary: Mapping[str, Any]) -> int:
    """Return the first step past the end of the history, whichever of the server's counters goes furthest."""
    counted = [last_step(facts) + 1, line_count(facts)]
    step = summary.get(STEP)
    if isinstance(step, int | float) and not isinstance(step, bool) and 0 <= step < 2**62:
        counted.append(int(step) + 1)
    return max(counted)


def line_count(facts: Mapping[str, Any]) -> int:
    """Return how many rows the server counts."""
    count = facts.get("historyLineCount")
    return int(count) if isinstance(count, int | float) else 0


def lineage(internal: Any) -> tuple[str, ...]:
    """Return a note if the run is a fork: whether its first rows are delivered is the server's business."""
    branch = internal.get("branch_point") if isinstance(internal, Mapping) else None
    if not isinstance(branch, Mapping):
        return ()
    return (f"the run was forked from {branch.get('run_id')!r} at step {branch.get('step')}",)


def epoch(text: Any) -> float | None:
    """Return an ISO time as seconds since the epoch, None if it is none."""
    try:
        parsed = datetime.fromisoformat(text if "+" in text or text.endswith("Z") else f"{text}+00:00")
    except (TypeError, ValueError):
        return None
    return parsed.timestamp()


def tracks_of_table(table: pa.Table) -> tuple[dict[str, Track], tuple[str, ...], int]:
    """Turn an exported table into tracks.

    As :func:`runtriage.trackers.wandb.rows.tracks_of_rows`. Null means not logged, NaN means NaN was logged.
    """
    table = _flat_table(table)
    names = table.column_names
    ruler = axis(cells(table.column(STEP), STEP) if STEP in names else None, STEP, table.num_rows)
    clock = cells(table.column(CLOCK), CLOCK) if CLOCK in names else None
    notes = list(ruler.notes)
    tracks: dict[str, Track] = {}
    for at, name in enumerate(names):
        column = table.column(at)
        if name in INTERNAL or name.startswith("_wandb.") or pa.types.is_list(column.type):
            continue
        if _is_media(column):
            continue
        found = cells(column, name)
        notes.extend(found.notes)
        points = track(found, ruler.step, clock)
        if points is not None:
            tracks[name] = points
    return tracks, tuple(notes), table.num_rows


def joined(tables: list[pa.Table]) -> pa.Table:
    """Return the partitions of an export as one table; a column that one of them lacks is null there."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables([_flat_table(table) for table in tables], promote_options="permissive")


def _flat_table(table: pa.Table) -> pa.Table:
    for _ in range(_DEEPEST):
        media = [f.name for f in table.schema if pa.types.is_struct(f.type) and f.type.get_field_index("_type") >= 0]
        if media:
            table = table.drop_columns(media)
        if not any(pa.types.is_struct(field.type) for field in table.schema):
            break
        table = table.flatten()
    return table


def _is_media(column: pa.ChunkedArray) -> bool:
    """Tell a column of media objects written as JSON text from numbers written as text."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    first = next((word for word in column.slice(0, 4096).to_pylist() if word is not None), "")
    return first.lstrip().startswith("{") and '"_type"' in first

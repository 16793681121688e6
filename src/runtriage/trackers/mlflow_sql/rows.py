"""Rows of MLflow's tables, turned into our nouns. Pure.

What a listing row means (states, parameters, the cursor) is decided where the answers of the server are read: the rows
are spelt as the server would spell them and read by the same code, so that both doors tell the same and a run known
through one need not be read again through the other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from runtriage.model.history import Track
from runtriage.trackers.mlflow import wire
from runtriage.trackers.mlflow.rows import SECONDS_BELOW, as_logged

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """All points of a run as they are stored.

    Attributes
    ----------
    keys
        Names of the metrics.
    code
        int32, shape (n,): index into ``keys``.
    step, stamp
        int64, shape (n,); time stamps as the client sent them.
    value
        float64, shape (n,): 0 where ``nan``, the largest double for infinity.
    nan
        bool, shape (n,).
    """

    keys: tuple[str, ...]
    code: NDArray[np.int32]
    step: NDArray[np.int64]
    stamp: NDArray[np.int64]
    value: NDArray[np.float64]
    nan: NDArray[np.bool_]


def tracks(points: Points) -> dict[str, Track]:
    """Return the metrics of a run, each in logged order: by time stamp, then step and value, as the server orders them.

    Parameters
    ----------
    points
        In any order.

    Returns
    -------
    dict
        Metric name to track, sorted; arrays cannot be written to. ``wall`` is None where no time stamps were sent.

    Notes
    -----
    O(n) if the points of each metric come ordered by time, O(n log n) otherwise.
    """
    code = points.code
    grouped = None if bool(np.all(code[1:] >= code[:-1])) else np.argsort(code, kind="stable")
    ordered = code if grouped is None else code[grouped]
    bounds = np.searchsorted(ordered, np.arange(len(points.keys) + 1))
    columns: Any = (points.step, points.stamp, points.value, points.nan)
    step, stamp, value, nan = columns if grouped is None else (column[grouped] for column in columns)
    found = {}
    for index, key in sorted(enumerate(points.keys), key=itemgetter(1)):
        part = slice(bounds[index], bounds[index + 1])
        found[key] = _track(step[part], stamp[part], value[part], nan[part])
    return found


def records(
    runs: Sequence[Row], params: Sequence[Row], tags: Sequence[Row], latest: Sequence[Row]
) -> dict[str, wire.RunRecord]:
    """Return what the rows tell about runs, by id.

    Parameters
    ----------
    runs
        (run_uuid, name, status, start_time, end_time, lifecycle_stage, experiment_id).
    params, tags
        (run_uuid, key, value).
    latest
        (run_uuid, key, value, timestamp, step, is_nan).
    """
    data: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {"params": [], "tags": [], "metrics": []})
    for kind, rows in (("params", params), ("tags", tags)):
        for run, key, text in rows:
            data[run][kind].append({"key": key, "value": text or ""})
    for run, key, value, stamp, step, is_nan in latest:
        shown = "NaN" if is_nan or math.isnan(value) else value
        data[run]["metrics"].append({"key": key, "value": shown, "timestamp": stamp or 0, "step": step})
    body = {"runs": [{"info": _info(row), "data": data[row[0]]} for row in runs]}
    return {record.id: record for record in wire.decode_runs(msgspec.json.encode(body)).runs}


def _info(row: Row) -> dict[str, Any]:
    run, name, status, start, end, stage, experiment = row
    return {
        "run_id": run,
        "run_name": name or "",
        "status": status or "",
        "start_time": start,
        "end_time": end,
        "lifecycle_stage": stage or "active",
        "experiment_id": str(experiment),
    }


def _track(
    step: NDArray[np.int64], stamp: NDArray[np.int64], value: NDArray[np.float64], nan: NDArray[np.bool_]
) -> Track:
    if not bool(np.all(stamp[1:] > stamp[:-1])):
        order = np.lexsort((value, step, stamp))
        step, stamp, value, nan = step[order], stamp[order], value[order], nan[order]
    wall = np.where(stamp < SECONDS_BELOW, stamp, stamp / 1000.0).astype(np.float64)
    logged = as_logged(np.where(nan, np.nan, value))
    if not bool(np.all(wall[1:] >= wall[:-1])):  # seconds and milliseconds in one metric
        order = np.argsort(wall, kind="stable")
        step, wall, logged = step[order], wall[order], logged[order]
    step = step.copy()
    for array in (step, wall, logged):
        array.flags.writeable = False
    return Track(step=step, value=logged, wall=wall if bool(np.any(stamp)) else None)

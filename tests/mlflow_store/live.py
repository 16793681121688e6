"""Runs that go on, written past MLflow's client: with time stamps of this minute, and fast."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from mlflow_store.store import Store

Rows = Sequence[tuple[int, float, int]]
_LARGEST = 1.7976931348623157e308


def engine_of(store: Store) -> Any:
    """Return the connections of MLflow's own client."""
    return store.client._tracking_client.store.engine


def now() -> int:
    """Return the time in milliseconds."""
    return int(time.time() * 1000)


def put(store: Store, experiment: str, name: str, key: str, rows: Rows) -> str:
    """Log rows (step, value, time stamp) as MLflow stores them, and return the id of a run that goes on."""
    run = store.run(experiment, name)
    points = [(key, *_stored(value), stamp, run, step) for step, value, stamp in rows]
    newest = max(points, key=lambda row: (row[5], row[3], row[1]))
    names = ("k", "v", "n", "t", "r", "s")
    insert = "insert into {} (key, value, is_nan, timestamp, run_uuid, step) values (:k, :v, :n, :t, :r, :s)"
    with engine_of(store).begin() as connection:
        unique = list(dict.fromkeys(points))
        connection.execute(sa.text(insert.format("metrics")), [dict(zip(names, row, strict=True)) for row in unique])
        connection.execute(sa.text(insert.format("latest_metrics")), dict(zip(names, newest, strict=True)))
    return run


def _stored(value: float) -> tuple[float, bool]:
    return (0.0, True) if np.isnan(value) else (float(np.clip(value, -_LARGEST, _LARGEST)), False)

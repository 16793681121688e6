"""Chunks of the table of metrics as arrays. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from runtriage.trackers.mlflow_sql.rows import Points


def from_rows(rows: Sequence[Sequence[Any]]) -> Points:
    """Return the points in rows (key, step, time stamp, value, is_nan) in which equal keys stand together."""
    key, step, stamp, value, nan = zip(*rows, strict=True)
    counts = Counter(key)  # in order of appearance
    return Points(
        keys=tuple(counts),
        code=np.repeat(np.arange(len(counts), dtype=np.int32), list(counts.values())),
        step=np.array(step, np.int64),
        stamp=np.array(stamp, np.int64),
        value=np.array(value, np.float64),
        nan=np.array(nan, np.bool_),
    )


def from_blobs(key: str, step: bytes, stamp: bytes, value: bytes, nan: bytes) -> Points:
    """Return the points of one metric in columns of big-endian numbers, as PostgreSQL sends them."""
    return Points(
        keys=(key,),
        code=np.zeros(len(nan), np.int32),
        step=np.frombuffer(step, ">i8").astype(np.int64),
        stamp=np.frombuffer(stamp, ">i8").astype(np.int64),
        value=np.frombuffer(value, ">f8").astype(np.float64),
        nan=np.frombuffer(nan, np.bool_),
    )


def joined(parts: Sequence[Points]) -> Points:
    """Return the points of all parts, one after another."""
    ids: dict[str, int] = {}
    codes = []
    for part in parts:
        own = np.array([ids.setdefault(key, len(ids)) for key in part.keys], np.int32)
        codes.append(own[part.code] if len(own) else part.code)

    def column(name: str, kind: type[np.generic]) -> Any:
        return np.concatenate([*map(getattr, parts, repeat(name)), np.empty(0, kind)]).astype(kind, copy=False)

    return Points(
        keys=tuple(ids),
        code=np.concatenate([*codes, np.empty(0, np.int32)]),
        step=column("step", np.int64),
        stamp=column("stamp", np.int64),
        value=column("value", np.float64),
        nan=column("nan", np.bool_),
    )

"""Chunks of the table of metrics as arrays. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

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


def from_csv(content: bytes) -> Points:
    """Return the points in whole lines of CSV: key, step, time stamp, value, is_nan (0 or 1).

    Raises
    ------
    pyarrow.ArrowInvalid
        If a line is not of this shape.
    """
    names = ["key", "step", "stamp", "value", "nan"]
    kinds = [pa.dictionary(pa.int32(), pa.string()), pa.int64(), pa.int64(), pa.float64(), pa.int8()]
    table = pacsv.read_csv(
        pa.py_buffer(content),
        read_options=pacsv.ReadOptions(use_threads=False, column_names=names, block_size=len(content) + 1),
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(column_types=dict(zip(names, kinds, strict=True)), null_values=[]),
    ).unify_dictionaries()
    key = table.column("key").combine_chunks()
    return Points(
        keys=tuple(key.dictionary.to_pylist()),
        code=np.array(key.indices),
        step=np.array(table.column("step")),
        stamp=np.array(table.column("stamp")),
        value=np.array(table.column("value")),
        nan=np.array(table.column("nan")) != 0,
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

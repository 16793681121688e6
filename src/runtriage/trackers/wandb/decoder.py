"""History records into columns, all records at once.

A history record is a list of items, an item is a key and a value as JSON text. Rows of one run look alike, so the first
item of every row is taken at once, then the second of every row, and so on: as many passes as a row has items. In each
pass the encoded keys are told apart by Arrow's dictionary encoding and decoded once each, and the texts of a key are
turned into float64 by Arrow's parser without becoming Python objects. Only what is no number (text, nested dicts of old
clients, typed values without JSON) is looked at value by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from runtriage.trackers.wandb.framing import Bytes, Places, Records
from runtriage.trackers.wandb.protobuf import LENGTH, WireError, ends, fields, varints
from runtriage.trackers.wandb.values import KEY, NESTED_KEY, VALUE_JSON, read_json, read_typed

HISTORY = 2
ROWS_AT_ONCE = 200_000
"""Bounds the memory of the passes, not of the result."""

_ITEM, _STEP = 1, 2
_NUMERIC = np.zeros(256, dtype=bool)
_NUMERIC[[*b"0123456789-NI"]] = True
_FEW = 8
_HANDLING = (16, 200)
"""Fields ``control`` and ``_info`` of a record."""


@dataclass(slots=True)
class Column:
    """The values of one key, in parts.

    Attributes
    ----------
    rows, values
        int64 and float64 arrays of one length, part by part: numbers as logged.
    odd_rows, odd
        Rows and Python values of what was no number.
    exact
        int64 values beside ``values``, only kept for ``_step``.
    """

    rows: list[Places] = field(default_factory=list)
    values: list[NDArray[np.float64]] = field(default_factory=list)
    exact: list[NDArray[np.int64]] = field(default_factory=list)
    odd_rows: list[int] = field(default_factory=list)
    odd: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Rows:
    """The decoded history of a file.

    Attributes
    ----------
    columns
        Key (nested keys joined by ``.``) to column.
    step_rows, steps
        Rows that carry a step of their own beside the ``_step`` item, and those steps; int64 arrays, part by part.
    damaged
        Number of rows that are no valid messages.
    """

    columns: dict[str, Column] = field(default_factory=dict)
    step_rows: list[Places] = field(default_factory=list)
    steps: list[Places] = field(default_factory=list)
    damaged: int = 0


def kinds(records: Records) -> tuple[Places, Places, Places]:
    """Return the field number of the payload of every record, and where the payload's value begins and ends.

    A payload that cannot be read has kind 0. Fields that say how a record is handled (``control``, ``_info``) are
    stepped over; clients of today write them before the config, the run and its exit.
    """
    data, at, stop = records.data, records.start, records.stop
    tag, after = varints(data, at)
    numbered = tag == 8
    _, behind = varints(data, after)
    at = np.where(numbered, behind, at)
    kind, begin, end = _field(data, at, stop)
    for _ in _HANDLING:
        behind = np.flatnonzero(np.isin(kind, _HANDLING) & (end < stop))
        if not behind.size:
            break
        inner, first, last = _field(data, end[behind], stop[behind])
        found = inner > 0
        behind = behind[found]
        kind[behind], begin[behind], end[behind] = inner[found], first[found], last[found]
    return kind, begin, end


def _field(data: Bytes, at: Places, stop: Places) -> tuple[Places, Places, Places]:
    """Return the number of the field at a place, and where its value begins and ends; 0 for what is no message."""
    tag, after = varints(data, np.minimum(at, data.size - 1))
    length, begin = varints(data, after)
    end = begin + np.clip(length, 0, data.size)
    valid = (begin <= stop) & ((tag & 7) == LENGTH) & (end <= stop)
    return np.where(valid, tag >> 3, 0), begin, end


def decode(records: Records, begin: Places, end: Places, into: Rows) -> None:
    """Decode history records.

    Parameters
    ----------
    records
        The records; ``order`` numbers the rows of the result.
    begin, end
        int64, shape (n,): where each history message lies in ``records.data``.
    into
        Columns are appended here.
    """
    for first in range(0, begin.size, ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        _decode_part(records.data, begin[part], end[part], records.order[part], into)


def _decode_part(data: Bytes, begin: Places, end: Places, row: Places, into: Rows) -> None:
    cursor = begin
    while cursor.size:
        tag, after = varints(data, cursor)
        value_end = ends(data, tag & 7, after)
        good = (value_end >= after) & (value_end <= end)
        if not good.all():
            into.damaged += int((~good).sum())
            tag, after, value_end, end, row = (column[good] for column in (tag, after, value_end, end, row))
        is_item = tag == (_ITEM << 3 | LENGTH)
        if is_item.all():
            _items(data, *_inner(data, after, value_end), row, into)
        else:
            _items(data, *_inner(data, after[is_item], value_end[is_item]), row[is_item], into)
            is_step = tag == (_STEP << 3 | LENGTH)
            _row_steps(data, *_inner(data, after[is_step], value_end[is_step]), row[is_step], into)
        left = value_end < end
        cursor, end, row = value_end[left], end[left], row[left]


def _inner(data: Bytes, after: Places, end: Places) -> tuple[Places, Places]:
    """Return the span of a length-delimited value whose length stands at ``after``."""
    return varints(data, after)[1], end


def _row_steps(data: Bytes, start: Places, stop: Places, row: Places, into: Rows) -> None:
    if not row.size:
        return
    tag, after = varints(data, start)
    number, _ = varints(data, after)
    into.step_rows.append(row)
    into.steps.append(np.where((stop > start) & (tag == 8), number, 0))  # protobuf leaves a zero out


def _items(data: Bytes, start: Places, stop: Places, row: Places, into: Rows) -> None:
    """Take one item of every row apart into key and value."""
    if not row.size:
        return
    key_end = start.copy()
    value_start = np.full(start.shape, -1, dtype=np.int64)
    value_end = np.zeros_like(start)
    which, at = np.arange(start.size), start
    while which.size:
        tag, after = varints(data, at)
        after = np.minimum(after, data.size - 1)
        end = ends(data, tag & 7, after)
        good = (end >= after) & (end <= stop[which])
        if not good.all():
            which, tag, after, end = which[good], tag[good], after[good], end[good]
        is_key = (tag == (KEY << 3 | LENGTH)) | (tag == (NESTED_KEY << 3 | LENGTH))
        key_end[which[is_key]] = end[is_key]
        is_json = tag == (VALUE_JSON << 3 | LENGTH)
        if is_json.any():
            value_start[which[is_json]] = varints(data, after[is_json])[1]
            value_end[which[is_json]] = end[is_json]
        left = end < stop[which]
        which, at = which[left], end[left]
    for key, chosen in _by_key(data, start, key_end):
        if key is not None:
            column = into.columns.setdefault(key, Column())
            _values(data, value_start[chosen], value_end[chosen], row[chosen], key, column)
            for i in np.flatnonzero(value_start[chosen] < 0).tolist():
                item = int(np.arange(start.size)[chosen][i])
                found = read_typed(data[start[item] : stop[item]].tobytes())
                column.odd_rows.append(int(row[item]))
                column.odd.append(found)


def _by_key(data: Bytes, start: Places, stop: Places) -> Iterator[tuple[str | None, Places | slice]]:
    """Yield every key and the items that have it; None for keys that cannot be read."""
    coded = _texts(data, start, stop, pa.large_binary()).dictionary_encode()
    names = [_name(prefix) for prefix in coded.dictionary.to_pylist()]
    if len(names) == 1:
        yield names[0], slice(None)
        return
    codes = np.asarray(coded.indices)
    if len(names) <= _FEW:
        for code, name in enumerate(names):
            yield name, np.flatnonzero(codes == code)
        return
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for code, name in enumerate(names):
        yield name, order[bounds[code] : bounds[code + 1]]


def _texts(data: Bytes, start: Places, stop: Places, kind: pa.DataType) -> Any:
    """Return spans of a buffer, ascending and not overlapping, as an Arrow array.

    Arrow wants values to lie back to back, so the gaps between them become values too, and are then left out.
    """
    offsets = np.empty(2 * start.size, dtype=np.int64)
    offsets[0::2], offsets[1::2] = start, stop
    both = pa.Array.from_buffers(kind, offsets.size - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return both.take(pa.array(np.arange(0, offsets.size - 1, 2)))


def _name(prefix: bytes) -> str | None:
    """Read a key from the encoded key fields of an item."""
    plain, nested = "", []
    try:
        for number, value in fields(prefix):
            if isinstance(value, bytes) and number in (KEY, NESTED_KEY):
                text = value.decode("utf-8", "replace")
                if number == KEY:
                    plain = text
                else:
                    nested.append(text)
    except WireError:
        return None
    return plain or ".".join(nested) or None


def _values(data: Bytes, start: Places, stop: Places, row: Places, key: str, column: Column) -> None:
    """Read the JSON texts of one key; a start of -1 means no JSON."""
    filled = (start >= 0) & (stop > start)
    numeric = filled & _NUMERIC[data[np.maximum(start, 0)]]
    odd = np.flatnonzero(filled & ~numeric)
    if numeric.all():
        texts = _texts(data, start, stop, pa.large_string())
        rows = row
    else:
        where = np.flatnonzero(numeric)
        texts = _texts(data, start[where], stop[where], pa.large_string()) if where.size else None
        rows = row[where]
    if texts is not None:
        try:
            column.values.append(np.array(texts.cast(pa.float64())))
            column.rows.append(rows)
            if key == "_step":
                column.exact.append(_exact(texts, column.values[-1]))
        except pa.ArrowException:  # something that only begins like a number
            column.odd_rows += rows.tolist()
            column.odd += [read_json(text) for text in texts.cast(pa.large_binary()).to_pylist()]
    if odd.size:
        coded = _texts(data, start[odd], stop[odd], pa.large_binary()).dictionary_encode()
        distinct = [read_json(text) for text in coded.dictionary.to_pylist()]
        column.odd_rows += row[odd].tolist()
        column.odd += [distinct[code] for code in np.asarray(coded.indices).tolist()]


def _exact(texts: Any, values: NDArray[np.float64]) -> NDArray[np.int64]:
    try:
        return np.array(texts.cast(pa.int64()))
    except pa.ArrowException:
        return np.clip(np.nan_to_num(values), -(2.0**62), 2.0**62).astype(np.int64)


def row_steps(rows: Rows, count: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the step of every row and whether it has one: the ``_step`` item, else the record's own.

    Parameters
    ----------
    rows
        As decoded.
    count
        Number of rows numbers, as in the order of the records.
    """
    step = np.zeros(count, dtype=np.int64)
    known = np.zeros(count, dtype=bool)
    for where, values in zip(rows.step_rows, rows.steps, strict=True):
        step[where], known[where] = values, True
    column = rows.columns.get("_step")
    if column is not None:
        for where, values in zip(column.rows, column.exact, strict=True):
            step[where], known[where] = values, True
    return step, known

"""Read one history file (CSV, Parquet or JSON lines) into tracks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from runtriage.errors import RunReadError
from runtriage.model.history import Track
from runtriage.trackers.columns import (
    INTERNAL_NAMES,
    STEP_NAMES,
    WALL_NAMES,
    Cells,
    axis,
    cells,
    from_objects,
    loses_digits,
    pick,
    track,
)

BY_COLUMN_BYTES = 32 * 2**20
"""Parquet files beyond this size are read one column at a time, so that memory holds one column beside the result."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Tracks of a history file, and sentences about what was not read."""

    tracks: dict[str, Track]
    notes: tuple[str, ...]


def read_csv(path: Path) -> Found:
    """Read a CSV file with a header line.

    Empty cells are not logged; ``nan`` and ``inf`` in any spelling are logged values.

    Raises
    ------
    RunReadError
        The file is not CSV.
    """
    skipped: list[int] = []

    def skip(_row: Any) -> str:
        skipped.append(1)
        return "skip"

    content = path.read_bytes()
    if not content[:64].strip():
        return Found(tracks={}, notes=(f"{path.name} is empty",))
    try:
        content.decode()
    except UnicodeDecodeError:  # a line cut or overwritten: the others are still good
        content = content.decode(errors="replace").encode()
    table = _csv_table(path, content, skip, {})
    name = pick(table.column_names, STEP_NAMES)
    if name is not None and table.column_names.count(name) == 1:
        found = cells(table.column(name), name)
        if loses_digits(found):  # integers and floats mixed: 2^53 and beyond must not pass through float64
            table = _csv_table(path, content, skip, {name: pa.string()})
            skipped = skipped[: len(skipped) // 2]
    notes = (
        (f"{len(skipped)} lines of {path.name} do not have the columns of its header and were left out",)
        if skipped
        else ()
    )
    return _from_columns(table.column_names, table.column, notes)


def read_parquet(path: Path) -> Found:
    """Read a Parquet file.

    Raises
    ------
    RunReadError
        The file is not Parquet, or is damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if path.stat().st_size > BY_COLUMN_BYTES and len(set(names)) == len(names):
                return _from_columns(names, lambda i: file.read(columns=[names[i]]).column(0), ())
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise RunReadError(f"not a readable Parquet file: {_first_line(error)}", where=str(path)) from error
    while any(pa.types.is_struct(column.type) for column in table.columns):
        table = table.flatten()
    return _from_columns(table.column_names, table.column, ())


def read_jsonl(path: Path) -> Found:
    """Read JSON lines, one object a line; nested objects become ``a.b``; bare NaN and Infinity are accepted.

    A last line that was cut off, and lines that are no objects, are left out with a note.
    """
    rows: list[dict[str, Any]] = []
    bad: list[int] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        if line.strip():
            row = _json(line)
            if isinstance(row, dict):
                rows.append(_flat(row))
            else:
                bad.append(number)
    notes = []
    if bad and bad[-1] == len(lines) - 1:  # no newline at its end: still being written, or cut
        notes.append(f"the last line of {path.name} is cut off and was left out")
        bad.pop()
    if bad:
        notes.append(f"{len(bad)} lines of {path.name} are no JSON objects and were left out")
    names = list(dict.fromkeys(key for row in rows for key in row))
    step = pick(names, STEP_NAMES)
    parsed = {name: from_objects([row.get(name) for row in rows], name) for name in names}
    return _assemble(names, lambda i: parsed[names[i]], step, len(rows), notes)


def _csv_table(path: Path, content: bytes, skip: Callable[[Any], str], types: dict[str, pa.DataType]) -> pa.Table:
    try:
        return pacsv.read_csv(
            pa.BufferReader(content),
            read_options=pacsv.ReadOptions(use_threads=False),
            parse_options=pacsv.ParseOptions(invalid_row_handler=skip),
            convert_options=pacsv.ConvertOptions(null_values=[""], strings_can_be_null=True, column_types=types),
        )
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise RunReadError(f"not a readable CSV file: {_first_line(error)}", where=str(path)) from error


def _from_columns(names: list[str], column: Callable[[int], pa.ChunkedArray], notes: tuple[str, ...]) -> Found:
    if not names:
        return Found(tracks={}, notes=notes)
    step = pick(names, STEP_NAMES)
    rows = len(column(names.index(step) if step is not None else 0))
    return _assemble(names, lambda i: cells(column(i), names[i]), step, rows, notes)


def _assemble(
    names: list[str], read: Callable[[int], Cells], step: str | None, rows: int, notes: Iterable[str]
) -> Found:
    steps = axis(read(names.index(step)) if step is not None else None, step, rows)
    clock = pick(names, WALL_NAMES)
    wall = read(names.index(clock)) if clock is not None else None
    said = [*notes, *steps.notes]
    tracks: dict[str, Track] = {}
    for i, name in enumerate(names):
        if name in (step, clock) or name in INTERNAL_NAMES:
            continue
        if name in names[:i]:
            said.append(f"the column {name} comes more than once: only the first is read")
            continue
        found = read(i)
        said.extend(found.notes)
        points = track(found, steps.step, wall)
        if points is not None:
            tracks[name] = points
    return Found(tracks=tracks, notes=tuple(said))


def _json(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass  # not strict JSON: bare NaN or Infinity, or really broken
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _flat(row: dict[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict) and depth < 8:
            out.update(_flat(value, f"{prefix}{key}.", depth + 1))
        else:
            out[prefix + key] = value
    return out


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]

"""Rows of history as W&B sends them, whole pages at once. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from runtriage.model.history import Track
from runtriage.trackers.columns import axis, from_objects
from runtriage.trackers.wandb.wire import CLOCK, INTERNAL, STEP, read_object

_ROWS = msgspec.json.Decoder(list[dict[str, Any]])
_DEEPEST = 8


def flat(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Return a row with nested dictionaries as dotted names, without media objects and without lists."""
    out: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            if "_type" not in value and depth < _DEEPEST:
                out.update(flat(value, f"{prefix}{key}.", depth + 1))
        elif value is not None and not isinstance(value, list):
            out[prefix + key] = value
    return out


def decoded(lines: Sequence[str]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Decode rows sent as JSON texts, all at once; what is no JSON object is left out, with a note.

    Examples
    --------
    >>> decoded(['{"_step":0,"loss":NaN}', '{"_step":1'])
    ([{'_step': 0, 'loss': nan}], ('1 rows of history are not readable',))
    """
    whole = f"[{','.join(lines)}]"
    try:
        return _ROWS.decode(whole), ()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass  # bare NaN is no JSON; the standard library takes it
    try:
        found = json.loads(whole)
        if len(found) == len(lines) and all(isinstance(row, dict) for row in found):
            return found, ()
    except (ValueError, RecursionError):
        pass
    rows = [row for line in lines if (row := read_object(line))]
    bad = len(lines) - len(rows)
    return rows, (f"{bad} rows of history are not readable",) if bad else ()


def tracks_of_rows(rows: Iterable[dict[str, Any]]) -> tuple[dict[str, Track], tuple[str, ...], int]:
    """Turn rows of a scan into tracks, each with the steps at which that metric was logged.

    A scan across the end of the exported part may deliver rows twice (as seen with 0.31), and it sorts rows by step,
    which shuffles the attempts of a run that was started again under its id: see :func:`logged_order`.

    Returns
    -------
    tuple
        Tracks by name, notes, and the number of rows.
    """
    ordered = logged_order(rows)
    ruler = axis(from_objects([row.get(STEP) for row in ordered], STEP), STEP, len(ordered))
    clock = from_objects([row.get(CLOCK) for row in ordered], CLOCK)
    wall = clock.value if clock.logged.all() and ordered else None
    notes = list(ruler.notes)
    tracks: dict[str, Track] = {}
    for key, (at, values) in _columns(ordered).items():
        found = from_objects(values, key)
        notes.extend(found.notes)
        at_rows = at[found.logged]
        if at_rows.size:
            tracks[key] = Track(
                step=ruler.step[at_rows], value=found.value[found.logged], wall=None if wall is None else wall[at_rows]
            )
    return tracks, tuple(notes), len(ordered)


def _columns(rows: list[dict[str, Any]]) -> dict[str, tuple[NDArray[np.int64], list[Any]]]:
    """Return per metric the numbers of the rows that have it, ascending, and what they have; nested ones dotted.

    Rows with the same keys, in a long run nearly all, are turned into columns together.
    """
    alike: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(rows):
        alike.setdefault(tuple(row), []).append(at)
    parts: dict[str, list[tuple[Sequence[int], Sequence[Any]]]] = {}
    for keys, where in alike.items():
        for key, values in zip(keys, zip(*[rows[at].values() for at in where], strict=True), strict=True):
            if key in INTERNAL:
                continue
            if not {dict, list} & set(map(type, values)):
                parts.setdefault(key, []).append((where, values))
                continue
            for at, value in zip(where, values, strict=True):
                for name, leaf in flat({key: value}).items():
                    parts.setdefault(name, []).append(([at], [leaf]))
    return {name: _merged(pieces) for name, pieces in parts.items()}


def _merged(pieces: list[tuple[Sequence[int], Sequence[Any]]]) -> tuple[NDArray[np.int64], list[Any]]:
    """Join the pieces of a column; of two values in one row (``a.b``, and ``b`` nested in ``a``) the later counts."""
    if len(pieces) == 1:
        return np.array(pieces[0][0], dtype=np.int64), list(pieces[0][1])
    cells = {at: value for where, values in pieces for at, value in zip(where, values, strict=True)}
    order = sorted(cells)
    return np.array(order, dtype=np.int64), [cells[at] for at in order]


def logged_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows once each, and in the order of their clock if a step comes twice and every row has a time."""
    kept: dict[Any, dict[str, Any]] = {}
    rows = list(rows)
    steps: list[Any] = [row.get(STEP) for row in rows]
    if set(map(type, steps)) == {int} and all(a < b for a, b in pairwise(steps)):
        return rows
    for row in rows:
        clock = row.get(CLOCK)
        rest = None if clock is not None else repr(sorted((k, v) for k, v in row.items() if v is not None))
        kept[row.get(STEP), clock, rest] = row
    out = list(kept.values())
    walls = [row.get(CLOCK) for row in out]
    repeated = len({row.get(STEP) for row in out}) < len(out)
    if repeated and all(isinstance(wall, int | float) and not isinstance(wall, bool) for wall in walls):
        out.sort(key=lambda row: float(row[CLOCK]))
    return out

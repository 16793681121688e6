"""From the columns of a table of history to tracks: what was logged, what was not, and what was only text.

Null means *not logged at this step*; NaN means *NaN was logged*. The two are never merged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from runtriage.model.history import Track

STEP_NAMES: tuple[str, ...] = ("step", "_step", "global_step", "iter", "iteration")
WALL_NAMES: tuple[str, ...] = ("_timestamp", "timestamp", "wall_time")
INTERNAL_NAMES: frozenset[str] = frozenset({"_timestamp", "_runtime", "_step"})
"""Columns that describe the row and are no metrics."""

_CATEGORY_NAMES = frozenset({"data_source", "datasource", "dataset"})
_QUIETLY_ABSENT = frozenset({"", "none", "null", "na", "n/a", "<na>"})
_EXACT_IN_FLOAT = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The numbers of one column.

    Attributes
    ----------
    value
        float64, shape (n,); anything where ``logged`` is False.
    logged
        bool, shape (n,).
    exact
        int64, shape (n,), when the column holds integers; None otherwise.
    notes
        Sentences about what was not a number.
    """

    value: NDArray[np.float64]
    logged: NDArray[np.bool_]
    exact: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """The step of every row. ``step`` is int64, shape (n,)."""

    step: NDArray[np.int64]
    notes: tuple[str, ...] = field(default=())


def pick(names: Mapping[str, Any] | list[str], wanted: tuple[str, ...]) -> str | None:
    """Return the first of the wanted names that is there, or None."""
    return next((name for name in wanted if name in names), None)


def cells(column: pa.ChunkedArray, name: str) -> Cells:
    """Read a column as numbers.

    Booleans count as 0 and 1; text is read as a number where it is one, as a category code in a column that names the
    data source, and is otherwise not logged, with a note.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    logged = np.asarray(column.is_valid().combine_chunks(), dtype=bool) if column.null_count else _all(len(column))
    if pa.types.is_integer(kind):
        fits = not pa.types.is_uint64(kind)
        exact = _numpy(pc.fill_null(column.cast(pa.int64()), 0)) if fits else None
        value = exact.astype(np.float64) if exact is not None else _numpy(column.cast(pa.float64(), safe=False))
        return Cells(value=value, logged=logged, exact=exact)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        number = column.cast(pa.uint8()) if pa.types.is_boolean(kind) else column
        filled = (
            pc.fill_null(number.cast(pa.float64(), safe=False), 0.0)
            if column.null_count
            else number.cast(pa.float64(), safe=False)
        )
        return Cells(value=_numpy(filled), logged=logged)
    if pa.types.is_timestamp(kind):
        micros = pc.fill_null(column.cast(pa.timestamp("us", tz=kind.tz), safe=False).cast(pa.int64()), 0)
        return Cells(value=_numpy(micros).astype(np.float64) / 1e6, logged=logged)
    if pa.types.is_null(kind):
        return Cells(value=np.zeros(len(column)), logged=np.zeros(len(column), dtype=bool))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return _text(column, name, logged)
    count = int(logged.sum())
    return Cells(
        value=np.zeros(len(column)),
        logged=np.zeros(len(column), dtype=bool),
        notes=(f"{count} values of {name} are {kind}, not numbers, and count as not logged",) if count else (),
    )


def from_objects(values: list[Any], name: str) -> Cells:
    """Read Python values of mixed kinds (as JSON gives them) as numbers; None means not logged."""
    if (plain := _plain(values)) is not None:
        return plain
    number = np.zeros(len(values))
    logged = np.zeros(len(values), dtype=bool)
    exact = np.zeros(len(values), dtype=np.int64)
    all_int, bad = True, 0
    for row, item in enumerate(values):
        if item is None:
            continue
        parsed = item if isinstance(item, int | float) else _number(item) if isinstance(item, str) else None
        if parsed is None:
            bad += not (isinstance(item, str) and item.strip().lower() in _QUIETLY_ABSENT)
            continue
        logged[row] = True
        number[row] = as_float(parsed)
        if isinstance(parsed, int) and -(2**63) <= parsed < 2**63:
            exact[row] = parsed
        else:
            all_int = False
    if bad and _is_category(name):
        return _codes([item if item is None else str(item) for item in values], name)
    return Cells(value=number, logged=logged, exact=exact if all_int else None, notes=_text_note(bad, name))


def _plain(values: list[Any]) -> Cells | None:
    """Read values that are nothing but numbers, and fit, at once."""
    kinds = set(map(type, values))
    if not kinds or not kinds <= {int, float}:
        return None
    try:
        exact = np.array(values, dtype=np.int64) if kinds == {int} else None
        return Cells(value=np.array(values, dtype=np.float64), logged=_all(len(values)), exact=exact)
    except OverflowError:
        return None


def axis(found: Cells | None, name: str | None, rows: int) -> Axis:
    """Turn the step column into int64 steps, one a row.

    Integers are kept exactly as logged: negative, repeated, going backwards. A row without a step has the step of the
    row before. A column that does not hold integers is replaced by the number of the row, and a note says so.
    """
    if found is None or name is None or not found.logged.any():
        note = "there is no step column: the number of the row is the step"
        return Axis(step=np.arange(rows, dtype=np.int64), notes=(note,) if rows else ())
    logged = found.logged & np.isfinite(found.value)
    if found.exact is not None:
        step = found.exact
    else:
        value = np.where(logged, found.value, 0.0)
        if bool((value != np.floor(value)).any()) or bool((np.abs(value) >= 2.0**63).any()):
            note = f"{name} does not hold whole numbers: the number of the row is the step"
            return Axis(step=np.arange(rows, dtype=np.int64), notes=(note,))
        step = value.astype(np.int64)
    missing = int(rows - logged.sum())
    if not missing:
        return Axis(step=step, notes=found.notes)
    last = np.maximum.accumulate(np.where(logged, np.arange(rows), -1))
    step = np.where(last >= 0, step[np.maximum(last, 0)], step[int(np.argmax(logged))])
    return Axis(step=step, notes=(*found.notes, f"{missing} rows have no {name}: they count to the step before"))


def loses_digits(found: Cells) -> bool:
    """Tell whether a step column was read as floats although it holds integers that floats cannot hold."""
    return found.exact is None and bool((np.abs(found.value[found.logged]) >= _EXACT_IN_FLOAT).any())


def track(found: Cells, step: NDArray[np.int64], wall: Cells | None) -> Track | None:
    """Return the logged points of a column, or None if there are none."""
    if not found.logged.any():
        return None
    clock = None if wall is None or not wall.logged.all() else wall.value
    if found.logged.all():
        return Track(step=step.copy(), value=found.value, wall=None if clock is None else clock.copy())
    keep = found.logged
    return Track(step=step[keep], value=found.value[keep], wall=None if clock is None else clock[keep])


def as_float(number: float) -> float:
    """Return a Python number as float; integers beyond the range of a float become infinite, as JSON readers do."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _all(rows: int) -> NDArray[np.bool_]:
    return np.ones(rows, dtype=bool)


def _numpy(column: Any) -> NDArray[Any]:
    return np.array(column.to_numpy())


def _number(text: str) -> float | int | None:
    text = text.strip()
    if "_" in text or not text.isascii():
        return None
    try:
        return int(text) if text.lstrip("+-").isdigit() and len(text) < 40 else float(text)
    except ValueError:
        return None


def _is_category(name: str) -> bool:
    return name.rpartition("/")[2].lower() in _CATEGORY_NAMES


def _text_note(bad: int, name: str) -> tuple[str, ...]:
    return (f"{bad} values of {name} are not numbers and count as not logged",) if bad else ()


def _text(column: pa.ChunkedArray, name: str, logged: NDArray[np.bool_]) -> Cells:
    coded = column.combine_chunks().dictionary_encode()
    words = [w.decode("utf-8", "replace") if isinstance(w, bytes) else w for w in coded.dictionary.to_pylist()]
    index = np.where(logged, np.asarray(coded.indices.fill_null(0), dtype=np.int64), 0)
    if not words:
        return Cells(value=np.zeros(len(column)), logged=logged)
    parsed = from_objects(words, "")
    quiet = np.array([word.strip().lower() in _QUIETLY_ABSENT for word in words])
    if bool((~parsed.logged & ~quiet).any()) and _is_category(name):
        return _codes(column.to_pylist(), name)
    bad = int((logged & ~parsed.logged[index] & ~quiet[index]).sum())
    return Cells(
        value=parsed.value[index],
        logged=logged & parsed.logged[index],
        exact=None if parsed.exact is None or not parsed.logged.all() else parsed.exact[index],
        notes=_text_note(bad, name),
    )


def _codes(values: list[Any], name: str) -> Cells:
    seen: dict[Any, int] = {}
    code = np.array([0 if item is None else seen.setdefault(item, len(seen)) for item in values], dtype=np.int64)
    return Cells(
        value=code.astype(np.float64),
        logged=np.array([item is not None for item in values], dtype=bool),
        exact=code,
        notes=(f"{name} holds {len(seen)} names, read as codes in order of appearance",),
    )

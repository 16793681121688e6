"""Single logged values: JSON texts, typed values of new clients, nested values of old ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from runtriage.trackers.wandb.protobuf import WireError, fields

KEY, NESTED_KEY, BOOLEAN, INTEGER, NUMBER, TEXT, JSON, VALUE_JSON = 1, 2, 4, 5, 6, 7, 8, 16
"""Fields of a history item; config and summary items have the first two and the last."""

_DEPTH = 8


def read_json(text: bytes) -> Any:
    """Return what a JSON text says, None if it is none; bare NaN and Infinity are accepted."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_typed(item: bytes) -> Any:
    """Return the value of an item that has no JSON text, or None if it has none."""
    try:
        for number, value in fields(item):
            if isinstance(value, int):
                if number == INTEGER:
                    return (value >> 1) ^ -(value & 1)  # sint64
                if number == BOOLEAN:
                    return bool(value)
            elif number == NUMBER and len(value) == 8:
                return struct.unpack("<d", value)[0]
            elif number == TEXT:
                return value.decode("utf-8", "replace")
            elif number == JSON:
                return read_json(value)
    except WireError:
        pass
    return None


def flat(value: Any, key: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a logged value under dotted keys; media and histograms (dicts with ``_type``) have none.

    Examples
    --------
    >>> list(flat({"a": 1, "b": {"c": 2}}, "val"))
    [('val.a', 1), ('val.b.c', 2)]
    """
    if not isinstance(value, Mapping):
        if not isinstance(value, list):
            yield key, value
        return
    if "_type" not in value and depth < _DEPTH:
        for name, inner in value.items():
            yield from flat(inner, f"{key}.{name}", depth + 1)

"""The summary of a run as text, so that what is not ours stays as it is, byte for byte. Pure.

The W&B client would read the summary into Python, and write all of it back: ``1e5`` becomes ``100000.0``, NaN written
through it becomes null. Here values that are not ours are never decoded.
"""

from __future__ import annotations

import json
import math
from json.decoder import scanstring  # type: ignore[attr-defined]

from runtriage.model.marks import OWN_PREFIX, USER_KEYS

_DECODER = json.JSONDecoder(strict=False)
_BLANK = " \t\r\n"
_NESTED = OWN_PREFIX.rstrip(".")
_SIGNS = frozenset({"status", "version", "cursor"})
"""A member ``runtriage`` is our values nested only with one of these: others may call a value of theirs so."""


def members(text: str) -> dict[str, tuple[str, str]]:
    """Split a JSON object into its members.

    Returns
    -------
    dict
        Key to (key as written, value as written), in order; the last of several equal keys counts, as in JSON.

    Raises
    ------
    ValueError
        Not a JSON object.
    """
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("the summary is no JSON object")
    at = _skip(text, at + 1)
    found: dict[str, tuple[str, str]] = {}
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise ValueError("the summary is no JSON object")
        start = at
        key, at = scanstring(text, at + 1, False)  # noqa: FBT003
        spelt = text[start:at]
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("the summary is no JSON object")
        start = _skip(text, at + 1)
        _, stop = _DECODER.raw_decode(text, start)
        found[key] = (spelt, text[start:stop])
        at = _skip(text, stop)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return found


def own_values(text: str) -> dict[str, str]:
    """Return our values in a summary, dotted or nested, as text."""
    found: dict[str, str] = {}
    for key, (_, raw) in members(text or "{}").items():
        if is_own(key):
            found[key] = as_text(json.loads(raw))
        elif _is_nested_own(key, raw):
            found.update({OWN_PREFIX + name: as_text(value) for name, value in _leaves(json.loads(raw))})
    return found


def with_own(text: str, values: dict[str, str]) -> str:
    """Return the summary with exactly these values of ours; the text itself if that changes nothing."""
    if own_values(text) == values:
        return text
    kept = [
        f"{spelt}: {raw}"
        for key, (spelt, raw) in members(text or "{}").items()
        if not is_own(key) and not _is_nested_own(key, raw)
    ]
    kept += [f"{json.dumps(key)}: {as_json(value)}" for key, value in values.items()]
    return "{" + ", ".join(kept) + "}"


def is_own(key: str) -> bool:
    """Tell whether a key is ours to write."""
    return key.startswith(OWN_PREFIX) and key not in USER_KEYS


def as_json(value: str) -> str:
    """Write a value as a JSON number where that reads back as the same text, so that W&B can sort by it."""
    try:
        number = float(value)
    except ValueError:
        return json.dumps(value)
    whole = value.lstrip("-").isdigit() and str(int(value)) == value and abs(int(value)) < 2**53
    fraction = math.isfinite(number) and not number.is_integer() and repr(number) == value
    return value if whole or fraction else json.dumps(value)


def as_text(value: object) -> str:
    """Return a decoded JSON value as the text it was made of."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value) if isinstance(value, float) else json.dumps(value)


def _is_nested_own(key: str, raw: str) -> bool:
    return (
        key == _NESTED
        and isinstance(nested := json.loads(raw), dict)
        and not _SIGNS.isdisjoint(nested)
        and all(is_own(OWN_PREFIX + name) for name, _ in _leaves(nested))
    )


def _leaves(value: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    out: list[tuple[str, object]] = []
    for key, item in value.items():
        out += _leaves(item, f"{prefix}{key}.") if isinstance(item, dict) else [(prefix + key, item)]
    return out


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in _BLANK and at < len(text):
        at += 1
    return at

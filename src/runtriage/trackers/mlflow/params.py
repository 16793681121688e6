"""What a parameter was before MLflow made it text. Pure."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import msgspec

_LITERAL_LIMIT = 6000
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, Any] = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}


def parse_param(text: str) -> Any:
    """Return what a parameter was before MLflow made it text, if that is beyond doubt; else the text.

    Clean numbers, booleans, None, and lists or mappings in JSON or Python spelling are read. ``007``, numbers of more
    than 18 digits, ``nan`` and ``inf`` stay text.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    if text[:1] in ("{", "[") and len(text) <= _LITERAL_LIMIT:
        return _parse_container(text)
    return text


def _parse_container(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        if "\\" in text:  # Python warns about odd escapes while it parses, and this text is not ours
            return text
    try:
        found = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # TypeError: {{}} is a set of a dict
        return text
    return _plain(found) if _is_plain(found) else text


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, str | bool | int | float)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value

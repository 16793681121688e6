"""Reports as JSON: one strict line each, readable by any JSON parser, and back.

Strict JSON has no NaN and no infinities, so a number that is not finite is one of the strings ``"NaN"``,
``"Infinity"``, ``"-Infinity"``. Every other number is a JSON number. Characters that a terminal or a line splitter
would act on are escaped. Readers ignore keys they do not know; a new meaning of a known key makes a new schema version.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from runtriage.errors import CodecError
from runtriage.model.report import REPORT_SCHEMA, Report

SPELT = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How numbers that JSON does not know are spelt."""

_FAMILY = "runtriage.report/"
_WORDS_LIMIT = 40
_ACTING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACE = " - at `"


def encode_report(report: Report) -> bytes:
    """Write a report as one line of strict JSON in UTF-8, without a newline; equal reports give equal bytes.

    Parameters
    ----------
    report
        Any report. Lone surrogates in names, which UTF-8 cannot carry, become U+FFFD.

    Examples
    --------
    >>> from runtriage.model.report import BaselineUse, RunSummary
    >>> from runtriage.model.vocab import BaselineKind, Level, RunState
    >>> run = RunSummary(source="files:runs", id="a", name="a", state=RunState.FINISHED)
    >>> use = BaselineUse(kind=BaselineKind.SELF)
    >>> encode_report(Report(run=run, verdict=Level.HEALTHY, reason="Fine.", baseline=use))[:31]
    b'{"schema":"runtriage.report/1",'
    """
    plain = _spelt(msgspec.to_builtins(report, enc_hook=_scalar))
    text = msgspec.json.encode(plain).decode()
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def decode_report(content: bytes | str) -> Report:
    """Read what :func:`encode_report` wrote.

    Raises
    ------
    CodecError
        Not JSON, not a report, or a report of a schema version this one does not know; ``where`` is the path of the
        first thing that does not fit.
    """
    try:
        plain = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CodecError(f"not a report: {error}", where="$", hint="a report is one line of JSON") from error
    _check_schema(plain)
    for holder, key in _numbers(plain):
        holder[key] = SPELT.get(holder[key], holder[key])
    try:
        return msgspec.convert(plain, Report)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(_PLACE)
        raise CodecError(what, where=where.rstrip("`") or "$") from error


def report_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a report line, for those who read reports in another language."""
    number = {"anyOf": [{"type": "number"}, {"enum": sorted(SPELT)}]}
    schema: dict[str, Any] = _with_numbers(msgspec.json.schema(Report))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$defs"]["Number"] = {"description": "A number; one that is not finite is spelt as a string.", **number}
    schema["$defs"]["Report"]["properties"]["schema"] = {"const": REPORT_SCHEMA}
    return schema


def _check_schema(plain: object) -> None:
    if not isinstance(plain, dict):
        raise CodecError("a report is a JSON object", where="$")
    said = plain.get("schema")
    if said == REPORT_SCHEMA:
        return
    if not isinstance(said, str) or not said.startswith(_FAMILY):
        raise CodecError(f"not a report: its schema is not {REPORT_SCHEMA!r}", where="$.schema")
    raise CodecError(
        f"the report has schema {said[:_WORDS_LIMIT]!r}; this version reads {REPORT_SCHEMA!r}",
        where="$.schema",
        hint="read it with the version of runtriage that wrote it",
    )


def _numbers(plain: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the places where a spelt number may stand: nowhere else is the string "NaN" anything but a string."""
    yield from _strings_at(plain, "p_false_alarm")
    for finding in _objects(plain, "findings"):
        yield from _strings_at(finding, "z", "p_false_alarm")
        for cause in _objects(finding, "causes"):
            yield from _strings_at(cause, "weight")


def _strings_at(holder: dict[str, Any], *keys: str) -> Iterator[tuple[dict[str, Any], str]]:
    yield from ((holder, key) for key in keys if isinstance(holder.get(key), str))


def _objects(holder: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    items = holder.get(key)
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))


def _spelt(value: Any) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_spelt(key): _spelt(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelt(item) for item in value]
    return value


def _scalar(value: Any) -> Any:
    """Return a numpy scalar as the Python number it is."""
    return value.item()


def _with_numbers(schema: Any) -> Any:
    if isinstance(schema, dict):
        if schema.get("type") == "number":
            return {"$ref": "#/$defs/Number"} | {k: v for k, v in schema.items() if k in {"default", "description"}}
        return {key: _with_numbers(item) for key, item in schema.items()}
    return [_with_numbers(item) for item in schema] if isinstance(schema, list | tuple) else schema

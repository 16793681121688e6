"""What the records of a ``.wandb`` file beside its history say about a run: who it is, its config, how it ended.

Only a handful of records matter here, so they are read one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from runtriage.trackers.wandb.protobuf import WireError, fields, signed
from runtriage.trackers.wandb.values import KEY, NESTED_KEY, VALUE_JSON, flat

SUMMARY, CONFIG, CONTROL, RUN, EXIT = 3, 5, 16, 17, 18
_UPDATE, _REMOVE = 1, 2
_RUN_TEXT = {1: "run_id", 2: "entity", 3: "project", 6: "group", 7: "job_type", 8: "name", 12: "sweep"}
_RUN_CONFIG, _RUN_TAG, _RUN_START = 4, 10, 17
_INTERNAL = "_wandb"


@dataclass(slots=True, kw_only=True)
class Facts:
    """A run as its log tells it; texts are hostile input.

    Attributes
    ----------
    run_id, entity, project, group, job_type, name, sweep
        As logged; empty if not.
    tags
        In logged order.
    config
        Nested, without W&B's own entries.
    started
        Seconds since the epoch, or None.
    exit_code
        None as long as the run has not ended.
    """

    run_id: str = ""
    entity: str = ""
    project: str = ""
    group: str = ""
    job_type: str = ""
    name: str = ""
    sweep: str = ""
    tags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    started: float | None = None
    exit_code: int | None = None


def read_facts(payloads: Iterable[bytes]) -> Facts:
    """Fold records, in logged order, into what they say about the run; damaged ones count for nothing."""
    facts = Facts()
    for payload in payloads:
        try:
            for number, value in fields(payload):
                if isinstance(value, bytes):
                    _fold(number, value, facts)
        except WireError:
            continue
    return facts


def read_summary(payloads: Iterable[bytes]) -> dict[str, Any]:
    """Fold summary records into the last value of every key; dotted keys, leaves only."""
    nested: dict[str, Any] = {}
    for payload in payloads:
        try:
            for number, value in fields(payload):
                if number == SUMMARY and isinstance(value, bytes):
                    _update(nested, value)
        except WireError:
            continue
    return {key: leaf for name, value in nested.items() for key, leaf in flat(value, name)}


def _fold(number: int, value: bytes, facts: Facts) -> None:
    if number == RUN:
        for inner, found in fields(value):
            if inner == _RUN_START and isinstance(found, bytes):
                facts.started = _timestamp(found)
            elif inner == _RUN_CONFIG and isinstance(found, bytes):
                _update(facts.config, found)
            elif inner == _RUN_TAG and isinstance(found, bytes):
                facts.tags.append(found.decode("utf-8", "replace"))
            elif inner in _RUN_TEXT and isinstance(found, bytes):
                setattr(facts, _RUN_TEXT[inner], found.decode("utf-8", "replace"))
        facts.tags = list(dict.fromkeys(facts.tags))
    elif number == CONFIG:
        _update(facts.config, value)
    elif number == EXIT:
        code = next((found for inner, found in fields(value) if inner == 1), 0)  # protobuf leaves a zero out
        facts.exit_code = signed(code) if isinstance(code, int) else None
    facts.config.pop(_INTERNAL, None)


def _update(target: dict[str, Any], message: bytes) -> None:
    """Carry out the updates and removals of a config or summary record."""
    for number, item in fields(message):
        if not isinstance(item, bytes) or number not in (_UPDATE, _REMOVE):
            continue
        path, text = _item(item)
        if not path:
            continue
        place = target
        for name in path[:-1]:
            inner = place.get(name)
            if not isinstance(inner, dict):
                inner = place[name] = {}
            place = inner
        if number == _REMOVE:
            place.pop(path[-1], None)
        else:
            place[path[-1]] = _json(text)


def _item(item: bytes) -> tuple[list[str], bytes]:
    plain, nested, text = "", [], b"null"
    for number, value in fields(item):
        if isinstance(value, bytes):
            if number == KEY:
                plain = value.decode("utf-8", "replace")
            elif number == NESTED_KEY:
                nested.append(value.decode("utf-8", "replace"))
            elif number == VALUE_JSON:
                text = value
    return ([plain] if plain else nested), text


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode("utf-8", "replace")


def _timestamp(message: bytes) -> float | None:
    parts = dict(_numbers(message))
    return signed(parts[1]) + parts.get(2, 0) / 1e9 if parts.get(1) else None


def _numbers(message: bytes) -> Iterator[tuple[int, int]]:
    for number, value in fields(message):
        if isinstance(value, int):
            yield number, value

"""Readable slow twins of the ``.wandb`` reader: a writer, and a reader that takes one record after the other."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

BLOCK = 32768
FILE_HEADER = struct.pack("<4sHB", b":W&B", 0xBEE1, 0)


def varint(number: int) -> bytes:
    """Encode an unsigned number."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def message(number: int, content: bytes) -> bytes:
    """Encode a length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def item(key: Sequence[str] | str, text: str) -> bytes:
    """Encode a history, config or summary item: a plain key as old clients write it, or nested keys as new ones do."""
    keys = [(1, key)] if isinstance(key, str) else [(2, part) for part in key]
    return b"".join(message(number, part.encode()) for number, part in keys) + message(16, text.encode())


def history(row: Mapping[Any, str], number: int = 1, step: int | None = None) -> bytes:
    """Encode a history record: keys (text, or tuples for nested keys) to JSON texts."""
    body = b"".join(message(1, item(key, text)) for key, text in row.items())
    if step is not None:
        body += message(2, b"\x08" + varint(step) if step else b"")
    return b"\x08" + varint(number) + message(2, body)


def run(run_id: str, config: Mapping[str, str] | None = None) -> bytes:
    """Encode a run record; the config maps keys to JSON texts."""
    body = message(1, run_id.encode()) + message(3, b"proj")
    body += message(4, b"".join(message(1, item(key, text)) for key, text in (config or {}).items()))
    return b"\x08\x01" + message(17, body)


def ended(code: int) -> bytes:
    """Encode an exit record."""
    return b"\x08\x09" + message(18, b"\x08" + varint(code) if code else b"")


def log(records: Iterable[bytes]) -> bytes:
    """Write records as a ``.wandb`` file."""
    out = bytearray(FILE_HEADER)
    for record in records:
        rest, first = record, True
        while True:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                continue
            piece, rest = rest[: room - 7], rest[room - 7 :]
            kind = (1 if first else 4) if not rest else (2 if first else 3)
            out += struct.pack("<IHB", zlib.crc32(piece, zlib.crc32(bytes([kind]))), len(piece), kind) + piece
            first = False
            if not rest:
                break
    return bytes(out)


def records_of(content: bytes) -> Iterator[bytes]:
    """Yield the records of an undamaged file."""
    at, parts = 7, []
    while at + 7 <= len(content):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        _, size, kind = struct.unpack_from("<IHB", content, at)
        if not kind:
            return
        piece = content[at + 7 : at + 7 + size]
        at += 7 + size
        parts = [piece] if kind in (1, 2) else [*parts, piece]
        if kind in (1, 4):
            yield b"".join(parts)


def fields_of(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of every field of a message."""
    at = 0
    while at < len(content):
        tag, at = _number(content, at)
        kind = tag & 7
        if kind == 0:
            value, at = _number(content, at)
        else:
            size = {1: 8, 5: 4}.get(kind, -1)
            if size < 0:
                size, at = _number(content, at)
            value, at = content[at : at + size], at + size
        yield tag >> 3, value


def rows_of(content: bytes) -> list[list[tuple[str, Any]]]:
    """Return every history row as pairs of a dotted key and a Python value."""
    rows = []
    for record in records_of(content):
        for number, body in fields_of(record):
            if number == 2:
                row = []
                for inner, found in fields_of(body):
                    if inner == 1:
                        keys, text = [], "null"
                        for field, value in fields_of(found):
                            if field in (1, 2):
                                keys.append(value.decode())
                            elif field == 16:
                                text = value
                        row.append((".".join(keys), json.loads(text)))
                rows.append(row)
    return rows


def _number(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7

"""One history as one Parquet file and back, bit for bit. Pure: nouns in, bytes out.

The columns ``metric, step, value, wall`` are there for whoever opens the file. What is read back are the numbers of the
last three and the table of tracks in the file's metadata, since names may be no text at all (lone surrogates), tracks
may be empty, and a track without a clock is not one whose clock is NaN. A digest over all of that is kept beside them:
a file that was torn, edited, or written by another version is no entry.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from runtriage import __version__
from runtriage.model.history import RunHistory, Track

SCHEMA = f"runtriage.history/1 by {__version__}"
"""A version that reads a tracker better must not be served what an older one made of it."""
_FACTS, _DIGEST = b"runtriage.history", b"runtriage.digest"
_NUMBERS = ("step", "value", "wall")
_ENCODINGS = {"step": "DELTA_BINARY_PACKED", "value": "BYTE_STREAM_SPLIT", "wall": "BYTE_STREAM_SPLIT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Which run of which source.

    Attributes
    ----------
    source
        Canonical address.
    origin
        Server behind it, where the address leaves that to the environment; else empty.
    run
        The tracker's id; hostile input, and never part of a path.
    """

    source: str
    origin: str
    run: str

    @property
    def digest(self) -> str:
        """Return the name of the entry: 64 hexadecimal digits."""
        return hashlib.sha256(_json([self.source, self.origin, self.run])).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """What is kept of a history: everything but what any listing tells anew.

    Attributes
    ----------
    cursor
        The tracker's cursor before the points were read.
    tracks, notes
        As in :class:`~runtriage.model.history.RunHistory`; arrays cannot be written to.
    """

    cursor: str
    tracks: dict[str, Track]
    notes: tuple[str, ...] = ()


class _Facts(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    source: str
    origin: str
    run: str
    cursor: str
    tracks: list[tuple[str, int, bool]]
    notes: list[str]


def entry_of(history: RunHistory) -> Entry:
    """Return what is kept of a history."""
    return Entry(cursor=history.info.cursor, tracks=dict(history.tracks), notes=history.notes)


def encode_entry(key: Key, entry: Entry) -> bytes:
    """Return the Parquet file of an entry.

    Raises
    ------
    ValueError, TypeError
        A track is not made of columns of one length.
    """
    table = [(name, len(track.step), track.wall is not None) for name, track in entry.tracks.items()]
    facts = _json([SCHEMA, key.source, key.origin, key.run, entry.cursor, table, list(entry.notes)])
    step = _joined([track.step for track in entry.tracks.values()], np.int64)
    value = _joined([track.value for track in entry.tracks.values()], np.float64)
    wall = _joined([_wall(track) for track in entry.tracks.values()], np.float64)
    if not len(step) == len(value) == len(wall) == sum(n for _, n, _ in table):
        raise ValueError("a track holds columns of different lengths")
    names = pa.array([name.encode("utf-8", "replace").decode() for name, _, _ in table], pa.string())
    codes = np.repeat(np.arange(len(table), dtype=np.int32), [n for _, n, _ in table])
    metric = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)
    columns = pa.table({"metric": metric, "step": step, "value": value, "wall": wall})
    content = columns.replace_schema_metadata({_FACTS: facts, _DIGEST: _digest(facts, step, value, wall)})
    out = BytesIO()
    pq.write_table(
        content, out, compression="zstd", compression_level=1, use_dictionary=["metric"], column_encoding=_ENCODINGS,
        write_statistics=False,
    )  # fmt: skip
    return out.getvalue()


def decode_entry(content: bytes, key: Key) -> Entry | None:
    """Return the entry in a file; None if the file is damaged, of another version, or of another run."""
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            said = file.schema_arrow.metadata or {}
            facts = _read_facts(said.get(_FACTS, b""))
            if facts is None or key != Key(source=facts.source, origin=facts.origin, run=facts.run):
                return None
            table = file.read(columns=list(_NUMBERS), use_threads=False)
        step, value, wall = (np.asarray(table.column(name).combine_chunks()) for name in _NUMBERS)
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
        return None
    if _digest(said[_FACTS], step, value, wall) != said.get(_DIGEST):
        return None
    tracks: dict[str, Track] = {}
    at = 0
    for name, count, has_wall in facts.tracks:
        part = slice(at, at := at + count)
        tracks[name] = Track(step=step[part], value=value[part], wall=wall[part] if has_wall else None)
    return Entry(cursor=facts.cursor, tracks=tracks, notes=tuple(facts.notes))


def _read_facts(text: bytes) -> _Facts | None:
    try:
        fields = json.loads(text)  # not msgspec: names may hold lone surrogates
        facts = msgspec.convert(dict(zip(_Facts.__struct_fields__, fields, strict=True)), _Facts)
    except (ValueError, TypeError, RecursionError, msgspec.MsgspecError):
        return None
    return facts if facts.schema == SCHEMA else None


def _json(facts: Any) -> bytes:
    return json.dumps(facts, separators=(",", ":")).encode("ascii")


def _joined(parts: list[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([*parts, np.empty(0, kind)]).astype(kind, casting="same_kind", copy=False)


def _wall(track: Track) -> NDArray[np.float64]:
    return np.zeros(len(track.step)) if track.wall is None else track.wall


def _digest(facts: bytes, *columns: NDArray[Any]) -> bytes:
    digest = hashlib.blake2b(facts, digest_size=16)
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest().encode("ascii")

"""Learned baselines as one file: a compressed MessagePack document whose arrays are raw little-endian numbers.

The document names its own schema, so that a file from a later version is refused with a clear word instead of being
misread.
"""

from __future__ import annotations

import zlib

import msgspec
import numpy as np
from numpy.typing import NDArray

from runtriage.errors import CodecError
from runtriage.model.baseline import Baseline, BaselineSet, Member

SCHEMA = "runtriage.baselines/1"

_LEVEL = 6
_LARGEST = 1 << 30
"""Bytes after decompression beyond which a file is taken for an attack or an accident."""

_Rows = tuple[bytes, bytes]


class _MemberDocument(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    level: dict[str, bytes]
    peak: dict[str, bytes]
    event: dict[str, bytes]
    rows: dict[str, _Rows]


class _BaselineDocument(msgspec.Struct, frozen=True, kw_only=True):
    edges: bytes
    members: list[_MemberDocument]
    excluded: list[str]
    paired: bool
    formed_by: str


class _SetDocument(msgspec.Struct, frozen=True, kw_only=True):
    schema: str
    source: str
    tool: str
    cohorts: dict[str, _BaselineDocument]


class _Head(msgspec.Struct, frozen=True):
    schema: str


def encode_baselines(baselines: BaselineSet) -> bytes:
    """Write learned baselines; equal baselines give equal bytes.

    Parameters
    ----------
    baselines
        What :func:`runtriage.pipeline.learn` returned.
    """
    document = _SetDocument(
        schema=SCHEMA, source=baselines.source, tool=baselines.tool,
        cohorts={name: _document(baselines.cohorts[name]) for name in sorted(baselines.cohorts)},
    )
    return zlib.compress(msgspec.msgpack.encode(document), _LEVEL)


def decode_baselines(content: bytes) -> BaselineSet:
    """Read what :func:`encode_baselines` wrote.

    Raises
    ------
    CodecError
        Not such a file, cut short, of another version, or with arrays that do not fit each other.
    """
    try:
        unpack = zlib.decompressobj()
        packed = unpack.decompress(content, _LARGEST)
        if not unpack.eof:
            raise CodecError(
                "the baseline file is cut short or far too large", where="$", hint="learn the baselines again"
            )
        head = msgspec.msgpack.decode(packed, type=_Head)
        if head.schema != SCHEMA:
            raise CodecError(
                f"the baseline file has schema {head.schema[:40]!r}; this version reads {SCHEMA!r}", where="$.schema",
                hint="learn the baselines again with this version",
            )
        document = msgspec.msgpack.decode(packed, type=_SetDocument)
    except zlib.error as error:
        raise CodecError(
            "not a baseline file", where="$", hint="it is made by `runtriage learn SOURCE -o FILE`"
        ) from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise CodecError(
            f"not a baseline file: {error}", where="$", hint="it is made by `runtriage learn SOURCE -o FILE`"
        ) from error
    cohorts = {name: _baseline(name, part) for name, part in document.cohorts.items()}
    return BaselineSet(cohorts=cohorts, source=document.source, tool=document.tool)


def _document(baseline: Baseline) -> _BaselineDocument:
    return _BaselineDocument(
        edges=_packed(baseline.edges), excluded=list(baseline.excluded), paired=baseline.paired,
        formed_by=baseline.formed_by,
        members=[
            _MemberDocument(
                run_id=m.run_id,
                level={k: _packed(m.level[k]) for k in sorted(m.level)},
                peak={k: _packed(m.peak[k]) for k in sorted(m.peak)},
                event={k: np.ascontiguousarray(m.event[k], dtype="<i8").tobytes() for k in sorted(m.event)},
                rows={k: (_packed(m.rows[k][0]), _packed(m.rows[k][1])) for k in sorted(m.rows)},
            )
            for m in baseline.members
        ],
    )


def _baseline(name: str, part: _BaselineDocument) -> Baseline:
    where = f"$.cohorts[{name[:40]!r}]"
    edges = _floats(part.edges, f"{where}.edges")
    if edges.size < 2 or not (np.diff(edges) > 0).all():
        raise CodecError("the bins do not rise", where=f"{where}.edges", hint="learn the baselines again")
    members = tuple(_member(m, edges.size - 1, f"{where}.members[{i}]") for i, m in enumerate(part.members))
    return Baseline(
        fingerprint=name, edges=edges, members=members, excluded=tuple(part.excluded), paired=part.paired,
        formed_by=part.formed_by
    )


def _member(part: _MemberDocument, bins: int, where: str) -> Member:
    rows = {}
    for role, (step, value) in part.rows.items():
        rows[role] = _floats(step, f"{where}.rows"), _floats(value, f"{where}.rows")
        if rows[role][0].size != rows[role][1].size:
            raise CodecError(
                "steps and values differ in number", where=f"{where}.rows", hint="learn the baselines again"
            )
    return Member(
        run_id=part.run_id,
        level={k: _floats(v, f"{where}.level", bins) for k, v in part.level.items()},
        peak={k: _floats(v, f"{where}.peak", bins) for k, v in part.peak.items()},
        event={k: _whole(v, "<i8", f"{where}.event").astype(np.int64) for k, v in part.event.items()},
        rows=rows,
    )


def _packed(values: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def _floats(content: bytes, where: str, size: int | None = None) -> NDArray[np.float64]:
    out = _whole(content, "<f8", where).astype(np.float64)
    if size is not None and out.size != size:
        raise CodecError(
            f"{out.size} values where there are {size} bins", where=where, hint="learn the baselines again"
        )
    return out


def _whole(content: bytes, dtype: str, where: str) -> NDArray[np.generic]:
    if len(content) % 8:
        raise CodecError("an array is cut in mid-number", where=where, hint="learn the baselines again")
    return np.frombuffer(content, dtype=dtype)

"""The outer layer of a ``.wandb`` file: a LevelDB log cut into checksummed pieces, taken apart all blocks at once.

A file begins with seven bytes and is divided into blocks of 32 KiB counted from its start. A piece never crosses a
block; it has a header of seven bytes (CRC-32, size, type) and is a whole record or the first, a middle or the last part
of one.
Because every block starts with a header, all blocks can be walked in step: as many numpy passes as a block has pieces,
instead of as many Python turns as the file has records.

Writers flush in chunks and may die at any byte, so a cut tail is normal. Nothing here raises for damaged content: what
could not be read is counted in :class:`Frames`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BLOCK = 32768
HEADER = 7
MAGIC = b":W&B"
PAD = 16
"""Zero bytes behind the content, so that reading a number at the very end stays inside the array."""

FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
_SEED = tuple(zlib.crc32(bytes([kind])) for kind in range(5))

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """Where records lie in a buffer.

    Attributes
    ----------
    data
        uint8, shape (size + PAD,).
    start, stop
        int64, shape (n,): half-open spans in ``data``, ascending.
    order
        int64, shape (n,): place of the record among all records of the file.
    crc
        uint32, shape (n,): stated checksums; None where they were checked already.
    """

    data: Bytes
    start: Places
    stop: Places
    order: Places
    crc: NDArray[np.uint32] | None

    def where(self, keep: NDArray[np.bool_] | Places) -> Records:
        """Return some of the records: a mask or ascending indices."""
        crc = None if self.crc is None else self.crc[keep]
        return Records(
            data=self.data, start=self.start[keep], stop=self.stop[keep], order=self.order[keep], crc=crc
        )

    def payload(self, i: int) -> bytes:
        """Return the bytes of one record."""
        return self.data[self.start[i] : self.stop[i]].tobytes()

    def intact(self) -> NDArray[np.bool_]:
        """Tell for every record whether its checksum holds; bool, shape (n,)."""
        if self.crc is None:
            return np.ones(self.start.size, dtype=bool)
        view = self.data.data
        crc32, seed = zlib.crc32, _SEED[FULL]
        spans = zip(self.start.tolist(), self.stop.tolist(), strict=True)
        found = np.array([crc32(view[a:b], seed) for a, b in spans], dtype=np.uint32)
        return np.equal(found, self.crc)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frames:
    """The records of a file.

    Attributes
    ----------
    whole
        Records that lie in one piece.
    joined
        Records put together from several pieces, in a buffer of their own.
    damaged
        Blocks of which a part could not be read.
    broken
        Records that lost a piece, or a piece of which has a wrong checksum.
    cut
        True if the file ends inside a piece or in unwritten space.
    """

    whole: Records
    joined: Records
    damaged: int
    broken: int
    cut: bool


def load(path: Path) -> Bytes:
    """Return the content of a file with :data:`PAD` zero bytes behind it; uint8."""
    with path.open("rb") as file:
        return np.frombuffer(file.read() + bytes(PAD), dtype=np.uint8)


def is_log(data: Bytes) -> bool:
    """Tell whether a buffer begins as a ``.wandb`` file does."""
    return data[: len(MAGIC)].tobytes() == MAGIC and data.size >= HEADER + PAD


def split(data: Bytes) -> Frames:
    """Take a file apart.

    Parameters
    ----------
    data
        As :func:`load` returns it, checked by :func:`is_log`.
    """
    pieces, damaged, cut = _pieces(data)
    pieces = pieces.where(np.argsort(pieces.start, kind="stable"))
    full = np.flatnonzero(pieces.kind == FULL)
    ones = pieces.where(full)
    whole = Records(data=data, start=ones.start, stop=ones.stop, order=full, crc=ones.crc)
    part = np.flatnonzero(pieces.kind != FULL)
    joined, broken = _joined(data, pieces.where(part), part)
    return Frames(whole=whole, joined=joined, damaged=damaged, broken=broken, cut=cut)


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    start: Places
    stop: Places
    kind: Bytes
    crc: NDArray[np.uint32]

    def where(self, keep: NDArray[np.bool_] | Places) -> _Pieces:
        return _Pieces(self.start[keep], self.stop[keep], self.kind[keep], self.crc[keep])


def _pieces(data: Bytes) -> tuple[_Pieces, int, bool]:
    size = data.size - PAD
    base = np.arange(0, size, BLOCK, dtype=np.int64)
    end = np.minimum(base + BLOCK, size)
    cursor = base.copy()
    cursor[0] = HEADER
    found: list[_Pieces] = []
    blank_from = np.zeros(base.size, dtype=bool)
    damaged, cut = np.zeros(base.size, dtype=bool), False
    live = np.arange(base.size)
    while True:
        live = live[cursor[live] + HEADER <= end[live]]
        if not live.size:
            break
        at = cursor[live]
        crc = _little_endian(data, at, 4).astype(np.uint32)
        length = _little_endian(data, at + 4, 2)
        kind = data[at + 6]
        stop = at + HEADER + length
        known = (kind >= FULL) & (kind <= LAST)
        good = known & (stop <= end[live])
        blank = (kind == 0) & (length == 0) & (crc == 0)
        tail = known & (stop > size) & (end[live] == size)
        cut = cut or bool(tail.any())
        blank_from[live[blank]] = True
        damaged[live[~good & ~blank & ~tail]] = True
        found.append(_Pieces(at + HEADER, stop, kind, crc).where(good))
        cursor[live] = stop
        live = live[good]
    written = np.flatnonzero(cursor > base)
    last = int(written[-1]) if written.size else 0
    cut = cut or bool(blank_from[last:].any()) or 0 < size - cursor[-1] < HEADER
    damaged[:last] |= blank_from[:last]
    return _together(found), int(damaged.sum()), cut


def _together(found: list[_Pieces]) -> _Pieces:
    places = np.empty(0, dtype=np.int64)
    found = [_Pieces(places, places, np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.uint32)), *found]
    return _Pieces(
        np.concatenate([pieces.start for pieces in found]),
        np.concatenate([pieces.stop for pieces in found]),
        np.concatenate([pieces.kind for pieces in found]),
        np.concatenate([pieces.crc for pieces in found]),
    )


def _little_endian(data: Bytes, at: Places, width: int) -> Places:
    value = data[at].astype(np.int64)
    for byte in range(1, width):
        value |= data[at + byte].astype(np.int64) << (8 * byte)
    return value


def _joined(data: Bytes, parts: _Pieces, place: Places) -> tuple[Records, int]:
    """Put records together from their pieces.

    Parameters
    ----------
    data
        The file.
    parts
        All pieces that are not whole records, in file order.
    place
        Their places among all pieces: a gap between two means that a whole record lies in between.
    """
    view = data.data
    buffers: list[bytes] = []
    order: list[int] = []
    broken = 0
    open_parts: list[bytes] = []
    expected = -1
    columns = (place, parts.start, parts.stop, parts.kind, parts.crc)
    for at, start, stop, kind, crc in zip(*(column.tolist() for column in columns), strict=True):
        piece = view[start:stop]
        sound = zlib.crc32(piece, _SEED[kind]) == crc
        follows = bool(open_parts) and at == expected
        if open_parts and (kind == FIRST or not follows):
            broken += 1
            open_parts = []
        if kind == FIRST and sound:
            open_parts = [bytes(piece)]
        elif kind != FIRST and sound and follows:
            open_parts.append(bytes(piece))
            if kind == LAST:
                buffers.append(b"".join(open_parts))
                order.append(at)
                open_parts = []
        elif kind == LAST or not sound:
            broken += bool(open_parts) or not sound
            open_parts = []
        expected = at + 1
    stop_at = np.cumsum([len(buffer) for buffer in buffers], dtype=np.int64)
    start_at = stop_at - np.array([len(buffer) for buffer in buffers], dtype=np.int64)
    joined = np.frombuffer(b"".join(buffers) + bytes(PAD), dtype=np.uint8)
    records = Records(
        data=joined, start=start_at, stop=stop_at, order=np.array(order, dtype=np.int64), crc=None
    )
    return records, broken

"""Just enough of the protobuf wire format: single messages for the few records, columns of numbers for the many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from runtriage.trackers.wandb.framing import Bytes, Places

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_LONGEST = 70


class WireError(ValueError):
    """A message is not protobuf, or ends too early."""


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and raw value of every field of a message: int for varints, bytes for everything else.

    Raises
    ------
    WireError
        The bytes are no message.
    """
    at, size = 0, len(message)
    while at < size:
        tag, at = _number(message, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = _number(message, at)
            yield tag >> 3, value
            continue
        if kind == LENGTH:
            length, at = _number(message, at)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"wire type {kind}")
        if at + length > size:
            raise WireError("a field is longer than its message")
        yield tag >> 3, message[at : at + length]
        at += length


def signed(value: int) -> int:
    """Return a varint as the int64 it stands for."""
    return value - 2**64 if value >= 2**63 else value


def varints(data: Bytes, at: Places) -> tuple[Places, Places]:
    """Read one varint at every place.

    Parameters
    ----------
    data
        uint8, with ten readable bytes behind every place.
    at
        int64, shape (n,).

    Returns
    -------
    value, next
        int64, shape (n,): the numbers (wrapped into int64), and the places behind them.
    """
    byte = data[at]
    value = (byte & 0x7F).astype(np.int64)
    after = at + 1
    still = np.flatnonzero(byte >= 0x80)
    shift = 7
    while still.size and shift < _LONGEST:
        byte = data[np.minimum(after[still], data.size - 1)]
        value[still] |= (byte & 0x7F).astype(np.int64) << min(shift, 63)
        after[still] += 1
        still = still[byte >= 0x80]
        shift += 7
    return value, after


def ends(data: Bytes, kind: NDArray[np.int64], at: Places) -> Places:
    """Return where fields end whose values begin at ``at``; -1 for wire types that are not in use.

    Parameters
    ----------
    data
        uint8.
    kind
        int64, shape (n,): wire types.
    at
        int64, shape (n,).
    """
    end = np.full(at.shape, -1, dtype=np.int64)
    for wire, width in ((FIXED64, 8), (FIXED32, 4)):
        end[kind == wire] = at[kind == wire] + width
    for wire in (VARINT, LENGTH):
        which = np.flatnonzero(kind == wire)
        if which.size:
            value, after = varints(data, at[which])
            end[which] = after if wire == VARINT else after + np.clip(value, -1, data.size)
    return end


def _number(message: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        if at >= len(message) or shift >= _LONGEST:
            raise WireError("a number is cut off or too long")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7

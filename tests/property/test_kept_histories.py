"""What is kept of a history is the history, bit for bit, whatever was logged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.testing import strategies
from runtriage.trackers.cache.entry import Key, decode_entry, encode_entry, entry_of

ANY_TEXT = st.text(st.characters(), max_size=8)
"""Lone surrogates and NUL included: JSON may hold them."""


def bits(array: NDArray[np.generic] | None) -> tuple[str, bytes] | None:
    """Return what an array is, NaN payloads and signs of zero included."""
    return None if array is None else (array.dtype.str, array.tobytes())


def whole(tracks: dict[str, Track]) -> list[object]:
    """Return tracks as values that can be compared, in order."""
    return [(name, bits(t.step), bits(t.value), bits(t.wall)) for name, t in tracks.items()]


@given(strategies.histories(), ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_round_trip(history: RunHistory, run: str, cursor: str, name: str) -> None:
    """Encoding and decoding give the same names, notes, cursor and bits, in the same order."""
    key = Key(source="memory:", origin="", run=run)
    odd = {**history.tracks, name: Track(step=np.empty(0, np.int64), value=np.empty(0))}
    info = replace(history.info, cursor=cursor)
    entry = entry_of(replace(history, info=info, tracks=odd, notes=(*history.notes, name)))
    found = decode_entry(encode_entry(key, entry), key)
    assert found is not None
    assert whole(found.tracks) == whole(entry.tracks)
    assert (found.cursor, found.notes) == (cursor, (*history.notes, name))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30))
def test_every_pattern_of_bits(patterns: list[int]) -> None:
    """Every double survives with its bits: quiet and signalling NaNs, both zeros, subnormals."""
    value = np.array(patterns, np.uint64).view(np.float64)
    step = np.array(patterns, np.uint64).view(np.int64)
    key = Key(source="s", origin="", run="r")
    tracks = {"x": Track(step=step, value=value, wall=value[::-1].copy())}
    entry = entry_of(RunHistory(info=RunInfo(source="s", id="r"), tracks=tracks))
    found = decode_entry(encode_entry(key, entry), key)
    assert found is not None
    assert whole(found.tracks) == whole(tracks)


@given(strategies.histories(max_tracks=2, max_size=10), st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_is_never_believed(history: RunHistory, where: int, flip: int) -> None:
    """A file with one byte changed gives the true entry or none."""
    key = Key(source="s", origin="", run="r")
    entry = entry_of(history)
    content = bytearray(encode_entry(key, entry))
    content[where % len(content)] ^= flip
    found = decode_entry(bytes(content), key)
    assert found is None or (whole(found.tracks), found.notes, found.cursor) == (
        whole(entry.tracks), entry.notes, entry.cursor,
    )  # fmt: skip


@given(strategies.histories(max_tracks=2, max_size=10), st.floats(0, 1, exclude_max=True))
def test_a_torn_file_is_never_believed(history: RunHistory, part: float) -> None:
    """A file that ends early is no entry."""
    key = Key(source="s", origin="", run="r")
    content = encode_entry(key, entry_of(history))
    assert decode_entry(content[: int(part * len(content))], key) is None

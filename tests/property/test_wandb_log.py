"""The by-column reader of ``.wandb`` files agrees with the row-by-row one, and survives any damage."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from runtriage.errors import RunReadError
from runtriage.testing.strategies import names, values
from runtriage.trackers.wandb.log import Log, LogHistory
from tests.oracles.wandb_log import history, log, rows_of

KEYS = st.one_of(names(), st.lists(names(), min_size=1, max_size=3).map(tuple))
NUMBERS = st.one_of(values(), st.integers(-(2**70), 2**70), st.booleans(), st.none()).map(json.dumps)
ROWS = st.lists(st.dictionaries(KEYS, NUMBERS, max_size=5), max_size=30)


def read(content: bytes) -> LogHistory:
    """Read bytes as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run-x.wandb")
        path.write_bytes(content)
        found = Log(path)
        found.facts()
        return found.history()


def number(value: object) -> float | None:
    """Return a JSON value as the number it was logged as."""
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


@given(ROWS, st.integers(0, 40_000))
def test_agrees_with_row_by_row(rows: list[dict[str | tuple[str, ...], str]], filler: int) -> None:
    """Every number of every row is found, wherever the block borders fall."""
    content = log([history({"pad": json.dumps("x" * filler)}), *(history(row, i) for i, row in enumerate(rows))])
    wanted: dict[str, list[tuple[int, str]]] = {}
    for at, row in enumerate(rows_of(content)):
        for key, value in row:
            found = number(value)
            if found is not None and key and not key.startswith("_"):
                wanted.setdefault(key, []).append((at, repr(found)))
    got = {
        key: sorted(zip(track.step.tolist(), map(repr, track.value.tolist()), strict=True))
        for key, track in read(content).tracks.items()
        if not key.startswith("_")
    }
    assert got == {key: sorted(points) for key, points in wanted.items()}


@given(ROWS, st.data())
def test_any_damage_is_survived(rows: list[dict[str | tuple[str, ...], str]], data: st.DataObject) -> None:
    """A flipped byte or a cut tail costs rows, never an exception from inside."""
    plain = [history({"a": "1", "_step": str(i)}, i) for i in range(5)]
    content = bytearray(log(plain + [history(row) for row in rows]))
    at = data.draw(st.integers(7, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(7, len(content)))
    assert read(bytes(content[:cut])).rows <= len(rows) + 5


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(content: bytes) -> None:
    """A file that is something else is read as nothing, or a typed error."""
    try:
        rows = read(content).rows
    except RunReadError:
        rows = 0
    assert rows == 0

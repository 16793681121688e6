"""One ``.wandb`` file: what it says about its run, and its history as tracks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runtriage.errors import RunReadError
from runtriage.model.history import Track
from runtriage.trackers.columns import Cells, from_objects
from runtriage.trackers.wandb import facts as said
from runtriage.trackers.wandb.decoder import HISTORY, Column, Rows, decode, kinds, row_steps
from runtriage.trackers.wandb.framing import PAD, Places, Records, is_log, load, split
from runtriage.trackers.wandb.values import flat

_INTERNAL = frozenset({"_step", "_timestamp", "_runtime"})
_OWN = "_wandb"
_CLOCK = "_timestamp"
_MATTERS = (said.CONFIG, said.CONTROL, said.RUN, said.EXIT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogHistory:
    """The history of one file.

    Attributes
    ----------
    tracks
        Metric to track, in the order in which metrics first came.
    first_step, rows
        Smallest step of the file (None without rows), and number of rows.
    notes
        What could not be read.
    """

    tracks: dict[str, Track]
    first_step: int | None
    rows: int
    notes: tuple[str, ...]


class Log:
    """A ``.wandb`` file, read once and taken apart as far as asked for.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    RunReadError
        The file cannot be opened, or is no ``.wandb`` file. Damage inside is no error: see :attr:`LogHistory.notes`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            data = load(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RunReadError(f"the log cannot be opened: {error.strerror}", where=str(path)) from error
        self.empty = data.size <= PAD
        self._parts: list[tuple[Records, Places, Places, Places]] = []
        self._notes: list[str] = []
        if self.empty:
            self._notes.append(f"{path.name} is empty")
            return
        if not is_log(data):
            raise RunReadError("this is not a .wandb file", where=str(path))
        frames = split(data)
        self._parts = [(records, *kinds(records)) for records in (frames.whole, frames.joined) if records.start.size]
        if frames.damaged:
            self._notes.append(f"{frames.damaged} blocks of {path.name} are damaged: the records in them are lost")
        if frames.broken:
            self._notes.append(f"{frames.broken} records of {path.name} are incomplete and were left out")
        if frames.cut:
            self._notes.append(f"{path.name} ends inside a record: its tail is not written yet, or was cut off")

    def facts(self) -> said.Facts:
        """Return what the log says about its run."""
        return said.read_facts(self._payloads(_MATTERS))

    def summary(self) -> dict[str, object]:
        """Return the last value of every key of the summary."""
        return said.read_summary(self._payloads((said.SUMMARY,)))

    def history(self) -> LogHistory:
        """Return the history of the log."""
        found, place, notes = self._rows()
        steps, known = row_steps(found, place)
        if found.damaged:
            notes.append(f"{found.damaged} rows of {self._path.name} are damaged and were read in part")
        if place and not known.any():
            notes.append(f"the rows of {self._path.name} have no step: the number of the row is the step")
            steps = np.arange(place, dtype=np.int64)
        wall = _clock(found.columns.get(_CLOCK), place)
        columns = _flattened(found.columns)
        tracks: dict[str, Track] = {}
        for name, column in columns.items():
            if name in _INTERNAL or name.partition(".")[0] == _OWN:
                continue
            rows, value = _assembled(column, name, notes)
            if rows.size:
                clock = None if wall is None else wall[rows]
                if clock is not None and not np.isfinite(clock).all():
                    clock = None
                tracks[name] = Track(step=steps[rows], value=value, wall=clock)
        return LogHistory(
            tracks=tracks, first_step=int(steps.min()) if place else None, rows=place, notes=tuple(notes)
        )

    def _rows(self) -> tuple[Rows, int, list[str]]:
        """Decode all history records whose checksums hold; returns them, their number, and notes."""
        notes = list(self._notes)
        chosen = []
        wrong = 0
        for records, kind, begin, end in self._parts:
            where = np.flatnonzero(kind == HISTORY)
            sound = records.where(where).intact()
            wrong += int((~sound).sum())
            chosen.append((records, where[sound], begin, end))
        if wrong:
            notes.append(f"{wrong} rows of {self._path.name} have a wrong checksum and were left out")
        orders = np.sort(np.concatenate([records.order[where] for records, where, _, _ in chosen])) if chosen else None
        rows = Rows()
        for records, where, begin, end in chosen:
            numbered = records.where(where)
            place = np.searchsorted(orders, numbered.order) if orders is not None else numbered.order
            numbered = Records(
                data=numbered.data, start=numbered.start, stop=numbered.stop, order=place, crc=numbered.crc
            )
            decode(numbered, begin[where], end[where], rows)
        return rows, 0 if orders is None else int(orders.size), notes

    def _payloads(self, wanted: tuple[int, ...]) -> list[bytes]:
        found: list[tuple[int, bytes]] = []
        for records, kind, _, _ in self._parts:
            few = records.where(np.flatnonzero(np.isin(kind, wanted)))
            sound = few.intact()
            found += [(int(few.order[i]), few.payload(i)) for i in np.flatnonzero(sound).tolist()]
        return [payload for _, payload in sorted(found)]


def _clock(column: Column | None, rows: int) -> NDArray[np.float64] | None:
    """Return the time of every row, NaN where it has none."""
    if column is None or not column.rows:
        return None
    wall = np.full(rows, np.nan)
    for where, value in zip(column.rows, column.values, strict=True):
        wall[where] = value
    return wall


def _flattened(columns: dict[str, Column]) -> dict[str, Column]:
    """Split nested values (old clients log them as one JSON text) into columns of their own."""
    result: dict[str, Column] = {}
    for name, column in columns.items():
        kept = result.setdefault(name, Column())
        kept.rows, kept.values = kept.rows + column.rows, kept.values + column.values
        for row, value in zip(column.odd_rows, column.odd, strict=True):
            for key, leaf in flat(value, name):
                target = kept if key == name else result.setdefault(key, Column())
                target.odd_rows.append(row)
                target.odd.append(leaf)
    return result


def _assembled(column: Column, name: str, notes: list[str]) -> tuple[Places, NDArray[np.float64]]:
    """Put the parts of a column together in logged order."""
    rows, values = list(column.rows), list(column.values)
    if column.odd:
        cells: Cells = from_objects(column.odd, name)
        notes.extend(cells.notes)
        rows.append(np.array(column.odd_rows, dtype=np.int64)[cells.logged])
        values.append(cells.value[cells.logged])
    if not rows:
        return np.empty(0, dtype=np.int64), np.empty(0)
    row, value = (rows[0], values[0]) if len(rows) == 1 else (np.concatenate(rows), np.concatenate(values))
    if row.size > 1 and bool((row[1:] < row[:-1]).any()):
        order = np.argsort(row, kind="stable")
        row, value = row[order], value[order]
    return row, value

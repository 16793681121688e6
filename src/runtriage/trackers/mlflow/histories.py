"""Full metric histories over pages that move while they are read.

``metrics/get-history`` is the one endpoint that neither samples (``…-bulk-interval`` does beyond 2,500 rows; see
:mod:`~runtriage.trackers.mlflow.windows`) nor cuts off (``…-bulk`` does beyond 25,000 rows), both without a word. Its
pages are OFFSET pages over a live table, ordered by time stamp: a point that comes in late, with an old time stamp,
moves all rows after it by one, so that the next page repeats a row and the new point is on no page. Each page is
therefore asked for from a few rows before the end of the last one, and if those rows are not the same again, everything
is read once more.

The same makes tails. A listing's latest point of a metric does not: it is the one of the highest step, and does not
change while a run that was resumed at a lower step catches up, so every metric is asked for. Points are only ever added
to a metric. If of n known rows the last ones stand again at the places up to n, and all rows behind them are later than
any known one, then no known row is among those behind, so all stand before, and nothing else has room there: the past
is what it was. A point that came in late moves the rows and shows.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from runtriage.model.history import Track
from runtriage.trackers.joints import joined, part, same
from runtriage.trackers.mlflow import wire
from runtriage.trackers.mlflow.client import ApiError, MlflowClient
from runtriage.trackers.mlflow.rows import Rows, track
from runtriage.trackers.mlflow.windows import read_windows

POINTS_PER_PAGE = 25_000
_OVERLAP = 10
_PASSES = 3


class _TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    offset: int


class MetricReader:
    """Reads every point of a metric.

    Parameters
    ----------
    client
        Server to ask.
    points_per_page
        Size of the pages asked for.
    """

    def __init__(self, client: MlflowClient, points_per_page: int = POINTS_PER_PAGE) -> None:
        self._client = client
        self._points_per_page = points_per_page

    def read(self, run_id: str, key: str, last: int | None = None) -> tuple[Track, str | None]:
        """Return all points, and a sentence on what may be missing, or None; of an unknown metric, no points.

        Parameters
        ----------
        run_id, key
            The metric.
        last
            Its highest step, if the run is over.

        Raises
        ------
        SourceError
            As :meth:`MlflowClient.get`.
        """
        rows = read_windows(self._client, run_id, key, last) if last is not None else None
        if rows is not None:
            return track([rows]), None
        parts: list[Rows] = []
        for _ in range(_PASSES):
            passed, steady = self._read_pages(run_id, key)
            parts += passed
            if steady:
                return track(parts), None
        note = f"{key!r} was still being written out of order while it was read: some points may be missing"
        return track(parts), note

    def continued(self, run_id: str, key: str, known: Track) -> Track | None:
        """Return all points given those known, or None if it cannot be shown that these are the first ones.

        Parameters
        ----------
        run_id, key
            The metric.
        known
            What :meth:`read` returned before, without a note; returned itself if there is nothing new.

        Raises
        ------
        SourceError
            As :meth:`MlflowClient.get`.
        """
        count = min(_OVERLAP, len(known.step))
        if not count or known.wall is None:
            return None
        try:
            parts, steady = self._read_pages(run_id, key, len(known.step) - count)
        except ApiError as error:
            if error.status == 400:  # a server with tokens of another make
                return None
            raise
        found = track(parts)
        if not steady or not same(part(found, 0, count), part(known, -count)):
            return None
        new = part(found, count)
        if not len(new.step):
            return known
        return joined(known, new) if new.wall is not None and new.wall[0] > known.wall[-1] else None

    def _read_pages(self, run_id: str, key: str, begin: int = 0) -> tuple[list[Rows], bool]:
        """Return the pages of one pass, from a row on, and whether no row moved meanwhile."""
        parts: list[Rows] = []
        total, steady, token = begin, True, offset_token(begin) if begin else ""
        while True:
            page = self._page(run_id, key, token)
            start = token_offset(token)
            ahead = total - start if start is not None else 0
            if ahead > 0:
                steady = steady and page.rows.part(0, ahead).same_as(parts[-1].part(-ahead))
            parts.append(page.rows)
            total += max(len(page.rows) - ahead, 0)
            if page.next_token is None:
                return parts, steady
            token = self._joint(page.next_token, total, len(page.rows))

    def _joint(self, token: str, total: int, page_rows: int) -> str:
        """Return a token a few rows before the one given, if it is of a kind we can make."""
        overlap = min(_OVERLAP, page_rows - 1, self._points_per_page - 1)
        if token_offset(token) != total or overlap < 1:
            return token
        return offset_token(total - overlap)

    def _page(self, run_id: str, key: str, token: str) -> wire.HistoryPage:
        params: dict[str, Any] = {"run_id": run_id, "metric_key": key, "max_results": self._points_per_page}
        if token:
            params["page_token"] = token
        return self._client.get("metrics/get-history", params, wire.decode_history)


def offset_token(offset: int) -> str:
    """Return the page token that starts at a row: open-source servers keep nothing else in it."""
    return base64.b64encode(msgspec.json.encode({"offset": offset})).decode("ascii")


def token_offset(token: str) -> int | None:
    """Return the row a page token starts at, or None for a token of another make, or none."""
    try:
        return msgspec.json.decode(base64.b64decode(token, validate=True), type=_TokenBody).offset
    except (binascii.Error, ValueError):
        return None

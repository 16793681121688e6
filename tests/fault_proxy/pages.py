"""Pages of MLflow's answers as a server shows them that is written to, or answers twice."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fault_proxy.faults import Fault, Seen

_SIZE = re.compile(rb'("max_results": ?)\d+|(max_results=)\d+')
_TOKEN = re.compile(rb'(, ?"page_token": ?"[^"]*")|(&page_token=[^&]*)')


class Pages:
    """Small pages, one of which goes wrong in each listing.

    Parameters
    ----------
    field
        Where the rows of an answer are: ``runs`` or ``metrics``.
    size
        Rows of a page.
    again
        The first page is answered twice, whatever is asked for.
    overlap
        Rows of the first page with which the second begins.
    """

    def __init__(self, field: str, size: int, *, again: bool = False, overlap: int = 0) -> None:
        self._field, self._size, self._again, self._overlap = field, size, again, overlap
        self._before: dict[str, list[Any]] = {}
        self._repeated: set[str] = set()
        self._lock = threading.Lock()

    def fault(self) -> Fault:
        """Return what a proxy needs."""
        return Fault(ask=self._asked, answer=self._answered)

    def _asked(self, seen: Seen) -> Seen:
        text = b"\n".join([seen.path.encode(), seen.body])
        text = _SIZE.sub(lambda found: (found[1] or found[2]) + str(self._size).encode(), text)
        if self._again and _TOKEN.search(text) and self._is_first(seen):
            text = _TOKEN.sub(b"", text)
        path, _, body = text.partition(b"\n")
        return replace(seen, path=path.decode(), body=body)

    def _answered(self, seen: Seen, body: bytes) -> bytes:
        page = json.loads(body)
        rows = page.get(self._field, [])
        with self._lock:
            before = self._before.get(_listing(seen), []) if self._overlap else []
            self._before[_listing(seen)] = rows
        if before and _TOKEN.search(seen.path.encode() + seen.body) and self._is_first(seen):
            page[self._field] = before[-self._overlap :] + rows
        return json.dumps(page).encode()

    def _is_first(self, seen: Seen) -> bool:
        with self._lock:
            known = _listing(seen) in self._repeated
            self._repeated.add(_listing(seen))
            return not known


def _listing(seen: Seen) -> str:
    query: Mapping[str, list[str]] = parse_qs(urlsplit(seen.path).query)
    return " ".join([seen.name, *query.get("run_id", []), *query.get("metric_key", [])])

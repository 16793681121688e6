"""A source whose histories are kept: what has not changed comes from the cache, of what has only the tail is asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from runtriage.model.history import RunHistory, RunInfo
from runtriage.trackers.base import HistorySource, TailSource
from runtriage.trackers.cache.entry import Entry, Key, entry_of
from runtriage.trackers.cache.store import HistoryStore


class CachedSource:
    """Another source, read through a store. Implements ``HistorySource``; marks are the business of the other.

    A history is served without asking only where the listing's cursor is the one it was kept under: a run of which a
    listing cannot tell is always asked for. What is served equals what reading would give.

    Parameters
    ----------
    source
        Where the runs are.
    store
        Where their histories are kept; closed with this source.
    fresh
        Read every run anew, and keep what is read.

    Attributes
    ----------
    counts
        Runs ``served`` from the store, continued by a ``tail``, and read ``whole``.
    """

    def __init__(self, source: HistorySource, store: HistoryStore, *, fresh: bool = False) -> None:
        self._source = source
        self._store = store
        self._fresh = fresh
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    @property
    def address(self) -> str:
        """Canonical address of the source, without credentials."""
        return self._source.address

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs as the source lists them; raises as it does."""
        return self._source.list_runs()

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run as the source finds it; raises as it does."""
        return self._source.find_run(run_id)

    def read(self, info: RunInfo) -> RunHistory:
        """Return the full history of a run; raises as the source does where it has to be asked."""
        key = key_of(info)
        kept = None if self._fresh else self._store.get(key)
        if kept is not None and info.cursor and kept.cursor == info.cursor:
            self._count("served")
            return _history(info, kept)
        history, how = self._asked(info, kept)
        self._count(how)
        if (history.info.cursor or isinstance(self._source, TailSource)) and not _same(kept, history):
            self._store.put(key, entry_of(history))
        return history

    def close(self) -> None:
        """Close the store and the source. May be called twice."""
        self._store.close()
        self._source.close()

    def _asked(self, info: RunInfo, kept: Entry | None) -> tuple[RunHistory, str]:
        if kept is not None and isinstance(self._source, TailSource):
            known = _history(replace(info, cursor=kept.cursor), kept)
            continued = self._source.read_tail(info, known)
            if continued is not None:
                return continued, "tail"
        return self._source.read(info), "whole"

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1


def key_of(info: RunInfo) -> Key:
    """Return the key of a run: addresses of W&B do not name their server, the page of the run does."""
    parts = urlsplit(info.url or "")
    return Key(source=info.source, origin=f"{parts.scheme}://{parts.hostname}:{parts.port}" if parts.hostname else "",
               run=info.id)


def _history(info: RunInfo, kept: Entry) -> RunHistory:
    return RunHistory(info=info, tracks=kept.tracks, notes=kept.notes)


def _same(kept: Entry | None, history: RunHistory) -> bool:
    """Tell whether this very history is kept already: a tail with nothing new hands over the tracks it was given."""
    return (
        kept is not None
        and kept.cursor == history.info.cursor
        and kept.notes == history.notes
        and list(kept.tracks) == list(history.tracks)
        and all(kept.tracks[name] is track for name, track in history.tracks.items())
    )

"""A source read through a cache keeps the contract of a source, with the cache cold and warm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtriage.testing.contracts import SourceContract, sample
from runtriage.trackers.base import HistorySource
from runtriage.trackers.cache.source import CachedSource
from runtriage.trackers.cache.store import HistoryStore
from runtriage.trackers.memory import MemorySource


class TestCachedSource(SourceContract):
    @pytest.fixture(params=["cold", "warm"])
    def source(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HistorySource]:
        runs = [replace(run, info=replace(run.info, cursor=f"c{i}")) for i, run in enumerate(sample())]
        if request.param == "warm":
            first = CachedSource(MemorySource(runs), HistoryStore(str(tmp_path), max_bytes=2**30))
            for info in first.list_runs():
                first.read(info)
            first.close()
        cached = CachedSource(MemorySource(runs), HistoryStore(str(tmp_path), max_bytes=2**30))
        yield cached
        cached.close()

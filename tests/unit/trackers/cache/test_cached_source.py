"""When a history comes from the cache, when it is continued, and when it is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from runtriage.errors import RunNotFoundError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.testing.synth import healthy
from runtriage.trackers.base import HistorySource, TailSource
from runtriage.trackers.cache.source import CachedSource, key_of
from runtriage.trackers.cache.store import HistoryStore
from runtriage.trackers.memory import MemorySource


class Counting(MemorySource):
    """The reference tracker, which notes what it was asked to read."""

    def __init__(self, *histories: RunHistory) -> None:
        super().__init__(histories)
        self.asked: list[str] = []

    def read(self, info: RunInfo) -> RunHistory:
        self.asked.append(info.id)
        return super().read(info)


class Continuing(Counting):
    """A tracker that can continue, for runs that it does not find too odd."""

    def __init__(self, *histories: RunHistory) -> None:
        super().__init__(*histories)
        self.continued: list[tuple[str, str, int]] = []
        self.odd = False

    def read_tail(self, info: RunInfo, cached: RunHistory) -> RunHistory | None:
        self.continued.append((info.cursor, cached.info.cursor, len(cached.tracks["train/loss"].step)))
        return None if self.odd else MemorySource.read(self, info)


def run(cursor: str, steps: int = 50) -> RunHistory:
    """Return the run of these tests, with so many steps."""
    whole = healthy(1, steps=400, run_id="r")
    tracks = {name: Track(step=t.step[:steps], value=t.value[:steps]) for name, t in whole.tracks.items()}
    return replace(whole, info=replace(whole.info, cursor=cursor), tracks=tracks)


def opened(source: HistorySource, store: HistoryStore) -> CachedSource:
    """Return the source read through the store."""
    return CachedSource(source, store)


@pytest.fixture
def store(tmp_path: object) -> HistoryStore:
    """Open an empty store."""
    return HistoryStore(str(tmp_path), max_bytes=2**30)


def read(source: CachedSource) -> RunHistory:
    """List and read the run, as a sweep does."""
    (info,) = source.list_runs()
    return source.read(info)


def same(one: RunHistory, other: RunHistory) -> bool:
    """Tell whether two histories are equal, facts and bits."""
    return (one.info, one.notes, list(one.tracks)) == (other.info, other.notes, list(other.tracks)) and all(
        np.array_equal(track.step, other.tracks[name].step)
        and track.value.tobytes() == other.tracks[name].value.tobytes()
        and (track.wall is None) == (other.tracks[name].wall is None)
        for name, track in one.tracks.items()
    )


def test_an_unchanged_run_is_read_once(store: HistoryStore) -> None:
    """A run with the cursor it had is served from the store, equal to what was read."""
    source = Counting(run("c"))
    first, second = read(opened(source, store)), read(opened(source, store))
    assert source.asked == ["r"]
    assert same(first, second)


def test_the_facts_are_those_of_the_listing(store: HistoryStore) -> None:
    """Tags set since are on a run whose history is served."""
    source = Counting(run("c"))
    read(opened(source, store))
    source.set_tag("r", "owner", "alice")
    assert read(opened(source, store)).info.tags["owner"] == "alice"


def test_a_changed_run_is_read_again(store: HistoryStore) -> None:
    """Another cursor means another history, and the new one is kept in its place."""
    source = Counting(run("c", 50))
    read(opened(source, store))
    source.put(run("d", 80))
    assert [len(read(opened(source, store)).tracks["lr"].step) for _ in range(2)] == [80, 80]
    assert source.asked == ["r", "r"]


def test_a_run_without_a_cursor_is_always_read(store: HistoryStore) -> None:
    """Where a listing cannot tell, the run is asked for each time."""
    source = Counting(run(""))
    read(opened(source, store))
    source.put(run("", 80))
    assert len(read(opened(source, store)).tracks["lr"].step) == 80
    assert source.asked == ["r", "r"]


def test_a_changed_run_is_continued(store: HistoryStore) -> None:
    """A source that can continue is given what was read before, and its answer is kept."""
    source = Continuing(run("c", 50))
    read(opened(source, store))
    source.put(run("d", 80))
    cached = opened(source, store)
    assert len(read(cached).tracks["lr"].step) == 80
    assert (source.continued, source.asked, dict(cached.counts)) == ([("d", "c", 50)], ["r"], {"tail": 1})
    assert len(read(opened(source, store)).tracks["lr"].step) == 80
    assert len(source.continued) == 1


def test_a_run_without_a_cursor_is_continued(store: HistoryStore) -> None:
    """A running run of which a listing cannot tell is continued from what was read before."""
    source = Continuing(run("", 50))
    read(opened(source, store))
    read(opened(source, store))
    assert (source.asked, len(source.continued)) == (["r"], 1)


def test_what_cannot_be_continued_is_read_whole(store: HistoryStore) -> None:
    """Where the source finds that the past has changed, all is read."""
    source = Continuing(run("c", 50))
    read(opened(source, store))
    source.put(run("d", 20))
    source.odd = True
    assert len(read(opened(source, store)).tracks["lr"].step) == 20
    assert source.asked == ["r", "r"]


def test_a_run_that_is_gone(store: HistoryStore) -> None:
    """A run that was kept and then deleted is not found where the tracker has to be asked."""
    source = Counting(run(""))
    (info,) = source.list_runs()
    opened(source, store).read(info)
    source.delete("r")
    with pytest.raises(RunNotFoundError):
        opened(source, store).read(info)


def test_what_is_served_cannot_be_written_to(store: HistoryStore) -> None:
    """An analysis that wrote into arrays it was given would fail, not spoil the cache."""
    source = Counting(run("c"))
    read(opened(source, store))
    with pytest.raises(ValueError, match="read-only"):
        read(opened(source, store)).tracks["lr"].value[0] = 1.0


def test_servers_behind_one_address() -> None:
    """Two servers that share entity, project and run do not share a history: the run's page tells them apart."""
    info = RunInfo(source="wandb://team/p", id="r")
    keys = {key_of(replace(info, url=url)) for url in (None, "https://api.a.example/x", "https://b.example/x")}
    assert len(keys) == 3


def test_abilities() -> None:
    """A cached source is a source; what continues a run says so by its type alone."""
    cached = opened(MemorySource(), HistoryStore("memory://abilities", max_bytes=1))
    assert isinstance(cached, HistorySource)
    assert isinstance(Continuing(), TailSource)
    assert not isinstance(MemorySource(), TailSource)
    assert cached.address == "memory:"

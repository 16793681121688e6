"""Where histories are kept: whole or not at all, within bounds, and never in the way of a sweep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import fsspec
import numpy as np
import pytest

from runtriage.errors import MissingExtraError, UsageError
from runtriage.model.history import Track
from runtriage.testing.strategies import HOSTILE_NAMES
from runtriage.trackers.cache import entry as entries
from runtriage.trackers.cache.entry import Entry, Key
from runtriage.trackers.cache.store import ABANDONED_SECONDS, HistoryStore

BIG = 2**30
_NUMBER = count()


def key(run: str = "r") -> Key:
    """Return the key of a run."""
    return Key(source="memory:", origin="", run=run)


def made(value: float = 1.0, points: int = 50, cursor: str = "c") -> Entry:
    """Return an entry in which every point has one value."""
    step = np.arange(points, dtype=np.int64)
    return Entry(cursor=cursor, tracks={"loss": Track(step=step, value=np.full(points, value))}, notes=("n",))


def noisy(seed: int) -> Entry:
    """Return an entry of some size that does not compress."""
    value = np.random.default_rng(seed).normal(size=1000)
    return Entry(cursor="c", tracks={"loss": Track(step=np.arange(1000, dtype=np.int64), value=value)})


def files(folder: Path) -> list[Path]:
    """Return the files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture(params=["folder", "memory"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Name an empty place of each kind."""
    if request.param == "folder":
        yield str(tmp_path)
        return
    root = f"/kept-{next(_NUMBER)}"
    yield f"memory:/{root}"
    fs = fsspec.filesystem("memory")
    if fs.exists(root):
        fs.rm(root, recursive=True)


def test_kept_and_found(address: str) -> None:
    """What one store keeps another one at the same address finds."""
    HistoryStore(address, max_bytes=BIG).put(key(), made(2.0))
    found = HistoryStore(address, max_bytes=BIG).get(key())
    assert found is not None
    assert (found.cursor, found.notes, found.tracks["loss"].value[0]) == ("c", ("n",), 2.0)


def test_not_there(address: str) -> None:
    """A run that was not kept is no trouble."""
    store = HistoryStore(address, max_bytes=BIG)
    assert store.get(key()) is None
    assert store.trouble is None


def test_the_last_one_wins(address: str) -> None:
    """Keeping a run again replaces what was kept."""
    store = HistoryStore(address, max_bytes=BIG)
    store.put(key(), made(1.0))
    store.put(key(), made(2.0))
    found = store.get(key())
    assert found is not None
    assert found.tracks["loss"].value[0] == 2.0


def test_runs_and_sources_do_not_mix(tmp_path: Path) -> None:
    """The same id in another source, or behind another server, is another run."""
    store = HistoryStore(str(tmp_path), max_bytes=BIG)
    store.put(Key(source="wandb://a/p", origin="https://one", run="r"), made())
    assert store.get(Key(source="wandb://a/p", origin="https://two", run="r")) is None
    assert store.get(Key(source="wandb://b/p", origin="https://one", run="r")) is None


@pytest.mark.parametrize("run", [*HOSTILE_NAMES, "../../up", "/etc/passwd", "a\0b", "\ud800", "C:\\x", "x" * 5000, ""])
def test_names_never_become_paths(tmp_path: Path, run: str) -> None:
    """Whatever a run is called, its entry has a name of digits and lies where all lie."""
    store = HistoryStore(str(tmp_path / "here"), max_bytes=BIG)
    store.put(key(run), made())
    (found,) = files(tmp_path)
    assert found.parent.parent == tmp_path / "here" / "histories-1"
    assert set(found.stem) <= set("0123456789abcdef")
    assert store.get(key(run)) is not None


@pytest.mark.parametrize("how", ["torn", "empty", "foreign", "other run", "other version"])
def test_what_is_no_entry_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A file that is not this run's whole entry of this version is passed over, and written over the next time."""
    store = HistoryStore(str(tmp_path), max_bytes=BIG)
    store.put(key(), made())
    (path,) = files(tmp_path)
    content = path.read_bytes()
    if how == "other version":
        with monkeypatch.context() as patch:
            patch.setattr(entries, "SCHEMA", "runtriage.history/2")
            store.put(key(), made())
    else:
        another = entries.encode_entry(key("another"), made())
        others = {"torn": content[:-40], "empty": b"", "foreign": b"PAR1 not ours PAR1", "other run": another}
        path.write_bytes(others[how])
    assert store.get(key()) is None
    store.put(key(), made(3.0))
    assert store.get(key()) is not None


def test_the_default_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address histories lie in the platform's folder for caches, which nobody else may enter."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    HistoryStore(max_bytes=BIG).put(key(), made())
    folder = tmp_path / "cache" / "runtriage"
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "histories-1")] == [0o700, 0o700]
    assert len(files(folder)) == 1


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    """An entry that was found lately outlives one that was written later and not used since."""
    store = HistoryStore(str(tmp_path), max_bytes=BIG)
    for i in range(4):
        store.put(key(f"r{i}"), noisy(i))
    for age, path in enumerate(files(tmp_path)):
        os.utime(path, (1e9 + age, 1e9 + age))
    one = len(entries.encode_entry(key("r0"), noisy(0)))
    store.get(key("r2"))
    HistoryStore(str(tmp_path), max_bytes=int(1.5 * one)).trim()
    assert [run for run in ("r0", "r1", "r2", "r3") if store.get(key(run)) is not None] == ["r2"]


def test_the_size_is_kept_to(address: str) -> None:
    """However much is kept, no more than the bound and a twentieth lies there."""
    one = len(entries.encode_entry(key(), noisy(0)))
    store = HistoryStore(address, max_bytes=10 * one)
    for i in range(40):
        store.put(key(f"r{i}"), noisy(i))
        fs, root = fsspec.core.url_to_fs(address)
        assert sum(info["size"] for info in fs.find(root, detail=True).values()) <= 11 * one


def test_an_entry_beyond_the_bound_is_not_kept(tmp_path: Path) -> None:
    """One history larger than all that may be kept does not push out the others."""
    store = HistoryStore(str(tmp_path), max_bytes=5000)
    store.put(key("small"), made())
    store.put(key("large"), noisy(0))
    assert [path.stem for path in files(tmp_path)] == [key("small").digest]


def test_what_dead_writers_left_is_removed(tmp_path: Path) -> None:
    """An unfinished file goes once its writer must have died, and not before."""
    store = HistoryStore(str(tmp_path), max_bytes=BIG)
    store.put(key(), made())
    unfinished = tmp_path / "histories-1" / "unfinished"
    for name, age in (("young", 0.0), ("old", ABANDONED_SECONDS + 60)):
        (unfinished / name).write_bytes(b"half")
        os.utime(unfinished / name, (time.time() - age,) * 2)
    store.close()
    assert [path.name for path in unfinished.iterdir()] == ["young"]


def test_many_may_remove_at_once(tmp_path: Path) -> None:
    """Stores that make room at the same time are in nobody's way."""
    filled = HistoryStore(str(tmp_path), max_bytes=BIG)
    for i in range(60):
        filled.put(key(f"r{i}"), made(i))
    stores = [HistoryStore(str(tmp_path), max_bytes=20_000) for _ in range(6)]
    threads = [threading.Thread(target=store.trim) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.trouble for store in stores] == [None] * 6
    assert 0 < sum(path.stat().st_size for path in files(tmp_path)) <= 20_000


def test_readers_never_see_half(address: str) -> None:
    """While two write the same run again and again, whoever reads finds one version or the other."""
    HistoryStore(address, max_bytes=BIG).put(key(), made(1.0, points=5000))
    done = threading.Event()

    def write(value: float) -> None:
        store = HistoryStore(address, max_bytes=BIG)
        for _ in range(60):
            store.put(key(), made(value, points=5000))
        done.set()

    writers = [threading.Thread(target=write, args=(value,)) for value in (1.0, 2.0)]
    for writer in writers:
        writer.start()
    store, seen = HistoryStore(address, max_bytes=BIG), set()
    while not done.is_set():
        found = store.get(key())
        seen.add(None if found is None else tuple(np.unique(found.tracks["loss"].value)))
    for writer in writers:
        writer.join()
    assert seen <= {(1.0,), (2.0,)}


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from test_store import HistoryStore, key, made
store = HistoryStore(sys.argv[1], max_bytes=2**30)
print("ready", flush=True)
while True:
    for i in range(8):
        store.put(key(f"r{i}"), made(float(i), points=200_000))
"""


def test_killed_while_writing(tmp_path: Path) -> None:
    """After writers were killed without warning, every entry is whole or was never there."""
    for pause in (0.05, 0.2, 0.35):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parent)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    store = HistoryStore(str(tmp_path), max_bytes=BIG)
    names = {key(f"r{i}").digest for i in range(8)}
    there = {path.stem for path in files(tmp_path) if path.suffix == ".parquet"}
    assert there <= names
    assert sum(store.get(key(f"r{i}")) is not None for i in range(8)) == len(there)


def test_a_place_that_cannot_be_written_is_said_and_left_alone(tmp_path: Path) -> None:
    """Where nothing can be kept, reading and keeping go on without it, and the store says why."""
    (tmp_path / "file").write_text("x")
    store = HistoryStore(str(tmp_path / "file" / "sub"), max_bytes=BIG)
    for i in range(5):
        store.put(key(f"r{i}"), made())
        assert store.get(key(f"r{i}")) is None
    store.close()
    assert store.trouble is not None
    assert "NotADirectoryError" in store.trouble or "FileExistsError" in store.trouble


def test_folders_that_somebody_removed_are_made_again(tmp_path: Path) -> None:
    """Emptying the cache by hand while a sweep runs costs one entry at most."""
    store = HistoryStore(str(tmp_path / "here"), max_bytes=BIG)
    store.put(key(), made())
    fsspec.filesystem("file").rm(str(tmp_path / "here"), recursive=True)
    store.put(key(), made())
    store.put(key(), made())
    assert store.get(key()) is not None


def test_an_address_nobody_knows_is_refused() -> None:
    """A scheme that fsspec does not know is a mistake of the user's, said before any work."""
    with pytest.raises(UsageError, match="cannot be kept there"):
        HistoryStore("nosuch://bucket/x", max_bytes=BIG)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheme whose driver is not installed says what to install."""
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtraError, match="s3fs"):
        HistoryStore("s3://bucket/x", max_bytes=BIG)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    """The place is named without the user and the password of its address."""
    store = HistoryStore("memory://me:s3cret@host/x", max_bytes=BIG)
    assert "s3cret" not in store.shown

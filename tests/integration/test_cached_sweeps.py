"""Sweeps of real servers with a cache and without: the same reports, byte for byte, for fewer requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("wandb")

from mlflow_server.real import T0, RealServer
from wandb_server import StandIn
from wandb_server.samples import put

from runtriage.cli.sweep_files import json_lines
from runtriage.cli.sweep_perform import Ask, perform
from runtriage.model.history import RunHistory
from runtriage.settings import CacheSettings, Settings, SweepSettings
from runtriage.testing.synth import cohort, faulty
from runtriage.trackers.cache.source import CachedSource

pytestmark = pytest.mark.integration
RUNS = (*cohort(4, steps=120), faulty("divergence", run_id="bad", steps=120))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count what the cached sources of a test served, continued and read."""
    found: dict[str, int] = {}

    def count(self: CachedSource, what: str) -> None:
        found[what] = found.get(what, 0) + 1

    monkeypatch.setattr(CachedSource, "_count", count)
    return found


def reports(address: str, cache: Path | str, *, fresh: bool = False) -> bytes:
    """Sweep, and return the file of reports."""
    ask = Ask(source=address, json="-", fresh=fresh)
    with perform(ask, Settings(cache=CacheSettings(address=str(cache)))) as swept:
        assert not swept.tally.failed
        return b"".join(json_lines(entry.report for entry in swept.entries()))


def on_wandb(server: StandIn, history: RunHistory, **fields: object) -> None:
    """Put a history on the stand-in."""
    names = list(history.tracks)
    columns = zip(*(history.tracks[name].value.tolist() for name in names), strict=True)
    rows = [dict(zip(names, values, strict=True)) for values in columns]
    put(server, history.info.id, rows=rows, config=dict(history.info.config), **fields)


@pytest.fixture(params=["mlflow", "mlflow-sql", "wandb"])
def project(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[], None]]]:
    """Fill a project of each kind; return its address, and a way to add ten points to one of its runs."""
    if request.param == "wandb":
        server: StandIn = request.getfixturevalue("server")
        request.getfixturevalue("source")
        for history in RUNS:
            on_wandb(server, history)
        run = server.world.runs["team", "p", "bad"]

        def more_rows() -> None:
            n = len(run.rows)
            run.rows += [{**run.rows[-1], "_step": n + i, "_timestamp": 1.796e9 + n + i} for i in range(10)]

        yield "wandb://team/p", more_rows
        return
    real: RealServer = request.getfixturevalue("mlflow_server")
    experiment = real.experiment()
    ids = [real.put(experiment, history) for history in RUNS]

    def more_points() -> None:
        for name in RUNS[-1].tracks:
            real.log(ids[-1], name, [(120 + i, 1.0, T0 + 10**6 + i) for i in range(10)])

    address = real.address(experiment)
    yield (address if request.param == "mlflow" else f"mlflow-sql:sqlite:///{real.database}#{experiment}"), more_points


def test_the_same_reports(project: tuple[str, Callable[[], None]], tmp_path: Path, counts: dict[str, int]) -> None:
    """Without a cache, with a cold and with a warm one, reports are equal to the byte; after a change too."""
    address, more = project
    assert reports(address, "off") == reports(address, tmp_path) == reports(address, tmp_path)
    assert counts == {"whole": 5, "served": 5}
    more()
    assert reports(address, "off") == reports(address, tmp_path)
    assert (counts["served"], counts.get("tail", 0) + counts["whole"]) == (9, 6)


def test_asked_for_afresh(project: tuple[str, Callable[[], None]], tmp_path: Path, counts: dict[str, int]) -> None:
    """--fresh reads every run again, cache or no cache."""
    address, _ = project
    reports(address, tmp_path)
    reports(address, tmp_path, fresh=True)
    assert counts == {"whole": 10}


def test_nothing_new_costs_a_listing(mlflow_server: RealServer, tmp_path: Path) -> None:
    """A sweep that writes and finds nothing new asks twice: for the experiment, and for its runs."""
    experiment = mlflow_server.experiment()
    for history in RUNS:
        mlflow_server.put(experiment, history)
    settings = Settings(cache=CacheSettings(address=str(tmp_path)), sweep=SweepSettings(write=("tags",)))
    ask = Ask(source=mlflow_server.address(experiment))
    with perform(ask, settings) as swept:
        assert not swept.tally.failed
    before = mlflow_server.requests()
    with perform(ask, settings) as swept:
        assert swept.tally.kept == len(RUNS)
    assert mlflow_server.requests() - before == 2

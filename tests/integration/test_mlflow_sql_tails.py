"""Continuing histories from MLflow's database: always what reading whole gives, or a refusal to continue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from mlflow_store.store import T0, Store, opened

from runtriage.model.history import RunHistory, Track
from runtriage.trackers.base import TailSource
from runtriage.trackers.mlflow_sql.client import Reader
from runtriage.trackers.mlflow_sql.source import SqlSource

pytestmark = pytest.mark.integration
Points = list[tuple[int, float, int]]


@pytest.fixture
def pulled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many points each tail pulled."""
    seen: list[int] = []
    points_since = Reader.points_since

    def counted(self: Any, run_id: str, second: int) -> Any:
        found = points_since(self, run_id, second)
        seen.append(len(found[0].step))
        return found

    monkeypatch.setattr(Reader, "points_since", counted)
    return seen


class Run:
    """A run of an experiment of its own, read before and continued."""

    def __init__(self, store: Store, source: SqlSource, experiment: str) -> None:
        self.store, self.source = store, source
        self.id = store.run(experiment)

    def log(self, key: str, points: Points) -> None:
        self.store.log(self.id, key, points)

    def read(self) -> RunHistory:
        return self.source.read(self.source.find_run(self.id))

    def continued(self, cached: RunHistory) -> RunHistory | None:
        """Continue the run; what comes of it is what reading whole gives."""
        found = self.source.read_tail(self.source.find_run(self.id), cached)
        assert found is None or facts(found) == facts(self.read())
        return found

    def execute(self, statement: str) -> None:
        with self.store.client._tracking_client.store.engine.begin() as connection:
            connection.execute(sa.text(statement), {"run": self.id})


@pytest.fixture
def run(store: Store) -> Iterator[Run]:
    """Make an empty run."""
    experiment = store.experiment()
    with opened(store.address(experiment)) as source:
        assert isinstance(source, TailSource)
        yield Run(store, source, experiment)


def facts(history: RunHistory) -> list[object]:
    """Return a history as values that can be compared to the last bit."""

    def bits(track: Track) -> tuple[bytes, bytes, bytes | None]:
        return track.step.tobytes(), track.value.tobytes(), None if track.wall is None else track.wall.tobytes()

    return [history.info, history.notes, [(name, bits(track)) for name, track in history.tracks.items()]]


def line(count: int, *, start: int = 0, stamp: int = T0) -> Points:
    """Return points a second apart."""
    return [(start + i, float(start + i), stamp + 1000 * i) for i in range(count)]


def test_only_the_end_is_pulled(run: Run, pulled: list[int]) -> None:
    """Of a run that grew come its new points and those of the last second known."""
    for key in ("loss", "lr"):
        run.log(key, line(500))
    cached = run.read()
    run.log("loss", line(20, start=500, stamp=T0 + 500_000))
    assert run.continued(cached) is not None
    assert pulled == [22]


def test_what_has_nothing_new_is_handed_over(run: Run) -> None:
    """Tracks that did not grow are those that were given."""
    run.log("loss", line(30))
    cached = run.read()
    found = run.continued(cached)
    assert found is not None
    assert found.tracks["loss"] is cached.tracks["loss"]


def test_resumed_below_its_highest_step(run: Run, pulled: list[int]) -> None:
    """Points at lower steps are pulled like all that were logged since."""
    run.log("loss", line(500))
    cached = run.read()
    run.log("loss", [(100 + i, 9.0, T0 + 10**6 + i) for i in range(10)])
    assert run.continued(cached) is not None
    assert pulled == [11]


@pytest.mark.parametrize("late", [T0 - 5000, T0 + 2500])
def test_a_point_that_came_late(run: Run, late: int) -> None:
    """A point with an old time stamp among those known means reading whole."""
    run.log("loss", line(30))
    cached = run.read()
    run.log("loss", [(5, -7.0, late)])
    assert run.continued(cached) is None


@pytest.mark.parametrize("what", ["step < 10", "step = 29", "step >= 0"])
def test_points_that_are_gone(run: Run, what: str) -> None:
    """A metric that lost points is read whole, wherever they lay."""
    run.log("loss", line(30))
    run.log("lr", line(30))
    cached = run.read()
    run.execute(f"delete from metrics where run_uuid = :run and key = 'loss' and {what}")  # noqa: S608
    assert run.continued(cached) is None


def test_as_many_points_as_before_but_others(run: Run) -> None:
    """A metric that was logged anew with the same number of points is read whole."""
    run.log("loss", line(30))
    cached = run.read()
    run.execute("delete from metrics where run_uuid = :run")
    run.log("loss", [(step, value + 1, stamp) for step, value, stamp in line(30)])
    assert run.continued(cached) is None


def test_a_metric_that_is_new(run: Run) -> None:
    """A metric whose points are all new is continued from nothing, one with older points means reading whole."""
    run.log("loss", line(30))
    cached = run.read()
    run.log("acc", line(5, stamp=T0 + 60_000))
    assert run.continued(cached) is not None
    run.log("late", line(5))
    assert run.continued(cached) is None


@pytest.mark.parametrize("stamps", [(0, T0), (1_600_000_000, T0), (T0, 1_700_000_001), (T0, T0)])
def test_clocks_of_all_kinds(run: Run, stamps: tuple[int, int]) -> None:
    """Without time stamps, with seconds, with both, or with one moment for all, nothing is lost."""
    run.log("loss", [(i, 1.0, stamps[0]) for i in range(20)])
    cached = run.read()
    run.log("loss", [(100 + i, 2.0, stamps[1]) for i in range(20)])
    found = run.continued(cached)
    assert (found is None) == (stamps[0] == 0)


def test_hard_values_at_the_joint(run: Run) -> None:
    """NaN, infinities and zeros of either sign stand again where they stood."""
    values = [math.nan, math.inf, -math.inf, -0.0, 1e300, 5e-324]
    run.log("loss", [(i, value, T0 + i) for i, value in enumerate(values)])
    cached = run.read()
    run.log("loss", [(9, math.nan, T0 + 9)])
    assert run.continued(cached) is not None


def test_any_way_to_log(run: Run) -> None:
    """Whatever is logged in whatever order, continuing gives what reading whole gives, or refuses."""
    rng = np.random.default_rng(3)
    run.log("loss", line(3))
    known, kept = run.read(), 0
    for turn in range(25):
        count = int(rng.integers(1, 8))
        stamps = T0 + 4000 * turn + int(rng.choice([0, 500, -6000])) + np.arange(count) * int(rng.integers(0, 900))
        values = rng.choice([1.0, math.nan, math.inf, -0.0], count)
        steps = rng.integers(-3, 60, count)
        points = list(zip(steps.tolist(), values.tolist(), stamps.tolist(), strict=True))
        run.log(str(rng.choice(["loss", "lr"])), points)
        found = run.continued(known)
        kept += found is not None
        known = run.read() if found is None else found
    assert 3 < kept < 25

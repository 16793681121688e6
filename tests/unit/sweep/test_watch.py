"""Looks at a source that changes in between."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.rule import AlertRule, Jump, NonFinite
from runtriage.model.vocab import RunState
from runtriage.pipeline import Params
from runtriage.sweep.watch import Watch
from runtriage.testing.synth import cohort, healthy
from runtriage.trackers.memory import MemorySource

RULES = (
    AlertRule(id="nan", about="x", role="loss", condition=NonFinite()),
    AlertRule(id="jump", about="x", role="loss", condition=Jump(window=10, factor=3.0), expires="2027-01-01"),
    AlertRule(id="other", about="x", role="loss", config="beef", condition=NonFinite()),
)
NOW = 2.0e9


def grown(
    points: int, spoiled: dict[int, float], *, state: RunState = RunState.RUNNING, wall: float = NOW
) -> RunHistory:
    """Return the first points of a run, some of its losses replaced."""
    whole = healthy(1)
    info = RunInfo(
        source="memory:", id="live", name="live", state=state, config=whole.info.config, cursor=f"{points}{state}"
    )
    tracks = {}
    for name, track in whole.tracks.items():
        value = track.value[:points].copy()
        if name == "train/loss":
            for at, new in spoiled.items():
                value[at] = new
        tracks[name] = Track(step=track.step[:points], value=value, wall=np.full(points, wall))
    return RunHistory(info=info, tracks=tracks)


class Changing(MemorySource):
    """The reference tracker, whose newest run a test replaces."""

    def __init__(self, first: RunHistory, others: list[RunHistory]) -> None:
        super().__init__([first, *others])
        self.first = first
        self.reads = 0

    def list_runs(self):  # noqa: ANN201
        """Yield the newest run first."""
        yield self.first.info
        yield from (info for info in super().list_runs() if info.id != self.first.info.id)

    def read(self, info: RunInfo) -> RunHistory:
        """Read, and count."""
        self.reads += 1
        return self.first if info.id == self.first.info.id else super().read(info)


@pytest.fixture
def source() -> Changing:
    return Changing(grown(100, {}), cohort(3, first_seed=10))


@pytest.fixture
def watch(source: Changing) -> Watch:
    return Watch(source=source, rules=RULES, params=Params(), readers=1)


def firing(watch: Watch) -> dict[str, bool]:
    samples, _ = watch.look(NOW)
    return dict(next(sample for sample in samples if sample.run_id == "live").firing)


def test_only_rules_of_the_run_are_exported(watch: Watch) -> None:
    """The rule of another config makes no series."""
    assert firing(watch) == {"nan": False, "jump": False}


def test_a_spike_between_two_looks_is_told_once(source: Changing, watch: Watch) -> None:
    """One point above the trend, over again when the exporter looks: it fires at that look and not at the next."""
    told = [firing(watch)["jump"]]
    source.first = grown(120, {110: 90.0})
    told.append(firing(watch)["jump"])
    source.first = grown(130, {110: 90.0})
    told += [firing(watch)["jump"], firing(watch)["jump"]]
    assert told == [False, True, False, False]


def test_what_lasts_keeps_firing(source: Changing, watch: Watch) -> None:
    """NaN up to the newest point fires at every look, also at one that has read nothing new."""
    source.first = grown(120, dict.fromkeys(range(110, 120), np.nan))
    assert [firing(watch)["nan"] for _ in range(3)] == [True] * 3


def test_old_firings_are_not_raised_by_a_restart(source: Changing, watch: Watch) -> None:
    """The first look of a new exporter tells only what still lasts."""
    source.first = grown(120, {50: 90.0})
    assert not firing(watch)["jump"]


@pytest.mark.parametrize(("wall", "fires"), [(NOW - 60, 1), (NOW - 90_000, 0)])
def test_a_run_that_ended_long_ago_alarms_no_more(source: Changing, watch: Watch, wall: float, fires: int) -> None:
    """A day after its last point a failed run is left to its verdict."""
    source.first = grown(120, {119: np.nan}, state=RunState.FAILED, wall=wall)
    assert firing(watch)["nan"] == fires


def test_only_changed_runs_are_read_again(source: Changing, watch: Watch) -> None:
    """Four reads at the first look, none at the second, one after a change."""
    counts = []
    for change in (None, None, grown(120, {})):
        source.reads = 0
        source.first = change or source.first
        watch.look(NOW)
        counts.append(source.reads)
    assert counts == [4, 0, 1]


def test_runs_beyond_the_limit_are_counted(source: Changing) -> None:
    """Two of four runs are exported, two are said to be left out; the rule's expiry is told."""
    samples, health = Watch(source=source, rules=RULES, params=Params(), limit=2, readers=1).look(NOW)
    assert (len(samples), health.left_out, health.expires) == (2, 2, {"jump": 1798761600.0})

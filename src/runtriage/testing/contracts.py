"""What every source must do, as tests to inherit.

A source's own test module subclasses :class:`SourceContract`, says how to make the source out of histories, and
inherits the facts. The histories are written past the source under test, so what it reads is compared with something
independent.
"""
# ruff: noqa: S101 - these are tests: assert is the point

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from runtriage.errors import RunNotFoundError, SourceError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.marks import Marks, WritePlan, content_digest
from runtriage.testing.synth import healthy, history
from runtriage.trackers.base import HistorySource, MarkTarget

HARD_STEPS = [0, 1, 1, 7, 3, 2**40]
"""Repeated, going back, beyond 32 bits."""
HARD_VALUES = [1.5, math.nan, math.inf, -math.inf, 1e300, 5e-324]


def sample() -> list[RunHistory]:
    """Return the runs of the contract: two plain ones, hard numbers, one point, nothing."""
    return [
        healthy(1, steps=50, run_id="plain1"),
        healthy(2, steps=50, run_id="plain2"),
        history({"train/loss": (HARD_STEPS, HARD_VALUES)}, run_id="hard", config={"lr": 0.1}),
        history({"loss": ([5], [0.25])}, run_id="point"),
        history({}, run_id="empty"),
    ]


class SourceContract:
    """Facts about a readable source. Subclass as ``Test…`` and provide :meth:`source`.

    Attributes
    ----------
    keeps_order
        False for trackers that sort rows, or merge rows of one step, before anyone can read them.
    has_empty
        False for trackers that cannot hold a run without a metric.
    """

    keeps_order = True
    has_empty = True

    @pytest.fixture
    def source(self) -> Any:
        """Return or yield a source that holds :func:`sample`; names and configs as there, ids as the tracker likes."""
        raise NotImplementedError

    def info(self, source: HistorySource, name: str) -> RunInfo:
        """Return the run of a name."""
        return next(info for info in source.list_runs() if info.name == name)

    def test_lists_every_run_once(self, source: HistorySource) -> None:
        """Listing yields each run once."""
        names = sorted(info.name for info in source.list_runs())
        assert names == sorted(run.info.name for run in sample() if self.has_empty or run.tracks)

    def test_ids_are_unique(self, source: HistorySource) -> None:
        """No two runs share an id."""
        ids = [info.id for info in source.list_runs()]
        assert len(set(ids)) == len(ids)

    def test_infos_name_their_source(self, source: HistorySource) -> None:
        """Every run says which source it came from."""
        assert {info.source for info in source.list_runs()} == {source.address}

    def test_lists_the_same_twice(self, source: HistorySource) -> None:
        """Listing can be repeated."""
        assert [info.id for info in source.list_runs()] == [info.id for info in source.list_runs()]

    def test_finds_a_run_by_id(self, source: HistorySource) -> None:
        """A listed id finds its run."""
        info = self.info(source, "plain1")
        assert source.find_run(info.id).name == "plain1"

    def test_finds_a_run_by_name(self, source: HistorySource) -> None:
        """A unique name finds its run."""
        assert source.find_run("plain2").id == self.info(source, "plain2").id

    def test_unknown_run_is_not_found(self, source: HistorySource) -> None:
        """Asking for a run that is not there is a typed error."""
        with pytest.raises(RunNotFoundError):
            source.find_run("no-such-run")

    def test_reading_an_unknown_run_is_not_found(self, source: HistorySource) -> None:
        """Reading a run that is not there is a typed error."""
        with pytest.raises(RunNotFoundError):
            source.read(RunInfo(source=source.address, id="nosuchrun"))

    def test_keeps_the_config(self, source: HistorySource) -> None:
        """A number in the config arrives as that number."""
        assert self.info(source, "hard").config["lr"] == 0.1

    @pytest.mark.parametrize("metric", ["train/loss", "grad_norm", "lr"])
    def test_reads_every_point(self, source: HistorySource, metric: str) -> None:
        """A plain curve arrives unchanged, with slashes in its name."""
        found = source.read(self.info(source, "plain1")).tracks[metric]
        wanted = sample()[0].tracks[metric]
        assert found.step.tolist() == wanted.step.tolist()
        assert found.value.tolist() == wanted.value.tolist()

    def test_hard_values_survive(self, source: HistorySource) -> None:
        """NaN, infinities, huge and tiny numbers arrive as logged."""
        found = source.read(self.info(source, "hard")).tracks["train/loss"].value
        np.testing.assert_array_equal(np.sort(found), np.sort(HARD_VALUES))

    def test_logged_order_survives(self, source: HistorySource) -> None:
        """Steps that repeat or go back stay where they were logged."""
        if not self.keeps_order:
            pytest.skip("this tracker sorts its rows")
        assert source.read(self.info(source, "hard")).tracks["train/loss"].step.tolist() == HARD_STEPS

    def test_arrays_have_the_promised_types(self, source: HistorySource) -> None:
        """Steps are int64 and values float64, one of each a point."""
        for track in source.read(self.info(source, "hard")).tracks.values():
            assert (track.step.dtype, track.value.dtype) == (np.dtype("int64"), np.dtype("float64"))
            assert track.step.shape == track.value.shape

    def test_one_point_is_a_history(self, source: HistorySource) -> None:
        """A run with a single point can be read."""
        track = source.read(self.info(source, "point")).tracks["loss"]
        assert (track.step.tolist(), track.value.tolist()) == ([5], [0.25])

    def test_run_without_metrics_reads_as_empty(self, source: HistorySource) -> None:
        """A run that logged nothing is no error."""
        if not self.has_empty:
            pytest.skip("this tracker has no runs without metrics")
        assert not source.read(self.info(source, "empty")).tracks

    def test_reading_twice_gives_the_same(self, source: HistorySource) -> None:
        """Reading changes nothing."""
        info = self.info(source, "hard")
        first, second = source.read(info), source.read(info)
        assert _plain(first.tracks) == _plain(second.tracks)

    def test_results_belong_to_the_caller(self, source: HistorySource) -> None:
        """What a caller does to a result is not seen by the next one."""
        info = self.info(source, "plain1")
        spoilt = source.read(info).tracks["train/loss"]
        if spoilt.value.flags.writeable:
            spoilt.value[:] = -1.0
        assert source.read(info).tracks["train/loss"].value.min() > 0

    def test_threads_may_share_it(self, source: HistorySource) -> None:
        """Runs read from four threads at once are the runs read from one."""
        infos = list(source.list_runs())
        alone = {info.id: _plain(source.read(info).tracks) for info in infos}
        results: list[bool] = []

        def look() -> None:
            results.extend(_plain(source.read(info).tracks) == alone[info.id] for info in infos)

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [True] * (4 * len(infos))

    def test_closes_twice(self, source: HistorySource) -> None:
        """Closing is idempotent."""
        source.close()
        assert source.close() is None  # type: ignore[func-returns-value]


class MissingSourceContract:
    """Facts about a source whose place is not there. Provide :meth:`missing`."""

    @pytest.fixture
    def missing(self) -> Any:
        """Return a source of a place that does not exist."""
        raise NotImplementedError

    def test_listing_a_missing_place_says_so(self, missing: HistorySource) -> None:
        """A source that is not there is a typed error on first use, not on construction."""
        with pytest.raises(SourceError):
            list(missing.list_runs())


class MarkContract:
    """Facts about a source on which marks can hang. Provide :meth:`target` and :meth:`set_foreign`."""

    @pytest.fixture
    def target(self) -> Any:
        """Return or yield a source that holds :func:`sample` and can be marked."""
        raise NotImplementedError

    def set_foreign(self, target: MarkTarget, info: RunInfo) -> None:
        """Set a tag ``owner=alice`` on a run past the source."""
        raise NotImplementedError

    def run(self, target: MarkTarget) -> RunInfo:
        """Return the run to hang marks on."""
        assert isinstance(target, HistorySource)
        return next(info for info in target.list_runs() if info.name == "plain1")

    def test_nothing_hangs_at_first(self, target: MarkTarget) -> None:
        """A run without our marks has none."""
        assert target.read_marks(self.run(target)) == Marks()

    def test_tags_come_back(self, target: MarkTarget) -> None:
        """A tag that was set is read."""
        run = self.run(target)
        target.apply(run, WritePlan(set_tags={"runtriage.status": "broken"}))
        assert target.read_marks(run).tags == {"runtriage.status": "broken"}

    def test_applying_twice_changes_nothing(self, target: MarkTarget) -> None:
        """Applying is idempotent."""
        run, plan = self.run(target), _some_plan()
        target.apply(run, plan)
        once = target.read_marks(run)
        target.apply(run, plan)
        assert target.read_marks(run) == once

    def test_deleting_what_is_absent_is_no_error(self, target: MarkTarget) -> None:
        """A tag that someone else removed already can be deleted."""
        run = self.run(target)
        target.apply(run, WritePlan(delete_tags=("runtriage.status",)))
        assert target.read_marks(run) == Marks()

    def test_note_comes_back_and_goes(self, target: MarkTarget) -> None:
        """Our block of the note is read as written, and can be taken out."""
        run = self.run(target)
        target.apply(run, WritePlan(set_note="looks **broken**"))
        written = target.read_marks(run).note
        target.apply(run, WritePlan(delete_note=True))
        assert (written, target.read_marks(run).note) == ("looks **broken**", None)

    def test_foreign_tags_are_not_ours(self, target: MarkTarget) -> None:
        """Tags of others are never read as marks."""
        run = self.run(target)
        self.set_foreign(target, run)
        assert target.read_marks(run) == Marks()

    def test_foreign_tags_survive_writing_and_clearing(self, target: MarkTarget) -> None:
        """Tags of others are still there after our marks came and went."""
        run = self.run(target)
        self.set_foreign(target, run)
        target.apply(run, _some_plan())
        target.apply(run, WritePlan(delete_tags=("runtriage.status",), delete_note=True))
        assert self.run(target).tags["owner"] == "alice"

    def test_marks_of_one_run_do_not_hang_on_another(self, target: MarkTarget) -> None:
        """A plan touches its own run only."""
        assert isinstance(target, HistorySource)
        other = next(info for info in target.list_runs() if info.name == "plain2")
        target.apply(self.run(target), _some_plan())
        assert target.read_marks(other) == Marks()

    def test_files_come_back_by_digest(self, target: MarkTarget) -> None:
        """A file that was put is known by its content."""
        run = self.run(target)
        target.apply(run, WritePlan(put_files={"runtriage/panel.svg": b"<svg/>"}))
        assert target.read_marks(run).files == {"runtriage/panel.svg": content_digest(b"<svg/>")}


def _some_plan() -> WritePlan:
    return WritePlan(set_tags={"runtriage.status": "watch"}, set_note="a note")


def _plain(tracks: object) -> list[tuple[str, Sequence[int], str]]:
    assert isinstance(tracks, dict)
    found: dict[str, Track] = tracks
    return sorted((name, track.step.tolist(), repr(track.value.tolist())) for name, track in found.items())

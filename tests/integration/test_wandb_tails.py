"""Continuing histories from W&B: always what reading whole gives, or a refusal to continue."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("wandb")

from wandb_server import Behaviour, StandIn
from wandb_server.samples import put
from wandb_server.state import StoredRun

from runtriage.model.history import RunHistory, Track
from runtriage.trackers.base import TailSource
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
CLOCK = 1.796e9


def rows(start: int, stop: int, **fields: Any) -> list[dict[str, Any]]:
    """Return rows a second apart."""
    return [{"_step": i, "_timestamp": CLOCK + i, "loss": float(i), "lr": 1, **fields} for i in range(start, stop)]


def running(server: StandIn, count: int = 100, **fields: Any) -> StoredRun:
    """Put a running run with so many rows on the server."""
    return put(server, **{"rows": rows(0, count), "state": "running", **fields})


def read(source: WandbSource) -> RunHistory:
    """Read the run whole."""
    return source.read(source.find_run("r1"))


def continued(source: WandbSource, cached: RunHistory) -> RunHistory | None:
    """Continue the run; what comes of it is what reading whole gives, to the last bit."""
    found = source.read_tail(source.find_run("r1"), cached)
    assert found is None or facts(found) == facts(read(source))
    return found


def facts(history: RunHistory) -> list[object]:
    """Return a history as values that can be compared."""

    def bits(track: Track) -> tuple[bytes, bytes, bytes | None]:
        return track.step.tobytes(), track.value.tobytes(), None if track.wall is None else track.wall.tobytes()

    return [history.info, history.notes, {name: bits(track) for name, track in history.tracks.items()}]


def test_one_request_for_the_end(server: StandIn, source: WandbSource) -> None:
    """Of a run that grew come facts, the last ten rows and the new ones, with one request."""
    run = running(server)
    cached = read(source)
    run.rows += rows(100, 120)
    info = source.find_run("r1")
    server.counts.clear()
    found = source.read_tail(info, cached)
    assert server.counts == {"RuntriageHistory": 1}
    assert found is not None
    assert facts(found) == facts(read(source))
    assert isinstance(source, TailSource)


def test_what_has_nothing_new_is_handed_over(server: StandIn, source: WandbSource) -> None:
    """A run that only ended keeps the tracks that were given."""
    run = running(server)
    cached = read(source)
    run.state = "finished"
    found = continued(source, cached)
    assert found is not None
    assert found.tracks["loss"] is cached.tracks["loss"]


@pytest.mark.parametrize("upto", [40, 100, 115])
@pytest.mark.parametrize("pages", ["all", "live"])
def test_partly_exported(server: StandIn, source: WandbSource, upto: int, pages: str) -> None:
    """Rows that were exported meanwhile make no difference."""
    server.world.behaviour = Behaviour(pages=pages)
    run = running(server)
    cached = read(source)
    run.rows += rows(100, 120)
    server.world.export(run, upto)
    continued(source, cached)


@pytest.mark.parametrize(("to", "until"), [(50, 80), (50, 100), (50, 150), (99, 130), (95, 101)])
def test_rewound(server: StandIn, source: WandbSource, to: int, until: int) -> None:
    """A run whose last rows were taken back and logged anew is read whole, however many rows it has now."""
    run = running(server)
    cached = read(source)
    del run.rows[to:]
    run.rows += [{**row, "_timestamp": row["_timestamp"] + 1000} for row in rows(to, until)]
    assert continued(source, cached) is None


def test_rewound_to_as_many_rows(server: StandIn, source: WandbSource) -> None:
    """A rewind after which everything counts as before shows in the cursor, by the time of the last row."""
    run = running(server, state="finished", summary={"_timestamp": CLOCK + 99})
    before = source.find_run("r1").cursor
    run.rows[50:] = [{**row, "_timestamp": row["_timestamp"] + 1000} for row in rows(50, 100)]
    run.summary = server.world.text({"_timestamp": CLOCK + 1099})
    assert source.find_run("r1").cursor != before


@pytest.mark.parametrize("again", [30, 100, 101, 160])
def test_started_again_under_its_id(server: StandIn, source: WandbSource, again: int) -> None:
    """Rows appended from step 0 without resuming are found, although the last step may be lower, equal or higher."""
    run = running(server)
    cached = read(source)
    run.rows += [{**row, "_timestamp": CLOCK + 500 + i} for i, row in enumerate(rows(0, again))]
    assert continued(source, cached) is None
    cached = read(source)
    run.rows += [{**row, "_timestamp": CLOCK + 5000 + i} for i, row in enumerate(rows(again, again + 20))]
    continued(source, cached)


def test_deleted_and_made_anew(server: StandIn, source: WandbSource) -> None:
    """Another run under the same id is read whole, even with the same rows."""
    running(server)
    cached = read(source)
    running(server, 120)
    assert continued(source, cached) is None


def test_another_config(server: StandIn, source: WandbSource) -> None:
    """A run whose config changed is read whole."""
    run = running(server)
    cached = read(source)
    run.config = '{"lr": {"value": 2}}'
    assert continued(source, cached) is None


def test_text_among_the_numbers(server: StandIn, source: WandbSource) -> None:
    """Where reading leaves a note, before or now, the note has to count everything, so all is read."""
    run = running(server)
    cached = read(source)
    run.rows += rows(100, 105, lr="none of your business")
    assert continued(source, cached) is None
    assert continued(source, read(source)) is None


def test_a_fork_keeps_its_note(server: StandIn, source: WandbSource) -> None:
    """That a run is a fork is said of its tail too."""
    run = running(server)
    run.config = '{"_wandb": {"value": {"branch_point": {"run_id": "r0", "step": 4}}}}'
    cached = read(source)
    run.rows += rows(100, 110)
    found = continued(source, cached)
    assert found is not None
    assert found.notes == cached.notes != ()


def test_metrics_that_are_new_or_sparse(server: StandIn, source: WandbSource) -> None:
    """A metric that begins, one that ended, and NaN at the joint are put together as they were logged."""
    run = running(server, rows=[*rows(0, 50, old=1.0), *rows(50, 100, loss=math.nan)])
    cached = read(source)
    run.rows += rows(100, 130, new=2.0)
    found = continued(source, cached)
    assert found is not None
    assert (len(found.tracks["new"].step), len(found.tracks["old"].step)) == (30, 50)


def test_a_clock_that_goes_back(server: StandIn, source: WandbSource) -> None:
    """Rows that come later with earlier times are left to reading whole, which knows the order of attempts."""
    run = running(server)
    cached = read(source)
    run.rows += [{**row, "_timestamp": CLOCK - 50} for row in rows(100, 110)]
    assert continued(source, cached) is None


def test_long_tails(server: StandIn, source: WandbSource) -> None:
    """A tail longer than a page, with steps far apart, is whole."""
    run = running(server, rows=[{"_step": 1000 * i, "_timestamp": CLOCK + i, "loss": 1.0} for i in range(100)])
    cached = read(source)
    run.rows += [{"_step": 1000 * i, "_timestamp": CLOCK + i, "loss": 2.0} for i in range(100, 400)]
    found = continued(source, cached)
    assert found is not None
    assert len(found.tracks["loss"].step) == 400


def test_any_way_to_log(server: StandIn, source: WandbSource) -> None:
    """Whatever is appended, rewound, started again or exported: what reading whole gives, or nothing."""
    rng = np.random.default_rng(11)
    run, clock, tails = running(server, 30), CLOCK + 30, 0
    known = read(source)
    for _ in range(60):
        what = str(rng.choice(["grow", "grow", "grow", "rewind", "again", "export", "sparse"]))
        top = run.rows[-1]["_step"] + 1
        start = {"rewind": max(top - int(rng.integers(1, 20)), 1), "again": 0, "sparse": top + 7}.get(what, top)
        if what == "rewind":
            run.rows[:] = [row for row in run.rows if row["_step"] < start]
            run.partitions, run.exported = [], 0  # what was exported holds rows that are gone
        if what == "export":
            server.world.export(run, int(rng.integers(run.exported, len(run.rows) + 1)))
        new = rows(start, start + int(rng.integers(0, 25)), acc=float(rng.choice([math.nan, 1.0, math.inf])))
        run.rows += [{**row, "_timestamp": clock + i} for i, row in enumerate(new)]
        clock += len(new)
        found = continued(source, known)
        tails += found is not None
        known = found or read(source)
    assert tails >= 10

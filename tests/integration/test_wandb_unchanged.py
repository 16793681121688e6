"""A sweep of a W&B project in which nothing, or little, has changed: what it costs and what it says."""

from __future__ import annotations

from typing import NamedTuple

import pytest

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.samples import put

from runtriage.cli.sweep_ask import Ask
from runtriage.cli.sweep_perform import perform
from runtriage.model.vocab import Level
from runtriage.settings import Settings
from runtriage.settings.schema import SweepSettings
from runtriage.sweep.journal import Entry
from runtriage.sweep.outcome import Tally
from runtriage.sweep.write import Writer
from runtriage.testing.synth import cohort, faulty
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
CONNECTING = {"Viewer", "ServerFeaturesQuery"}


def seed(server: StandIn) -> None:
    """Put a cohort of five, one of them broken, and a run of its own on the server."""
    for history in (*cohort(4, steps=200), faulty("divergence", run_id="bad", steps=200)):
        names = list(history.tracks)
        columns = zip(*(history.tracks[name].value.tolist() for name in names), strict=True)
        rows = [dict(zip(names, values, strict=True)) for values in columns]
        put(server, history.info.id, rows=rows, config=dict(history.info.config))
    put(server, "alone", config={"other": 1})


class Seen(NamedTuple):
    """What came of a sweep."""

    outcomes: list[Entry]
    tally: Tally
    writer: Writer | None


def swept(server: StandIn, *what: str, **ask: bool | str) -> tuple[Seen, dict[str, int]]:
    """Sweep and write; return what came of it and the requests it took."""
    server.counts.clear()
    settings = Settings(sweep=SweepSettings(write=what))
    with perform(Ask(source="wandb://team/p", **ask), settings) as done:  # type: ignore[arg-type]
        found = Seen(list(done.entries()), done.tally, done.writer)
    return found, {name: count for name, count in server.counts.items() if name not in CONNECTING}


@pytest.mark.parametrize("what", [("tags",), ("all",)])
def test_nothing_changed(server: StandIn, source: WandbSource, what: tuple[str, ...]) -> None:
    """A second sweep asks for the listing, and the project's marks, and says of every run what the first one did."""
    seed(server)
    first, _ = swept(server, *what)
    second, requests = swept(server, *what)
    assert requests == ({"Runs": 1} if what == ("tags",) else {"Runs": 1, "ProjectViews": 2})
    verdicts = [{o.report.run.id: o.report.verdict for o in found.outcomes} for found in (first, second)]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]["bad"] is Level.BROKEN
    assert second.tally.sentence().endswith("; 6 of them unchanged and not read again")
    assert (second.tally.changed, second.tally.unchanged) == (0, 6)


def test_five_hundred_unchanged_runs(server: StandIn, source: WandbSource) -> None:
    """A sweep over five hundred unchanged runs costs five pages of the listing."""
    for i in range(500):
        put(server, f"r{i}", rows=[{"loss": 1.0}], config={"lr": i % 50})
    swept(server, "tags")
    found, requests = swept(server, "tags")
    assert (found.tally.kept, requests) == (500, {"Runs": 5})


def test_a_cohort_with_one_changed_run(server: StandIn, source: WandbSource) -> None:
    """More history of one run has its cohort read again, and no other run."""
    seed(server)
    swept(server, "tags")
    run = server.world.runs["team", "p", "bad"]
    run.rows.append({**run.rows[-1], "_step": len(run.rows)})
    found, _ = swept(server, "tags")
    assert [o.report.run.id for o in found.outcomes if o.kept] == ["alone"]
    assert swept(server, "tags")[0].tally.kept == 6


def test_a_tag_that_somebody_took_off(server: StandIn, source: WandbSource) -> None:
    """A run that lost our tag is judged again with its cohort, and gets it back."""
    seed(server)
    swept(server, "tags")
    run = server.world.runs["team", "p", "bad"]
    run.tags.remove("rt:broken")
    swept(server, "tags")
    assert "rt:broken" in run.tags


def test_asked_for_afresh(server: StandIn, source: WandbSource) -> None:
    """--fresh has all runs read, and so has a file of reports, which needs all of them."""
    seed(server)
    swept(server, "tags")
    assert swept(server, "tags", fresh=True)[0].tally.kept == 0
    assert swept(server, "tags", json="-")[0].tally.kept == 0


def test_a_running_run_is_read(server: StandIn, source: WandbSource) -> None:
    """A run that still runs is read every time, and its cohort with it."""
    seed(server)
    server.world.runs["team", "p", "bad"].state = "running"
    swept(server, "tags")
    assert [o.report.run.id for o in swept(server, "tags")[0].outcomes if o.kept] == ["alone"]


def test_a_panel_that_failed_is_tried_again(server: StandIn, source: WandbSource) -> None:
    """Where files could not be written the run does not count as done."""
    seed(server)
    server.fail("upload", 400, times=9)
    assert swept(server, "tags", "panel")[0].tally.unwritten
    server.clear_faults()
    swept(server, "tags", "panel")
    assert "runtriage/panel.html" in server.world.runs["team", "p", "bad"].files
    assert swept(server, "tags", "panel")[0].tally.kept == 6


def test_rights_to_read_only(server: StandIn, source: WandbSource) -> None:
    """Without rights to write all reports are there, and after the first refusal nothing more is tried."""
    seed(server)
    server.read_only = True
    found, requests = swept(server, "tags")
    assert (len(found.outcomes), found.tally.failed, found.tally.levels[Level.BROKEN]) == (6, [], 1)
    assert found.writer is not None
    assert found.writer.refused is not None
    assert requests["UpsertBucket"] == 1

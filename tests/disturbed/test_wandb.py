"""A sweep of a W&B project whose server fails: nothing is lost, doubled, or changed that is not ours.

The real client speaks to a stand-in; the server itself was never at hand.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wandb")
pytest.importorskip("wandb_workspaces")

from fault_proxy.command import Done, command
from wandb_server import StandIn
from wandb_server.samples import QUICK
from wandb_server.session import KEY, stand_in

from runtriage.testing.synth import cohort, faulty
from runtriage.trackers.pace import AdaptivePace, share
from runtriage.trackers.wandb import client as client_module
from runtriage.trackers.wandb.bounded import Limits

pytestmark = pytest.mark.integration
ADDRESS = "wandb://team/p"
OURS = ("rt:", "runtriage")


@dataclass(frozen=True, slots=True)
class Left:
    """What a sweep said and left, and how often which request was made."""

    done: Done
    reports: dict[str, Any]
    state: dict[str, Any]
    counts: dict[str, int]


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """Run a stand-in with four runs, one of which diverges, that hold tags and values of other people."""
    with stand_in() as running:
        for history in (*cohort(3, steps=150), faulty("divergence", run_id="bad", steps=150)):
            names = list(history.tracks)
            columns = zip(*(history.tracks[name].value.tolist() for name in names), strict=True)
            running.world.add_run(
                "team", "p", history.info.id, rows=[dict(zip(names, values, strict=True)) for values in columns],
                config=dict(history.info.config), summary={"theirs": 1.5, "nested": {"a": 1}},
                tags=["theirs"], notes="# Their notes", files={"theirs.txt": b"x"},
            )
        yield running


@pytest.fixture(autouse=True)
def _quick(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the client lose patience within seconds, and put the project back as it was."""
    kept, views = copy.deepcopy(server.world.runs), copy.deepcopy(server.world.views)
    monkeypatch.setattr(client_module, "Limits", partial(replace, QUICK))
    share(partial(AdaptivePace, patience=8.0, pause=0.05))
    yield
    share()
    server.clear_faults()
    server.read_only = False
    server.world.runs, server.world.views = kept, views


def restore(server: StandIn, runs: Any, views: Any) -> None:
    """Put the project back as it was."""
    server.clear_faults()
    server.world.runs, server.world.views = copy.deepcopy(runs), copy.deepcopy(views)


def state(server: StandIn) -> dict[str, Any]:
    """Return all that a sweep may change; a view without the moment at which it was saved."""
    runs = {run.name: asdict(run) for run in server.world.runs.values()}
    kept = ("tags", "notes", "summary", "config", "files", "state")
    found: dict[str, Any] = {name: {key: run[key] for key in kept} for name, run in runs.items()}
    for run in found.values():
        run["tags"] = sorted(run["tags"])
        run["summary"] = {k: v for k, v in json.loads(run["summary"]).items() if not k.startswith("_")}
    return {**found, "views": sorted(view["displayName"] for view in server.world.views.values())}


def foreign(found: dict[str, Any]) -> dict[str, Any]:
    """Return what of that is not ours."""
    out = {}
    for name, run in found.items():
        if name != "views":
            out[name] = {
                **run, "tags": [tag for tag in run["tags"] if not tag.startswith(OURS)],
                "summary": {k: v for k, v in run["summary"].items() if not k.startswith(OURS)},
                "files": {k: v for k, v in run["files"].items() if not k.startswith(OURS)},
                "notes": (run["notes"] or "").partition("<!-- runtriage")[0].rstrip(),
            }
    return out


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client, and the one that wandb-workspaces makes for itself, lose patience in three seconds."""
    import wandb  # noqa: PLC0415

    limits = Limits(attempt=1.0, retries=1, pause=1.0, call=5.0)
    monkeypatch.setattr(client_module, "Limits", partial(replace, limits))
    monkeypatch.setattr(wandb.Api, "_HTTP_TIMEOUT", 3)
    share(partial(AdaptivePace, patience=2.0, pause=0.05))


def is_part(reports: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Tell whether reports say of runs what others say, or that they could not be read."""
    return all(report["verdict"] == "withheld" or report == whole[name] for name, report in reports.items())


def swept(server: StandIn, folder: Path, *words: str) -> Left:
    """Sweep and write everything."""
    server.counts.clear()
    path = folder / "reports.jsonl"
    done = command("sweep", ADDRESS, "--write", "all", "--cache", "off", "--json", str(path), *words)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    assert len({report["run"]["id"] for report in lines}) == len(lines)
    return Left(done, {report["run"]["id"]: report for report in lines}, state(server), dict(server.counts))


def check_quiet(left: Left, before: dict[str, Any]) -> None:
    """Check that nothing that is not ours was changed, and what is said is one line a trouble, without the key."""
    assert foreign(left.state) == foreign(before)
    said = left.done.out + left.done.err
    assert (KEY in said, "Traceback" in said) == (False, False)
    lines = left.done.err.splitlines()
    assert len(set(lines)) == len(lines)
    assert all(line.startswith("runtriage: ") for line in lines), left.done.err


@pytest.mark.statistical
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [429, 500, "cut", "late"])
def test_what_passes_changes_nothing(server: StandIn, tmp_path: Path, kind: int | str) -> None:
    """Each kind of request goes wrong once, in a sweep of its own: reports and marks are those of a calm sweep.

    A change of which half an answer comes back may have been made or not; the client does not repeat it. It is told,
    and the next sweep makes it good.
    """
    before, runs, views = state(server), copy.deepcopy(server.world.runs), copy.deepcopy(server.world.views)
    calm = swept(server, tmp_path)
    assert (calm.done.code, calm.done.err, len(calm.reports)) == (0, "", 4)
    assert calm.state != before
    wrong = []
    for name in sorted(calm.counts):
        restore(server, runs, views)
        server.fail(name, kind)
        left = swept(server, tmp_path)
        check_quiet(left, before)
        if kind == "cut" and left.done.code in {3, 4} and left.done.err:
            left = swept(server, tmp_path)
            check_quiet(left, before)
        if (left.done.code, left.reports or calm.reports, left.state) != (0, calm.reports, calm.state):
            wrong.append((name, left.done.code, left.done.err))
    assert wrong == []


@pytest.mark.statistical
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [429, 500, "cut", "hang"])
def test_what_fails_for_good(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int | str
) -> None:
    """Each kind of request fails through a whole sweep, in a sweep of its own; the next sweep makes all of it good.

    A sweep either does without that request, or says in its exit code that something is missing. What it does say of
    runs is what a calm sweep says, and it ends within a few times the patience with one request.
    """
    impatient(monkeypatch)
    before, runs, views = state(server), copy.deepcopy(server.world.runs), copy.deepcopy(server.world.views)
    calm = swept(server, tmp_path)
    wrong = []
    for name in sorted(calm.counts):
        restore(server, runs, views)
        server.fail(name, kind, times=10_000)
        began = time.monotonic()
        left = swept(server, tmp_path)
        seconds = time.monotonic() - began
        check_quiet(left, before)
        server.clear_faults()
        share(partial(AdaptivePace, patience=2.0, pause=0.05))
        after = swept(server, tmp_path)
        if left.done.code == 0:
            good = (left.done.err, left.reports, left.state) == ("", calm.reports, calm.state)
        else:
            good = left.done.code in {3, 4} and bool(left.done.err) and is_part(left.reports, calm.reports)
        mended = (after.done.code, after.done.err, after.reports, after.state) == (0, "", calm.reports, calm.state)
        if not (good and mended and seconds < 30):
            wrong.append((name, seconds, left.done.code, left.done.err, after.done.err))
    assert wrong == []


@pytest.mark.statistical
@pytest.mark.timeout(600)
def test_a_server_that_is_gone_is_not_waited_for_once_a_run(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one request on nothing is answered: however many runs there are, patience is lost a few times only."""
    impatient(monkeypatch)
    for i in range(12):
        server.world.add_run("team", "p", f"more-{i}", rows=[{"_step": 0, "train/loss": 1.0}], config={"more": 1})
    before, runs, views = state(server), copy.deepcopy(server.world.runs), copy.deepcopy(server.world.views)
    calm = swept(server, tmp_path)
    seconds = []
    for name in ("RuntriageHead", "UpsertBucket", "RuntriageRun"):
        restore(server, runs, views)
        server.fail(name, "hang", times=10_000)
        began = time.monotonic()
        left = swept(server, tmp_path)
        seconds.append(time.monotonic() - began)
        check_quiet(left, before)
        assert (left.done.code, "not tried: the source stopped answering" in left.done.err) == (4, True)
        server.clear_faults()
        assert (swept(server, tmp_path).done.code, state(server)) == (0, calm.state)
    assert max(seconds) < 30, seconds


@pytest.mark.parametrize("skip", [0, 2, 5])
def test_a_key_that_is_refused_in_the_middle(server: StandIn, tmp_path: Path, skip: int) -> None:
    """401 from one request on: an exit code that says so, no secret, and a whole sweep once the key is good again."""
    before = state(server)
    server.fail(".*", 401, times=10_000, skip=skip)
    left = swept(server, tmp_path)
    check_quiet(left, before)
    assert left.done.code in {3, 4}
    server.clear_faults()
    assert swept(server, tmp_path).done.code == 0


def test_refused_writes(server: StandIn, tmp_path: Path) -> None:
    """Where all changes are refused the reports are whole, nothing is changed, and the exit code says so."""
    before = state(server)
    calm = swept(server, tmp_path, "--dry-run")
    server.read_only = True
    left = swept(server, tmp_path)
    check_quiet(left, before)
    assert (left.reports, left.state) == (calm.reports, before)
    assert left.done.code in {3, 4}

"""A sweep of a real MLflow server with something between: nothing is lost, doubled, or changed that is not ours."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fault_proxy.command import Done, command
from fault_proxy.faults import Fault
from fault_proxy.mlflow_project import WRITES as WRITES_OF_ANY_KIND
from fault_proxy.mlflow_project import MlflowProject, differences
from fault_proxy.pages import Pages

from runtriage.trackers.mlflow import source as source_module
from runtriage.trackers.mlflow.client import MlflowClient
from runtriage.trackers.pace import AdaptivePace, share

pytestmark = pytest.mark.integration
SECRET = "hunter2-secret"
LISTING, READ, RUN = "runs/search", "metrics/get-history", "runs/get"
WRITES = ("PUT panel.svg", "runs/log-batch", "experiments/set-experiment-tag")
EVERY = 10_000


@dataclass(frozen=True, slots=True)
class Left:
    """What a sweep said and left."""

    done: Done
    reports: dict[str, Any]
    state: dict[str, Any]


@pytest.fixture(autouse=True)
def quick(project: MlflowProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the client lose patience within seconds, and start from marks none of which is ours."""
    monkeypatch.setattr(source_module, "MlflowClient", partial(MlflowClient, timeout=(2.0, 1.5), backoff=0.01))
    share(partial(AdaptivePace, patience=8.0, pause=0.05))
    project.restore()
    yield
    share()
    project.proxy.clear()


def swept(project: MlflowProject, folder: Path, *words: str) -> Left:
    """Sweep with credentials in the address, and write everything."""
    address = project.address.replace("mlflow://", f"mlflow://me:{SECRET}@")
    path = folder / "reports.jsonl"
    done = command("sweep", address, "--write", "all", "--json", str(path), *words)
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    reports = [json.loads(line) for line in lines]
    assert len({report["run"]["id"] for report in reports}) == len(reports)
    return Left(done, {report["run"]["id"]: report for report in reports}, project.state())


@pytest.fixture(scope="session")
def wanted() -> dict[str, Left]:
    """Hold what an undisturbed sweep leaves, once there was one."""
    return {}


@pytest.fixture
def undisturbed(project: MlflowProject, wanted: dict[str, Left], tmp_path: Path) -> Left:
    """Sweep undisturbed, once for all tests."""
    if not wanted:
        wanted["mlflow"] = swept(project, tmp_path, "--cache", "off")
        assert (wanted["mlflow"].done.code, wanted["mlflow"].done.err) == (0, "")
        project.restore()
    return wanted["mlflow"]


def check_quiet(left: Left, project: MlflowProject, before: dict[str, Any]) -> None:
    """Check that nothing that is not ours was changed, and nothing was said that should not be."""
    assert differences(project.foreign(), before) == []
    said = left.done.out + left.done.err
    assert not [word for word in (SECRET, base64.b64encode(f"me:{SECRET}".encode()).decode()) if word in said]
    assert "Traceback" not in said
    lines = left.done.err.splitlines()
    assert len(set(lines)) == len(lines)
    assert all(line.startswith("runtriage: ") for line in lines)


def check_same(left: Left, undisturbed: Left) -> None:
    """Check that reports and marks are those of an undisturbed sweep."""
    assert left.done.code == 0, left.done.err
    assert left.reports == undisturbed.reports
    assert differences(left.state, undisturbed.state) == []


def date(offset: timedelta) -> str:
    """Return an HTTP date."""
    return format_datetime(datetime.now(UTC) + offset, usegmt=True)


DAY = timedelta(days=1)
BUSY = Fault(status=429)
BUSY_ASKS = Fault(status=429, headers={"Retry-After": "1"})
BROKEN = Fault(status=500, body=b"<html>Internal Server Error</html>")
CARRIED_OUT = Fault(status=500, late=True)
RESET, CUT, CUT_RESET = Fault(reset=True), Fault(cut=0.5), Fault(cut=0.5, reset=True)
SILENT, SILENT_INSIDE = Fault(hang=20.0), Fault(cut=0.5, hang=20.0)
PASSING = [
    *[(f"429s at {name}", name, BUSY, 4) for name in (LISTING, READ, *WRITES)],
    *[(f"429s with a wait at {name}", name, BUSY_ASKS, 2) for name in (LISTING, READ, "runs/log-batch")],
    *[(f"500s at {name}", name, BROKEN, 3) for name in (LISTING, READ, RUN, *WRITES)],
    *[(f"a 500 after the fact at {name}", name, CARRIED_OUT, 3) for name in WRITES],
    *[(f"resets at {name}", name, RESET, 2) for name in (LISTING, READ, RUN, *WRITES)],
    *[(f"half a body at {name}", name, CUT, 2) for name in (LISTING, READ, RUN)],
    *[(f"a reset in mid-body at {name}", name, CUT_RESET, 2) for name in (LISTING, READ, RUN, "runs/log-batch")],
    *[(f"silence at {name}", name, SILENT, 1) for name in (LISTING, READ, "runs/log-batch")],
    *[(f"silence in mid-body at {name}", name, SILENT_INSIDE, 1) for name in (LISTING, READ)],
    ("the first page of runs again", LISTING, Pages("runs", 2, again=True).fault(), EVERY),
    ("overlapping pages of runs", LISTING, Pages("runs", 2, overlap=1).fault(), EVERY),
    ("the first page of points again", READ, Pages("metrics", 60, again=True).fault(), EVERY),
    ("overlapping pages of points", READ, Pages("metrics", 60, overlap=13).fault(), EVERY),
    ("a clock a day ahead", ".*", Fault(headers={"Date": date(DAY)}), EVERY),
    ("a clock a day behind", ".*", Fault(headers={"Date": date(-DAY)}), EVERY),
    (
        "429s with a date of a clock a day ahead", READ,
        Fault(status=429, headers={"Date": date(DAY), "Retry-After": date(DAY + timedelta(seconds=1))}), 2,
    ),
]  # fmt: skip


def params(cases: Iterable[tuple[str, str, Fault, int]]) -> list[Any]:
    """Return cases; of a fault at several places all but the first are for `make test-slow`."""
    seen: set[str] = set()
    found = []
    for name, *rest in cases:
        kind = name.partition(" at ")[0].partition(" while ")[0]
        found.append(pytest.param(*rest, id=name, marks=[pytest.mark.statistical] if kind in seen else []))
        seen.add(kind)
    return found


@pytest.mark.parametrize(("where", "fault", "times"), params(PASSING))
def test_what_passes_changes_nothing(
    project: MlflowProject, undisturbed: Left, tmp_path: Path, where: str, fault: Fault, times: int
) -> None:
    """Reports and marks equal those of an undisturbed sweep, and nothing is said."""
    before = project.foreign()
    project.proxy.fail(where, fault, times=times)
    left = swept(project, tmp_path)
    assert project.proxy.hits >= min(times, 2 if times == EVERY else times)
    check_quiet(left, project, before)
    check_same(left, undisturbed)


LASTING = [
    ("500s while runs are read", READ, BROKEN, 6),
    ("resets while runs are read", READ, RESET, 6),
    ("half bodies while runs are read", READ, CUT, 6),
    ("silence while runs are read", READ, SILENT, 9),
    ("too many requests while runs are read", READ, BUSY, 6),
    ("401s while runs are read", READ, Fault(status=401), 6),
    ("500s while panels are stored", "PUT .*", BROKEN, 0),
    ("500s while runs are marked", "runs/log-batch", BROKEN, 2),
    ("resets after the fact", "runs/log-batch", Fault(cut=0.0, reset=True), 2),
    ("500s while the experiment is marked", "experiments/set-experiment-tag", BROKEN, 1),
    ("401s while runs are marked", "runs/log-batch", Fault(status=401), 2),
    ("403s while runs are marked", "runs/log-batch", Fault(status=403), 2),
    ("403s on all writes", WRITES_OF_ANY_KIND.pattern, Fault(status=403), 0),
    ("403s while the experiment is marked", "experiments/set-experiment-tag", Fault(status=403), 1),
]


@pytest.mark.parametrize(("where", "fault", "skip"), params(LASTING))
def test_what_lasts_is_told_and_found_next_time(
    project: MlflowProject, undisturbed: Left, tmp_path: Path, where: str, fault: Fault, skip: int
) -> None:
    """The sweep leaves with 4 and one line for each thing that failed; the next one leaves all as it should be."""
    before = project.foreign()
    project.proxy.fail(where, fault, times=EVERY, skip=skip)
    left = swept(project, tmp_path)
    assert project.proxy.hits
    project.proxy.clear()
    check_quiet(left, project, before)
    assert left.done.code == 4
    told = [line.split(": ")[2] for line in left.done.err.splitlines() if line.startswith("runtriage: failed: ")]
    failed = [run for runs in told for run in runs.split(", ")]
    withheld = [run for run, report in left.reports.items() if report["verdict"] == "withheld"]
    assert sorted(failed) == sorted(withheld)
    assert len(left.reports) == len(undisturbed.reports)
    assert failed or "not written: " in left.done.err or "nothing could be written: " in left.done.err
    project.proxy.clear()
    share(partial(AdaptivePace, patience=8.0, pause=0.05))
    again = swept(project, tmp_path)
    check_quiet(again, project, before)
    check_same(again, undisturbed)


AT_THE_DOOR: list[tuple[str, Fault]] = [
    ("refused", Fault(status=401)), ("forbidden", Fault(status=403)), ("broken", BROKEN), ("gone", RESET),
    ("silent", SILENT), ("busy", Fault(status=429, headers={"Retry-After": "3600"})),
]  # fmt: skip


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in AT_THE_DOOR])
def test_a_server_that_cannot_be_listed(project: MlflowProject, tmp_path: Path, fault: Fault) -> None:
    """It leaves with 3 and one error; nothing is written."""
    before = project.state()
    project.proxy.fail(LISTING, fault, times=EVERY)
    left = swept(project, tmp_path)
    assert left.done.code == 3
    assert len(left.done.err.splitlines()) == 1
    assert left.done.err.startswith("runtriage: the")
    assert SECRET not in left.done.out + left.done.err
    assert (differences(left.state, before), left.reports) == ([], {})

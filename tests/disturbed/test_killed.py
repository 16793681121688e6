"""A sweep that is killed with SIGKILL anywhere, and then run again, leaves what one leaves that nobody disturbed."""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from fault_proxy.command import begun, command, kill
from fault_proxy.mlflow_project import WRITES, MlflowProject, Saved, differences

pytestmark = pytest.mark.integration
SEED = 20261130
MODES = ((), ("--resume",), ("--cache", "CACHE"), ("--cache", "CACHE", "--resume"))
Event = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Start:
    """What hangs on the runs when a sweep begins: nothing of ours, or verdicts that are wrong by now.

    Attributes
    ----------
    stale
        The diverging run is marked healthy and a healthy one broken.
    events
        Requests of an undisturbed sweep from here.
    final
        What it leaves.
    reports
        What it says.
    """

    stale: bool
    events: list[Event]
    final: dict[str, object]
    reports: list[dict[str, object]]

    @property
    def first_write(self) -> int:
        """Return the number of the first event that changes something."""
        return min(min(places) for places in self.writes.values())

    @property
    def writes(self) -> dict[str, list[int]]:
        """Return the numbers of the events that change something, by what they are."""
        found: dict[str, list[int]] = {}
        for place, (name, _) in enumerate(self.events):
            if WRITES.fullmatch(name):
                found.setdefault(name, []).append(place)
        return found


class Killer:
    """Kills a process at an event, or some time after it."""

    def __init__(self, at: int, delay: float, *, drop: bool) -> None:
        self.seen: list[Event] = []
        self._at, self._delay, self._drop = at, delay, drop
        self._lock = threading.Lock()
        self.due = threading.Event()

    def __call__(self, name: str, moment: str) -> bool:
        """Take note of a request; return whether it is lost with its sender."""
        with self._lock:
            self.seen.append((name, moment))
            if len(self.seen) - 1 != self._at:
                return False
        time.sleep(self._delay)
        self.due.set()
        return self._drop


def counted(project: MlflowProject, *words: str) -> list[Event]:
    """Sweep without a disturbance and return the requests."""
    events: list[Event] = []
    project.proxy.on_request = lambda name, moment: bool(events.append((name, moment)))
    done = command("sweep", project.address, "--write", "all", *words)
    project.proxy.on_request = None
    assert (done.code, done.err) == (0, "")
    return events


def said(project: MlflowProject, *words: str) -> list[dict[str, object]]:
    """Judge all runs anew and return the reports, by run."""
    with tempfile.TemporaryDirectory() as folder:
        done = command("sweep", project.address, "--json", f"{folder}/reports", *words)
        found = [json.loads(line) for line in Path(folder, "reports").read_text().splitlines()]
    assert (done.code, done.err) == (0, "")
    return sorted(found, key=lambda report: str(report["run"]["id"]))


@pytest.fixture
def starts(project: MlflowProject, tmp_path: Path) -> list[Start]:
    """Return both starts with what an undisturbed sweep makes of them; nothing of ours hangs on the runs now."""
    project.restore()
    bare = start(project, tmp_path / "a", stale=False)
    make_stale(project)
    stale = start(project, tmp_path / "b", stale=True)
    project.restore()
    return [bare, stale]


def start(project: MlflowProject, cache: Path, *, stale: bool) -> Start:
    """Sweep without a disturbance."""
    events = counted(project, "--cache", str(cache))
    return Start(stale=stale, events=events, final=project.state(), reports=said(project, "--cache", "off"))


def make_stale(project: MlflowProject) -> None:
    """Mark the runs for what they were, and then exchange two of them."""
    project.restore()
    project.swap_curves("run-0", "bad")
    counted(project, "--cache", "off")
    project.swap_curves("run-0", "bad")


def one_kill(project: MlflowProject, start: Start, draw: random.Random, words: tuple[str, ...]) -> Event | None:
    """Start a sweep and kill it; return the event it was killed at, None if it had ended."""
    writes = start.writes[draw.choice(sorted(start.writes))]  # the rarest request as often as any
    at = draw.choice(writes) if draw.random() < 0.6 else draw.randrange(-1, start.first_write)
    killer = Killer(at, draw.choice([0.0, 0.0, draw.uniform(0.0, 0.03)]), drop=draw.random() < 0.3)
    project.proxy.on_request = killer
    process = begun("sweep", project.address, "--write", "all", *words)
    if at < 0:
        time.sleep(draw.uniform(0.0, 0.4))
    else:
        while process.poll() is None and not killer.due.wait(0.01):
            pass
    kill(process)
    process.wait()
    project.proxy.on_request = None
    project.proxy.settle()
    return killer.seen[at] if 0 <= at < len(killer.seen) else None


def killed_and_repaired(
    project: MlflowProject, starts: list[Start], draw: random.Random, folder: Path, states: dict[bool, Saved]
) -> tuple[Event | None, list[str]]:
    """Take one point: kill a sweep, sometimes the next one too, sweep again and compare."""
    start = draw.choice(starts)
    project.load(states[start.stale])
    mode = draw.choice(MODES)
    cache = ("--cache", str(folder / "cache")) if "--cache" in mode else ("--cache", "off")
    resume = ("--resume",) if "--resume" in mode else ()
    before = project.foreign()
    event = one_kill(project, start, draw, cache)
    wrong = differences(project.foreign(), before)
    if draw.random() < 0.25:
        one_kill(project, start, draw, (*cache, *resume))
    done = command("sweep", project.address, "--write", "all", *cache, *resume)
    wrong += [] if done.code == 0 else [f"exit code {done.code}: {done.err}"]
    wrong += differences(project.state(), start.final)
    if "--cache" in mode and said(project, *cache) != start.reports:
        wrong.append("reports differ")
    return event, [f"{event} from {'stale' if start.stale else 'bare'} with {mode}: {one}" for one in wrong]


def points(project: MlflowProject, starts: list[Start], folder: Path, count: int, seed: int) -> Counter[str]:
    """Take so many points; return how often which request was the last."""
    draw = random.Random(seed)
    states = {False: project.bare}
    make_stale(project)
    states[True] = project.taken()
    hit: Counter[str] = Counter()
    wrong: list[str] = []
    for place in range(count):
        event, found = killed_and_repaired(project, starts, draw, folder / str(place), states)
        hit["-" if event is None else event[0]] += 1
        wrong += [f"point {place}: {one}" for one in found]
    project.load(states[False])
    assert not wrong, "\n".join(wrong)
    return hit


def test_undisturbed_sweeps_agree(project: MlflowProject, starts: list[Start]) -> None:
    """What a sweep leaves, and says, does not depend on what hung there before."""
    assert differences(starts[0].final, starts[1].final) == []
    assert starts[0].reports == starts[1].reports
    assert len(starts[0].reports) > 2


def test_five_kills(project: MlflowProject, starts: list[Start], tmp_path: Path) -> None:
    """Killed at five points, half of them while it writes, and run again: all is as if nobody had disturbed it."""
    assert points(project, starts, tmp_path, 5, SEED).total() == 5


@pytest.mark.statistical
@pytest.mark.timeout(1500)
def test_two_hundred_kills(project: MlflowProject, starts: list[Start], tmp_path: Path) -> None:
    """The same at two hundred points; every kind of request that writes is among them."""
    hit = points(project, starts, tmp_path, 200, SEED + 1)
    written = {name for start in starts for name, _ in start.events if WRITES.fullmatch(name)}
    assert (hit.total(), sorted(written - hit.keys())) == (200, [])

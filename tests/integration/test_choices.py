"""Which runs a sweep looks at, on a real MLflow server and on the stand-in for W&B, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("wandb")

from mlflow_server.real import RealServer
from wandb_server import StandIn

from runtriage.testing.synth import CONFIG, healthy

pytestmark = pytest.mark.integration
COHORTS = 5
# The program itself, which writes down each run that it reads, and is killed in front of one.
PROGRAM = """
import os, signal, sys
from runtriage.cli.app import main
from runtriage.trackers.mlflow.source import MlflowSource
from runtriage.trackers.wandb.source import WandbSource
def watched(read):
    def noted(self, info, *rest):
        if info.name == os.environ.get("DIE_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
        with open("reads", "a") as file:
            file.write(info.name + "\\n")
        return read(self, info, *rest)
    return noted
for kind in (MlflowSource, WandbSource):
    kind.read = watched(kind.read)
main(sys.argv[1:])
"""


@dataclass(frozen=True)
class Place:
    """A project, and how a run gets into it: name, width of its config, day of November, state."""

    address: str
    add: Callable[[str, int, int, str], None]


@pytest.fixture(params=["mlflow", "wandb"])
def place(request: pytest.FixtureRequest) -> Place:
    """Make an empty project of each kind."""
    if request.param == "wandb":
        server: StandIn = request.getfixturevalue("server")
        server.clear_faults()
        project = f"p{len({key[1] for key in server.world.runs})}"

        def log(name: str, width: int, day: int, state: str) -> None:
            made = healthy(day, steps=60).tracks["train/loss"].value.tolist()
            server.world.add_run(
                "team", project, name, rows=[{"train/loss": value} for value in made],
                config={**CONFIG, "width": width}, state=state,
                created_at=f"2026-11-{day:02d}T00:00:00Z",
            )

        return Place(f"wandb://team/{project}", log)
    real: RealServer = request.getfixturevalue("mlflow_server")
    experiment = real.experiment(title := f"choices {request.node.name}")

    def put(name: str, width: int, day: int, state: str) -> None:
        start = int(datetime(2026, 11, day, tzinfo=UTC).timestamp() * 1000)
        run = real.run(experiment, name, start=start)
        real.params(run, {key: str(value) for key, value in {**CONFIG, "width": width}.items()})
        made = healthy(day, steps=60).tracks["train/loss"].value.tolist()
        real.log(run, "train/loss", [(step, value, start + step) for step, value in enumerate(made)])
        if state != "running":
            real.end(run, at=start + 1000)

    return Place(real.address(title), put)


def sweep(folder: Path, place: Place, *words: str, die_at: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "reads").unlink(missing_ok=True)
    command = [sys.executable, "-c", PROGRAM, "sweep", place.address, "--readers", "1", "--json", "-", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "DIE_AT": die_at}, capture_output=True, text=True, check=False,
        timeout=300,
    )


def names(done: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(json.loads(line)["run"]["name"] for line in done.stdout.splitlines())


def test_only_what_is_chosen_is_looked_at(place: Place, tmp_path: Path) -> None:
    """By moment and state, by state and number; what is not chosen is not even read."""
    for day in range(1, 7):
        place.add(f"r{day}", 1, day, "running" if day in {2, 5} else "finished")
    chosen = {
        ("--since", "2026-11-04", "--only", "running"): ["r5"],
        ("--only", "finished", "--limit", "2"): ["r4", "r6"],
    }
    for words, wanted in chosen.items():
        found = sweep(tmp_path, place, *words, "--cache", "off")
        assert (found.returncode, names(found)) == (0, wanted), words
        assert sorted((tmp_path / "reads").read_text().split()) == wanted


def test_a_killed_sweep_goes_on(place: Place, tmp_path: Path) -> None:
    """What was judged before the kill is not read again, and the reports are those of an undisturbed sweep."""
    for cohort in range(COHORTS):
        for member in range(2):
            place.add(f"c{cohort}m{member}", cohort, 2 * cohort + member + 1, "finished")
    whole = sweep(tmp_path, place, "--cache", "off")
    killed = sweep(tmp_path, place, "--cache", "off", die_at="c0m0")
    resumed = sweep(tmp_path, place, "--cache", "off", "--resume")
    read = set((tmp_path / "reads").read_text().split())
    assert (killed.returncode, resumed.returncode, len(names(whole))) == (-signal.SIGKILL, 0, 2 * COHORTS)
    assert resumed.stdout == whole.stdout
    assert ("c0m0" in read, read & {"c4m0", "c4m1", "c3m0", "c3m1"}) == (True, set())

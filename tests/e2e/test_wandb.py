"""The command line against a W&B project: verdicts in its tags, summaries, files and views, and out again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("wandb")
pytest.importorskip("wandb_workspaces")

from wandb_server import StandIn
from wandb_server.session import stand_in

from runtriage.testing.synth import cohort, faulty

pytestmark = pytest.mark.integration
Cli = Callable[..., "subprocess.CompletedProcess[str]"]
ADDRESS = "wandb://team/p"


@pytest.fixture
def server() -> Iterator[StandIn]:
    """Run a stand-in for W&B with a project of four healthy runs and one that diverges."""
    with stand_in() as running:
        for history in (*cohort(4), faulty("divergence", run_id="bad")):
            names = list(history.tracks)
            columns = zip(*(history.tracks[name].value.tolist() for name in names), strict=True)
            rows = [dict(zip(names, values, strict=True)) for values in columns]
            running.world.add_run(
                "team", "p", history.info.id, rows=rows, exported=True, config=dict(history.info.config)
            )
        yield running


def last(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a command's output, with its complaints where there are any."""
    return done.stdout.splitlines()[-1] + done.stderr.partition("runtriage: ")[2]


def test_a_second_sweep_changes_nothing(cli: Cli, server: StandIn) -> None:
    """The first sweep marks all runs and the project, the second finds everything as it should be."""
    said = [last(cli("sweep", ADDRESS, "--write", "all")) for _ in range(2)]
    assert said == [
        "marks: 5 runs changed, 0 already right; experiment changed", "marks: 0 runs changed, 5 already right",
    ]


def test_clearing_removes_every_trace(cli: Cli, server: StandIn) -> None:
    """After marks clear, nothing of ours is shown."""
    cli("sweep", ADDRESS, "--write", "all")
    cleared = last(cli("marks", "clear", ADDRESS))
    shown = cli("marks", "show", ADDRESS).stdout
    assert (cleared, shown) == ("5 runs cleared; the experiment is too", "0 runs with marks of runtriage\n")


def test_the_verdict_is_a_tag(cli: Cli, server: StandIn) -> None:
    """People filter runs by tags: the flagged run has ours."""
    cli("sweep", ADDRESS, "--write", "tags")
    (bad,) = [run for run in server.world.runs.values() if run.name == "bad"]
    assert [tag for tag in bad.tags if tag in ("rt:suspicious", "rt:broken")] != []

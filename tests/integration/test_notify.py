"""What people were told is kept on the run from one round to the next: a real MLflow, and the stand-in for W&B."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("wandb")

from mlflow_server.real import RealServer
from wandb_server import StandIn
from wandb_server.samples import put

from runtriage.model.marks import WritePlan
from runtriage.model.rule import RULES_SCHEMA, AlertRule, Ended, NonFinite, RuleSet
from runtriage.notify.message import Message
from runtriage.outputs import tags
from runtriage.outputs.plan import clear
from runtriage.pipeline import Params
from runtriage.registry import open_source
from runtriage.rules.codec import encode_rules
from runtriage.sweep.alerts import OnTheRun, tell
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
ENDINGS = (AlertRule(id="failed", about="The run failed.", condition=Ended()),)
RULES = (AlertRule(id="nan", about="The loss is NaN.", role="loss", condition=NonFinite()),)


class Box:
    """Takes every message."""

    def __init__(self) -> None:
        self.taken: list[Message] = []

    def __len__(self) -> int:
        return 1

    def send(self, message: Message) -> tuple[str, ...]:
        """Keep it."""
        self.taken.append(message)
        return ()


def told(server: RealServer, name: str) -> list[str]:
    """Hold one round as a new process would, and return the titles of what was sent."""
    source = open_source(server.address(name))
    box = Box()
    tell(source, list(source.list_runs()), RULES, params=Params(), memory=OnTheRun(source), sender=box)
    source.close()
    return [message.title for message in box.taken]


def test_what_was_told_is_kept_on_a_running_wandb_run(server: StandIn, source: WandbSource) -> None:
    """A listing of W&B does not show our marks while the run goes on; it is told once all the same."""
    run = put(server, state="running", rows=[{"loss": 1.0}] * 30 + [{"loss": math.nan}] * 3)
    sent = []
    for _ in range(3):
        box = Box()
        tell(source, list(source.list_runs()), RULES, params=Params(), memory=OnTheRun(source), sender=box)
        sent.append(len(box.taken))
    assert (sent, run.tags) == ([1, 0, 0], ["rt:watched"])


def look(source: WandbSource) -> list[str]:
    """Hold one round as a new process would, and return the titles of what was sent."""
    box = Box()
    tell(source, list(source.list_runs()), ENDINGS, params=Params(), memory=OnTheRun(source), sender=box)
    return [message.title for message in box.taken]


@pytest.mark.parametrize("between", ["nothing", "a sweep that clears the live file"])
def test_a_wandb_run_that_fails_between_two_looks_is_told_once(
    server: StandIn, source: WandbSource, between: str
) -> None:
    """The listing shows that the run was watched; its last word is told, kept in the summary, and the tag goes."""
    run = put(server, state="running", rows=[{"loss": 1.0}] * 30)
    sent = [look(source)]
    run.state = "failed"
    if between != "nothing":
        (info,) = source.list_runs()
        source.apply(info, WritePlan(set_tags={tags.STATUS: "healthy"}, delete_files=("runtriage/marks.json",)))
    sent += [look(source), look(source)]
    assert [len(titles) for titles in sent] == [0, 1, 0]
    assert "rt:watched" not in run.tags


def test_a_clear_takes_the_tag_of_a_watched_run_away(server: StandIn, source: WandbSource) -> None:
    """Nothing of ours is left on a run that goes on."""
    run = put(server, state="running", rows=[{"loss": 1.0}] * 30)
    look(source)
    (info,) = source.list_runs()
    source.apply(info, clear(source.read_marks(info)))
    assert (run.tags, source.read_marks(info).tags) == ([], {})


def cli(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtriage", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_regime_is_told_once_across_sweeps_and_cleared_with_the_marks(
    mlflow_server: RealServer, tmp_path: Path
) -> None:
    """Start, silence, a sweep that writes its own marks, silence, end; a clear leaves no tag of ours."""
    name = "told"
    run = mlflow_server.run(mlflow_server.experiment(name), "live", start=int(time.time() * 1000))
    mlflow_server.log(run, "loss", [(i, 2.0 - i / 100, 1_700_000_000_000 + i) for i in range(50)])
    mlflow_server.log(run, "loss", [(i, float("nan"), 1_700_000_000_000 + i) for i in range(50, 55)])
    rounds = [told(mlflow_server, name), told(mlflow_server, name)]
    swept = cli("sweep", mlflow_server.address(name), "--write", "tags", folder=tmp_path)
    rounds.append(told(mlflow_server, name))
    kept = mlflow_server.tags(run)
    mlflow_server.log(run, "loss", [(i, 1.4, 1_700_000_000_000 + i) for i in range(55, 120)])
    rounds.append(told(mlflow_server, name))
    assert rounds == [["live: The loss is NaN"], [], [], ["live: over: The loss is NaN"]]
    assert {tags.ALERTS, tags.STATUS} <= kept.keys(), swept.stderr
    cli("marks", "clear", mlflow_server.address(name), folder=tmp_path)
    assert not [key for key in mlflow_server.tags(run) if key.startswith(tags.PREFIX)]


def test_a_dry_run_on_a_server_writes_nothing(mlflow_server: RealServer, tmp_path: Path) -> None:
    """The message is printed, with a link to the run; no tag appears."""
    name = "dry"
    run = mlflow_server.run(mlflow_server.experiment(name), "live")
    mlflow_server.log(run, "loss", [(i, float("nan"), 1_700_000_000_000 + i) for i in range(20)])
    before = mlflow_server.tags(run)
    (tmp_path / "rules.yaml").write_bytes(encode_rules(RuleSet(schema=RULES_SCHEMA, rules=RULES)))
    done = cli("rules", "notify", "rules.yaml", mlflow_server.address(name), "--dry-run", folder=tmp_path)
    assert "The loss is NaN. Step 0" in done.stdout
    assert run in done.stdout
    assert mlflow_server.tags(run) == before

"""Alert rules put into a W&B project from the command line, through the real client."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.automations import add_foreign, add_slack, add_webhook
from wandb_server.session import stand_in

from runtriage.model.rule import RULES_SCHEMA

pytestmark = pytest.mark.integration
Cli = Callable[..., "subprocess.CompletedProcess[str]"]
PROJECT = "wandb://team/p"
TO = ("--to", "wandb", "--integration", "alerts")
HIGH = "{id: high, about: The loss is high., role: loss, condition: {is: above, value: 9}, for_points: 3}"
ENDED = "{id: gone, about: A run failed., condition: {is: ended}, severity: critical}"
NAN = "{id: nan, about: The loss is NaN., role: loss, condition: {is: non_finite}}"
SPIKE = "{id: spike, about: It jumps., metric: n, condition: {is: jump, window: 30, factor: 2}, after_step: 50}"


@pytest.fixture
def server() -> Iterator[StandIn]:
    """Run a stand-in with a run, a Slack channel, a webhook, and automations of others with names like ours."""
    with stand_in() as running:
        running.world.add_run("team", "p", "r1", rows=[{"train/loss": 1.0}] * 30, exported=True)
        add_slack(running.world, "#alerts")
        add_webhook(running.world, "ci")
        for name in ("runtriage", "runtriage:high", "runtriage:p:high copy"):
            add_foreign(running.world, name)
        yield running


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Return a way to write rules; it returns the name of their file."""

    def to_file(*rules: str) -> str:
        lines = "".join(f"  - {one}\n" for one in rules)
        (tmp_path / "rules.yaml").write_text(f"schema: {RULES_SCHEMA}\nrules:{' []' if not rules else ''}\n{lines}")
        return "rules.yaml"

    return to_file


def ours(server: StandIn) -> dict[str, dict[str, object]]:
    """Return what is there beside the automations of others."""
    theirs = {"runtriage", "runtriage:high", "runtriage:p:high copy"}
    return {one["name"]: one for one in server.world.triggers.values() if one["name"] not in theirs}


def test_a_plan_writes_nothing_and_says_why_rules_are_left(
    cli: Cli, server: StandIn, write: Callable[..., str]
) -> None:
    """The role becomes the project's own metric; each rule that cannot be an automation has its reason."""
    done = cli("rules", "plan", write(HIGH, NAN, SPIKE, ENDED), PROJECT, *TO)
    assert (done.returncode, ours(server)) == (0, {})
    assert "would make    runtriage:p:high: when the smallest of the last 3 values of 'train/loss'" in done.stdout
    assert "not compiled  nan: no automation can tell that a value is NaN" in done.stdout
    assert "not compiled  spike: only nearly: the mean of the values before stands for their median" in done.stdout
    assert "at most once per run in 24 hours" in done.stderr


def test_a_second_apply_changes_nothing(cli: Cli, server: StandIn, write: Callable[..., str]) -> None:
    """Neither creates nor updates nor removes."""
    rules = write(HIGH, ENDED)
    cli("rules", "apply", rules, PROJECT, *TO)
    before = {name: dict(one) for name, one in ours(server).items()}
    server.counts.clear()
    done = cli("rules", "apply", rules, PROJECT, *TO)
    assert list(before) == ["runtriage:p:gone", "runtriage:p:high"]
    assert (ours(server), [n for n in server.counts if n.endswith("eAutomation")]) == (before, [])
    assert "2 automations say 2 rules, 2 are there already" in done.stdout


def test_a_changed_rule_is_changed_and_a_vanished_one_removed(
    cli: Cli, server: StandIn, write: Callable[..., str]
) -> None:
    """The changed automation keeps its id, and what others made stays."""
    cli("rules", "apply", write(HIGH, ENDED), PROJECT, *TO)
    before = ours(server)["runtriage:p:high"]["id"]
    done = cli("rules", "apply", write(HIGH.replace("9", "8")), PROJECT, *TO)
    assert done.stdout.count("changed ") == done.stdout.count("removed ") == 1
    assert [(name, one["id"]) for name, one in ours(server).items()] == [("runtriage:p:high", before)]
    assert '"threshold":8.0' in str(ours(server)["runtriage:p:high"]["event"])
    assert len(server.world.triggers) == 4


def test_pruning_removes_ours_and_only_ours(cli: Cli, server: StandIn, write: Callable[..., str]) -> None:
    """A rehearsal removes nothing; the automations of others outlive both."""
    cli("rules", "apply", write(HIGH, ENDED), PROJECT, *TO)
    rehearsed = cli("rules", "prune", PROJECT, "--to", "wandb", "--dry-run").stdout
    left = len(server.world.triggers)
    done = cli("rules", "prune", PROJECT, "--to", "wandb").stdout
    assert (rehearsed.count("would remove"), left, done.count("removed"), ours(server)) == (2, 5, 2, {})
    assert len(server.world.triggers) == 3


def test_nearly_the_same_is_compiled_when_asked_for(cli: Cli, server: StandIn, write: Callable[..., str]) -> None:
    """The automation carries what it leaves out."""
    done = cli("rules", "apply", write(SPIKE, NAN), PROJECT, "--to", "wandb", "--integration", "ci", "--approximate")
    (one,) = ours(server).values()
    assert "it knows no warm-up and speaks before step 50 too" in str(one["description"])
    assert "GenericWebhook" in str(one["action"])
    assert "1 rules stay with `rules notify`" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((PROJECT, "--to", "wandb"), "#alerts (Slack, Acme), ci (webhook, hooks.example.invalid)"),
        ((PROJECT, "--to", "wandb", "--integration", "nobody"), "no integration called 'nobody'"),
        ((PROJECT, "--to", "wandb", "--integration", "slack:ci"), "no integration called 'slack:ci'"),
        (("files:.", *TO), "holds no alert rules of its own"),
        (("wandb://team/p/r1", *TO), "address of one run"),
        (TO, "--to wandb needs SOURCE"),
        ((PROJECT, "--to", "prometheus"), "--to prometheus needs -o DIR"),
    ],
)
def test_mistakes_end_with_two_and_one_line(
    cli: Cli, server: StandIn, write: Callable[..., str], words: tuple[str, ...], said: str
) -> None:
    """A wrong integration or source is answered with what there is; a webhook's secret address is not shown."""
    done = cli("rules", "apply", write(HIGH), *words)
    assert (done.returncode, ours(server)) == (2, {})
    assert said in done.stderr.splitlines()[-1]
    assert "s3cret" not in done.stdout + done.stderr


def test_a_refusal_is_one_line(cli: Cli, server: StandIn, write: Callable[..., str]) -> None:
    """Credentials that may only read end with 3."""
    server.read_only = True
    done = cli("rules", "apply", write(HIGH, ENDED), PROJECT, *TO)
    assert (done.returncode, ours(server)) == (3, {})
    (line,) = done.stderr.splitlines()
    assert "W&B refuses these credentials @ wandb://team/p runtriage:p:gone" in line


def test_a_name_that_is_taken_is_told_and_the_rest_is_done(
    cli: Cli, server: StandIn, write: Callable[..., str]
) -> None:
    """An automation that somebody made under our very name stays as it is, and the command leaves with 4."""
    key = add_foreign(server.world, "runtriage:p:high", description="mine")
    before = dict(server.world.triggers[key])
    done = cli("rules", "apply", write(HIGH, ENDED), PROJECT, *TO)
    assert (done.returncode, server.world.triggers[key]) == (4, before)
    assert "runtriage:p:high: left out, an automation of this name is not ours" in done.stderr
    assert "runtriage:p:gone" in ours(server)

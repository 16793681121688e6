"""`runtriage watch` as a process of its own, over a folder of runs."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from background import background

from runtriage.model.history import RunHistory
from runtriage.testing.synth import cohort, faulty

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
WATCH = ("-m", "runtriage", "watch", "files:runs", "--every")


@pytest.fixture
def folder(tmp_path: Path, runs: Callable[[RunHistory], Path]) -> Path:
    """Write a cohort of four healthy runs."""
    for history in cohort(4):
        runs(history)
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_rounds_follow_and_a_signal_ends_them(folder: Path, number: int) -> None:
    """Round after round is made; a signal ends the watch with 0 and one line."""
    with background(folder, [*WATCH, "1s"]) as watch:
        watch.said("4 runs: 4 healthy", times=2)
        code = watch.ended(number)
    assert (code, watch.err.splitlines()[-1], "Traceback" in watch.err) == (0, "runtriage: stopped", False)


def test_a_signal_ends_the_wait_for_the_next_round(folder: Path) -> None:
    """Who is asked to end between two rounds does not wait for the next."""
    with background(folder, [*WATCH, "1d"]) as watch:
        watch.said("4 runs: 4 healthy")
        assert watch.ended(signal.SIGTERM) == 0
    assert watch.out.count("round") == 1


def test_only_what_is_new_is_listed(folder: Path, runs: Callable[[RunHistory], Path]) -> None:
    """A run that comes in and is bad stands in the table of one round, and healthy ones in none."""
    with background(folder, [*WATCH, "1s"]) as watch:
        watch.said("4 runs: 4 healthy")
        runs(faulty("divergence", run_id="late"))
        watch.said("5 runs: ", times=3)
        watch.ended(signal.SIGTERM)
    rows = [line.split()[1] for line in watch.out.splitlines() if "sibling" in line]
    assert rows == ["late"]


def test_a_failed_round_is_told_and_the_next_is_made(folder: Path) -> None:
    """While the folder is away each round fails in a line; once it is back, runs are judged again."""
    with background(folder, [*WATCH, "1s"]) as watch:
        watch.said("4 runs: 4 healthy")
        (folder / "runs").rename(folder / "away")
        watch.said("the next one is made all the same")
        (folder / "away").rename(folder / "runs")
        before = watch.out.count("4 runs: 4 healthy")
        watch.said("4 runs: 4 healthy", times=before + 2)
        watch.ended(signal.SIGTERM)
    told = [line for line in watch.err.splitlines() if "failed" in line]
    assert all("no such folder" in line for line in told)


def test_files_are_written_anew_in_each_round(folder: Path, runs: Callable[[RunHistory], Path]) -> None:
    """The file of reports is that of the newest round."""
    with background(folder, [*WATCH, "1s", "--json", "out.jsonl"]) as watch:
        watch.said("4 runs: 4 healthy")
        runs(faulty("divergence", run_id="late"))
        watch.said("5 runs: ", times=2)
        watch.ended(signal.SIGTERM)
    ids = [json.loads(line)["run"]["id"] for line in (folder / "out.jsonl").read_text().splitlines()]
    assert (len(ids), "late" in ids) == (5, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--every", "soon"], "no span of time"),
        (["--every", "0m"], "no span of time"),
        (["--write", "all"], "cannot be written to"),
        (["--fail-on", "broken"], "does not end with a verdict"),
        (["--notify", "json://127.0.0.1"], "nothing to tell of"),
        (["--dry-run"], "nothing to plan"),
    ],
    ids=["every", "never", "write", "fail-on", "notify", "dry-run"],
)
def test_what_makes_no_sense_is_refused_at_once(cli: Cli, folder: Path, words: list[str], said: str) -> None:
    """A mistake on the command line ends the watch in its first round, with 2."""
    done = cli("watch", "files:runs", *words)
    assert (done.returncode, said in done.stderr) == (2, True)


def test_settings_are_shown_without_secrets(cli: Cli, folder: Path) -> None:
    """Of an address that is told, the scheme is shown and nothing else."""
    (folder / "runtriage.toml").write_text('[sweep]\nrules = "r.yaml"\nnotify = ["slack://tokenA/tokenB/#c"]\n')
    done = cli("watch", "files:runs", "--show-settings")
    shown = [line for line in done.stdout.splitlines() if "sweep.notify" in line]
    assert (shown, "token" in done.stdout) == (['sweep.notify = ["slack://…"]  (runtriage.toml)'], False)

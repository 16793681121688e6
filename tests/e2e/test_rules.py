"""Alert rules on the command line: derived from good runs, tried on others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from runtriage.model.history import RunHistory
from runtriage.rules.codec import decode_rules
from runtriage.testing.synth import cohort, faulty

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def source(runs: Callable[[RunHistory], Path]) -> str:
    """Write five healthy runs and two faulty ones; return their address."""
    bad = faulty("divergence", run_id="bad", onset=240), faulty("nan", run_id="worse", onset=300)
    for history in (*cohort(5), *bad):
        runs(history)
    return "files:runs"


def test_rules_are_derived_from_the_healthy_runs_only(cli: Cli, source: str, tmp_path: Path) -> None:
    """The faulty runs give hit rates, not limits; a second derivation leaves the file as it is."""
    done = cli("rules", "derive", source, "-o", "rules.yaml")
    first = (tmp_path / "rules.yaml").read_bytes()
    cli("rules", "derive", source, "-o", "rules.yaml")
    measured = {rule.id.rpartition("-")[0]: rule.measured for rule in decode_rules(first).rules}
    band, nan = measured["loss-band"], measured["loss-non-finite"]
    assert band is not None
    assert nan is not None
    assert (done.returncode, band.runs, band.hits.fired, nan.hits.fired) == (0, 5, 1, 1)
    assert (tmp_path / "rules.yaml").read_bytes() == first


def test_what_a_person_edited_and_kept_stays(cli: Cli, source: str, tmp_path: Path) -> None:
    """A limit set by hand with ``keep: true`` survives the next derivation."""
    cli("rules", "derive", source, "-o", "rules.yaml")
    file = tmp_path / "rules.yaml"
    head, mark, tail = file.read_text().partition("for_points: 5\n")
    file.write_text(f"{head}for_points: 9\n    keep: true\n{tail}")
    done = cli("rules", "derive", source, "-o", "rules.yaml")
    assert mark
    assert [rule.for_points for rule in decode_rules(file.read_bytes()).rules if rule.keep] == [9]
    assert "1 of them kept" in done.stdout


def test_testing_tells_which_runs_would_have_fired_and_when(cli: Cli, source: str, tmp_path: Path) -> None:
    """With labels: no false alarm on five healthy runs, both faulty ones caught, within twenty steps."""
    cli("rules", "derive", source, "-o", "rules.yaml")
    onsets = {"bad": 240, "worse": 300} | {f"run-{i}": None for i in range(5)}
    lines = [json.dumps({"run_id": i, "healthy": onset is None, "onset": onset}) for i, onset in onsets.items()]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    done = cli("rules", "test", "rules.yaml", source, "--labels", "labels.jsonl", "--svg", "out.svg", "--compare")
    (row, *_) = (line for line in done.stdout.splitlines() if line.startswith("any rule"))
    assert "0 of 5 (0%)" in row
    assert "2 of 2 (100%)" in row
    assert "2 runs would have fired, 5 stay silent" in done.stdout
    assert "wandb-z-score-loss" in done.stdout
    assert (tmp_path / "out.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("derive", "files:runs", "-o", "no/such/rules.yaml"), "cannot be written"),
        (("derive", "files:runs", "-o", "x.yaml", "--budget", "2"), "--budget"),
        (("derive", "files:runs", "-o", "other.yaml"), "other.yaml $.schema"),
        (("test", "missing.yaml", "files:runs"), "missing.yaml"),
        (("test", "broken.yaml", "files:runs"), "broken.yaml $.rules[0].condition.value"),
        (("test", "alien.yaml", "files:runs"), "none of 1 rules"),
    ],
)
def test_mistakes_end_with_two_and_one_line(
    cli: Cli, source: str, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """A wrong file or option is answered with where it is wrong."""
    rule = "schema: runtriage.rules/1\nrules:\n  - {id: a, about: x, role: loss, %scondition: {is: above, value: %s}}\n"
    (tmp_path / "broken.yaml").write_text(rule % ("", "high"))
    (tmp_path / "alien.yaml").write_text(rule % ("config: beef, ", "1"))
    (tmp_path / "other.yaml").write_text("a: 1\n")
    done = cli("rules", *words)
    assert (done.returncode, source) == (2, "files:runs")
    assert said in done.stderr.splitlines()[-1]


def test_the_exporter_answers_and_ends_when_told(source: str, tmp_path: Path) -> None:
    """The page is served, other paths are not, and SIGTERM ends it with 0."""
    command = [sys.executable, "-m", "runtriage", "serve", source, "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            (address,) = re.findall(r"http://\S+/metrics", process.stdout.readline())
            with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310  loopback
                page = answer.read().decode()
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(address.replace("metrics", "etc"), timeout=20)  # noqa: S310  loopback
        finally:
            process.terminate()
        assert process.wait(20) == 0
    assert 'runtriage_run_info{run="bad"' in page


def test_expired_rules_are_said_and_still_replayed(cli: Cli, source: str, tmp_path: Path) -> None:
    """A rule of last year fires as before, with a word on stderr."""
    rule = "{id: a, about: x, role: loss, condition: {is: non_finite}, expires: 2025-01-01}"
    (tmp_path / "old.yaml").write_text(f"schema: runtriage.rules/1\nrules:\n  - {rule}\n")
    done = cli("rules", "test", "old.yaml", source)
    assert "1 of 1 rules have expired" in done.stderr
    assert "1 runs would have fired" in done.stdout

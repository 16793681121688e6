"""Every command on folders of runs: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtriage.codec import decode_report
from runtriage.model.history import RunHistory
from runtriage.testing.synth import CONFIG, cohort, faulty
from tests.oracles import wandb_log

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]
DEMO = f"files:{ROOT}/src/runtriage/demo_data/runs"


@pytest.fixture
def mixed(runs: Callable[[RunHistory], Path]) -> str:
    """Write four healthy runs and one that diverges; return their address."""
    for history in (*cohort(4), faulty("divergence", run_id="bad")):
        runs(history)
    return "files:runs"


def test_the_dead_conformers_are_flagged_and_their_siblings_not(cli: Cli) -> None:
    """Of the bundled runs, exactly the two that learned nothing are suspicious or worse."""
    done = cli("sweep", DEMO, "--json", "-")
    reports = [decode_report(line.encode()) for line in done.stdout.splitlines()]
    flagged = sorted(r.run.id for r in reports if r.verdict in ("suspicious", "broken"))
    assert (len(reports), flagged) == (15, ["ap_confln_base_s0", "ap_confln_base_s2"])


def test_the_table_puts_the_worst_first(cli: Cli, mixed: str) -> None:
    """The first row after the head is the run with the fault, the last line counts."""
    lines = cli("sweep", mixed).stdout.splitlines()
    assert (lines[1].split()[1], lines[-1].startswith("5 runs: 1 ")) == ("bad", True)


def test_json_holds_one_strict_report_a_line(cli: Cli, mixed: str, tmp_path: Path) -> None:
    """Each line is JSON without NaN words and decodes as a report."""
    cli("sweep", mixed, "--json", "out.jsonl")

    def refuse(word: str) -> None:
        pytest.fail(f"{word} is not JSON")

    schemas = [
        json.loads(line, parse_constant=refuse)["schema"] for line in (tmp_path / "out.jsonl").read_text().splitlines()
    ]
    assert schemas == ["runtriage.report/1"] * 5


def test_json_on_stdout_is_alone_there(cli: Cli, mixed: str) -> None:
    """With --json -, the counts go to stderr."""
    done = cli("sweep", mixed, "--json", "-")
    assert ([line[0] for line in done.stdout.splitlines()], "5 runs" in done.stderr) == (["{"] * 5, True)


def test_the_page_needs_nothing_else(cli: Cli, mixed: str, tmp_path: Path) -> None:
    """The HTML file names every run and loads nothing."""
    cli("sweep", mixed, "--html", "out.html")
    page = (tmp_path / "out.html").read_text()
    assert ("bad" in page, [word for word in ("src=", "<link", "@import", "url(http") if word in page]) == (True, [])


@pytest.mark.parametrize(("level", "code"), [("watch", 1), ("suspicious", 1)])
def test_fail_on_decides_the_exit_code(cli: Cli, mixed: str, level: str, code: int) -> None:
    """A verdict at or above the level ends with 1."""
    assert cli("sweep", mixed, "--fail-on", level).returncode == code


def test_without_fail_on_findings_are_no_failure(cli: Cli, mixed: str) -> None:
    """A sweep that worked ends with 0, whatever it found."""
    assert cli("sweep", mixed).returncode == 0


def test_a_level_nobody_reached_is_no_failure(cli: Cli, runs: Callable[[RunHistory], Path]) -> None:
    """Healthy runs end with 0 at any level."""
    for history in cohort(3):
        runs(history)
    assert cli("sweep", "files:runs", "--fail-on", "watch").returncode == 0


def test_a_run_that_cannot_be_read_ends_with_4(cli: Cli, mixed: str, tmp_path: Path) -> None:
    """The run is named on stderr, and the others are judged."""
    history = tmp_path / "runs" / "run-1" / "history.jsonl"
    history.unlink()
    history.with_suffix(".parquet").write_bytes(b"nothing")
    done = cli("sweep", mixed)
    told = "runtriage: failed: run-1: " in done.stderr
    assert (done.returncode, told, "3 healthy" in done.stdout) == (4, True, True)


def test_findings_outrank_a_failed_run(cli: Cli, mixed: str, tmp_path: Path) -> None:
    """Where both happened, the exit code is that of the findings."""
    (tmp_path / "runs" / "run-1" / "history.jsonl").rename(tmp_path / "runs" / "run-1" / "history.parquet")
    assert cli("sweep", mixed, "--fail-on", "watch").returncode == 1


def test_selection_narrows_the_sweep(cli: Cli, mixed: str) -> None:
    """--only keeps one state, --limit so many runs."""
    words = [cli("sweep", mixed, *flags).stdout.splitlines()[-1] for flags in (["--only", "running"], ["--limit", "2"])]
    assert (words[0], words[1].split(":")[0]) == ("no runs: nothing was judged", "2 runs")


def test_processes_say_the_same_as_one(cli: Cli, mixed: str) -> None:
    """The executor does not change a word."""
    outputs = [cli("sweep", mixed, "--executor", name).stdout for name in ("serial", "processes", "dask")]
    assert outputs[0] == outputs[1] == outputs[2]


def test_rules_are_not_replayed_on_a_cluster(cli: Cli, mixed: str) -> None:
    """Rather than replaying rules on nothing, the sweep says that it cannot."""
    done = cli("sweep", mixed, "--rules", "rules.yaml", "--executor", "dask")
    assert (done.returncode, "not on a cluster" in done.stderr) == (2, True)


def test_learned_baselines_judge_other_runs(cli: Cli, mixed: str, tmp_path: Path) -> None:
    """A run alone in a folder is compared with what was learned from another folder."""
    cli("learn", mixed, "-o", "good.baselines")
    (tmp_path / "alone").mkdir()
    (tmp_path / "runs" / "bad").rename(tmp_path / "alone" / "bad")
    done = cli("sweep", "files:alone", "--baselines", "good.baselines", "--json", "-")
    report = decode_report(done.stdout.encode().strip())
    assert (report.baseline.kind, report.verdict != "healthy") == ("cohort", True)


def test_a_fault_among_the_teachers_does_no_harm(cli: Cli, mixed: str) -> None:
    """What was learned from a folder with a broken run in it still finds that run and no other."""
    cli("learn", mixed, "-o", "good.baselines")
    lines = cli("sweep", mixed, "--baselines", "good.baselines", "--json", "-").stdout.splitlines()
    assert [r.run.id for r in (decode_report(line.encode()) for line in lines) if r.verdict != "healthy"] == ["bad"]


def test_nothing_to_learn_is_said(cli: Cli, runs: Callable[[RunHistory], Path]) -> None:
    """One run makes no baseline; no file is left."""
    runs(cohort(1)[0])
    done = cli("learn", "files:runs", "-o", "good.baselines")
    assert (done.returncode, "nothing could be learned" in done.stderr) == (2, True)


def test_check_shows_curves_finding_causes_and_checks(cli: Cli, mixed: str) -> None:
    """The diagnosis of one run has its curves, the finding, what was seen, how to check and what to try."""
    shown = cli("check", f"{mixed}/bad").stdout
    wanted = ("train/loss", "grad_norm", "▲ 1", "1. ", "seen", "%", "check", "try", "compared with 4 runs")
    dots = any("\u2800" < c <= "\u28ff" for c in shown)
    assert ([word for word in wanted if word not in shown], dots) == ([], True)


def test_check_compares_with_the_siblings(cli: Cli, mixed: str) -> None:
    """One run is judged as a sweep judges it."""
    alone = decode_report(cli("check", f"{mixed}/bad", "--json", "-").stdout.encode().strip())
    lines = cli("sweep", mixed, "--json", "-").stdout.splitlines()
    (among,) = [r for r in (decode_report(line.encode()) for line in lines) if r.run.id == "bad"]
    assert alone == among


def test_check_has_the_exit_code_of_its_verdict(cli: Cli, mixed: str) -> None:
    """--fail-on works for one run too."""
    codes = [cli("check", f"{mixed}/{name}", "--fail-on", "suspicious").returncode for name in ("bad", "run-1")]
    assert codes == [1, 0]


def test_check_takes_a_name(cli: Cli, runs: Callable[[RunHistory], Path]) -> None:
    """A run can be named as people name it."""
    folder = runs(cohort(1)[0])
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "name": "Tuesday night"}))
    assert cli("check", "files:runs/Tuesday night").stdout.startswith("Tuesday night")


def test_doctor_says_what_is_logged_and_what_is_not(cli: Cli, mixed: str) -> None:
    """Cohorts, the role of each metric, and what is missing."""
    shown = cli("doctor", mixed).stdout
    wanted = ("5 finished", "1 configs", "train/loss (5)", "not logged", "cannot be written here")
    assert [word for word in wanted if word not in shown] == []


def test_settings_of_the_folder_are_used(cli: Cli, mixed: str, tmp_path: Path) -> None:
    """runtriage.toml in the working folder decides what no flag decides."""
    (tmp_path / "runtriage.toml").write_text('[sweep]\nfail_on = "watch"\n')
    assert cli("sweep", mixed).returncode == 1


def test_roles_of_the_settings_are_used(cli: Cli, tmp_path: Path) -> None:
    """A loss with a name of its own is judged once the settings say what it is."""
    for seed, history in enumerate(cohort(3)):
        folder = tmp_path / "runs" / f"r{seed}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"config": dict(CONFIG)}))
        rows = [f"{i},{x}" for i, x in enumerate(history.tracks["train/loss"].value.tolist())]
        (folder / "history.csv").write_text("\n".join(["step,objective", *rows]))
    before = cli("sweep", "files:runs").stdout.splitlines()[-1]
    (tmp_path / "runtriage.toml").write_text('[analysis.roles]\nobjective = "loss"\n')
    assert (before, cli("sweep", "files:runs").stdout.splitlines()[-1]) == ("3 runs: 3 withheld", "3 runs: 3 healthy")


def test_show_settings_reads_nothing(cli: Cli) -> None:
    """--show-settings answers although the source does not exist."""
    done = cli("sweep", "files:nowhere", "--show-settings", environ={"RUNTRIAGE_SWEEP__READERS": "7"})
    assert (done.returncode, "sweep.readers = 7  (RUNTRIAGE_SWEEP__READERS)" in done.stdout) == (0, True)


USAGE = {
    "no command": ([], 2, "Usage"),
    "no such command": (["frobnicate"], 2, "No such command"),
    "no source": (["sweep"], 2, "Missing argument"),
    "no address": (["sweep", "runs"], 2, "not the address of a source"),
    "no such scheme": (["sweep", "ftp:x"], 2, "nothing here opens ftp"),
    "no such folder": (["sweep", "files:nowhere"], 3, "no such folder"),
    "no such folder to look at": (["doctor", "files:nowhere"], 3, "no such folder"),
    "a run where a source is wanted": (["sweep", f"{DEMO}/mn_valueembed_0"], 2, "address of one run"),
    "a source where a run is wanted": (["check", DEMO], 2, "names no run"),
    "no such run": (["check", f"{DEMO}/nobody"], 4, "there is no run nobody"),
    "no such kind of mark": (["sweep", DEMO, "--write", "stickers"], 2, "'stickers' cannot be written"),
    "marks on files": (["sweep", DEMO, "--write", "all"], 2, "cannot be written to"),
    "marks to show on files": (["marks", "show", DEMO], 2, "cannot be written to"),
    "a dry run of nothing": (["sweep", DEMO, "--dry-run"], 2, "nothing to plan"),
    "no such moment": (["sweep", DEMO, "--since", "yesterday"], 2, "is no moment"),
    "no room for the reports": (["sweep", DEMO, "--json", "nowhere/x"], 2, "cannot be written"),
    "no such baselines": (["sweep", DEMO, "--baselines", "nowhere"], 2, "cannot be read"),
    "a budget beyond reason": (["sweep", DEMO, "--budget", "0.9"], 2, "$.analysis.false_alarm_budget"),
    "a level that is none": (["sweep", DEMO, "--fail-on", "withheld"], 2, "withheld"),
    "no experiment": (["sweep", "mlflow://127.0.0.1:1"], 2, "names no experiment"),
}


@pytest.mark.parametrize(("words", "code", "what"), USAGE.values(), ids=USAGE)
def test_what_cannot_be_done_is_said_in_one_line(cli: Cli, words: list[str], code: int, what: str) -> None:
    """The exit code tells the kind of trouble, one line on stderr says what it is, and stdout stays empty."""
    done = cli(*words)
    lines = 1 if words else len(done.stderr.splitlines())
    assert (done.returncode, what in done.stderr, len(done.stderr.splitlines()), done.stdout) == (code, True, lines, "")


def test_a_folder_of_wandb_logs_cut_in_mid_record_is_read(cli: Cli, tmp_path: Path) -> None:
    """A .wandb file that ends in the middle of a record gives what was written before."""
    folder = tmp_path / "wandb" / "offline-run-20261130_120000-abcdef01"
    folder.mkdir(parents=True)
    rows = [wandb_log.history({"_step": str(i), "train/loss": str(2 + 1 / (i + 1))}, i + 1, i) for i in range(500)]
    content = wandb_log.log([wandb_log.run("abcdef01", {"lr": "0.1"}), *rows])
    (folder / "run-abcdef01.wandb").write_bytes(content[:-25])
    done = cli("sweep", "wandb-local:wandb", "--json", "-")
    assert (done.returncode, json.loads(done.stdout)["series"]) == (0, {"train/loss": "loss"})


def test_a_closed_pipe_is_no_error(mixed: str, tmp_path: Path) -> None:
    """`runtriage sweep … | head -1` ends in silence."""
    command = f"{sys.executable} -m runtriage sweep {mixed} --json - | head -c 10"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, "Error" in done.stderr, "Traceback" in done.stderr) == ('{"schema":', False, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [["--version"], ["sweep", DEMO, "--json", "-"], ["sweep", DEMO]], ids=str)
def test_a_full_disk_is_said(words: list[str]) -> None:
    """Where the output cannot be written, one line says so and the exit code is not 0."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "runtriage", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            timeout=60,
        )
    said = done.stderr.splitlines()
    assert (done.returncode, len(said), "the output cannot be written" in said[0]) == (2, 1, True)


def test_a_digest_goes_to_stdout_alone(cli: Cli, tmp_path: Path) -> None:
    """``--digest -`` prints Markdown and nothing else; the counts are said on stderr, and two files do not share it."""
    (tmp_path / "runs").mkdir()
    done = cli("sweep", "files:runs", "--digest", "-")
    assert (done.returncode, done.stdout) == (0, "**runtriage: none of 0 runs needs a look**.\n")
    assert "nothing was judged" in done.stderr
    both = cli("sweep", "files:runs", "--digest", "-", "--json", "-")
    assert (both.returncode, both.stdout) == (2, "")

"""A sweep that is killed or partly fails, and what `--resume` makes of it: real processes, killed with SIGKILL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtriage.model.history import RunHistory
from runtriage.testing.synth import CONFIG, faulty, healthy

GROUPS = 6
MEMBERS = 3
# The program itself, which writes down each run that it reads, and is killed in front of one.
PROGRAM = """
import os, signal, sys
from runtriage.cli.app import main
from runtriage.trackers.files import FilesSource
read = FilesSource.read
def noted(self, info):
    if info.id == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)
    with open("reads", "a") as file:
        file.write(info.id + "\\n")
    return read(self, info)
FilesSource.read = noted
main(sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path: Path, runs: Callable[[RunHistory], Path]) -> Path:
    """Write six cohorts of three runs, two of which diverge, and two runs without a config."""
    for g in range(GROUPS):
        config = {**CONFIG, "width": g}
        for m in range(MEMBERS):
            run_id = f"g{g}m{m}"
            bad = (g, m) in {(1, 0), (4, 2)}
            runs(
                faulty("divergence", 7 * g + m, run_id=run_id, steps=150, config=config) if bad
                else healthy(7 * g + m, run_id=run_id, steps=150, config=config)
            )
    for m in range(2):
        runs(healthy(90 + m, run_id=f"z{m}", steps=150, config={}))
    return tmp_path


def sweep(folder: Path, *words: str, die_at: str = "") -> subprocess.CompletedProcess[str]:
    """Sweep in a process of its own."""
    (folder / "reads").unlink(missing_ok=True)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "sweep", "files:runs", "--readers", "1", *words], cwd=folder,
        env={**os.environ, "DIE_AT": die_at}, capture_output=True, text=True, check=False, timeout=300,
    )


def reads(folder: Path) -> list[str]:
    return sorted((folder / "reads").read_text().split()) if (folder / "reads").exists() else []


def journals() -> list[Path]:
    return sorted(Path(os.environ["XDG_STATE_HOME"]).glob("runtriage/journals/*.jsonl"))


def of(*groups: int) -> list[str]:
    return [f"g{g}m{m}" for g in groups for m in range(MEMBERS)]


def test_a_killed_sweep_goes_on_and_says_the_same(folder: Path) -> None:
    """Table, counts, JSON and page equal those of an undisturbed sweep byte for byte; the first groups are not read."""
    files = ("--json", "out.jsonl", "--html", "out.html")
    whole = sweep(folder, *files)
    wanted = [(folder / name).read_bytes() for name in files[1::2]]
    for name in files[1::2]:
        (folder / name).unlink()
    killed = sweep(folder, *files, die_at="g4m0")
    assert (killed.returncode, reads(folder)[-1] <= "g3m2") == (-signal.SIGKILL, True)
    assert not (folder / "out.jsonl").exists()
    resumed = sweep(folder, *files, "--resume")
    assert (resumed.returncode, resumed.stdout) == (0, whole.stdout)
    assert [(folder / name).read_bytes() for name in files[1::2]] == wanted
    assert not set(of(0, 1, 2)) & set(reads(folder))
    assert set(of(4, 5)) | {"z0", "z1"} <= set(reads(folder))
    assert "going on: " in resumed.stderr
    assert journals() == []


def test_it_may_be_killed_again_and_again(folder: Path) -> None:
    """Killed at four places one after the other, the sweep still ends with the bytes of an undisturbed one."""
    whole = sweep(folder, "--json", "-")
    for i, place in enumerate(("g1m2", "g2m1", "g4m2", "z1")):
        assert sweep(folder, "--json", "-", *(["--resume"] if i else []), die_at=place).returncode == -signal.SIGKILL
    assert sweep(folder, "--json", "-", "--resume").stdout == whole.stdout


def test_a_line_torn_by_the_kill_costs_its_cohort(folder: Path) -> None:
    """Where the newest line of the journal is half there, what it belongs to is read again."""
    whole = sweep(folder, "--json", "-")
    sweep(folder, "--json", "-", die_at="g4m0")
    (journal,) = journals()
    journal.write_bytes(journal.read_bytes()[:-40])
    assert sweep(folder, "--json", "-", "--resume").stdout == whole.stdout
    assert set(of(3)) <= set(reads(folder))
    assert not set(of(0, 1)) & set(reads(folder))


def test_a_partly_failed_sweep_goes_on(folder: Path) -> None:
    """After exit code 4 only the failed run and its siblings are read, once the fault is mended."""
    whole = sweep(folder, "--json", "-")
    bad = folder / "runs/g2m1/history.jsonl"
    content = bad.read_bytes()
    stamp = bad.stat()
    bad.chmod(0)
    if os.access(bad, os.R_OK):  # root reads everything
        bad.unlink()
        bad.symlink_to("/proc/self/mem")
    partly = sweep(folder, "--json", "-")
    assert (partly.returncode, "1 failed" in partly.stderr, "--resume" in partly.stderr) == (4, True, True)
    bad.unlink()
    bad.write_bytes(content)
    os.utime(bad, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    resumed = sweep(folder, "--json", "-", "--resume")
    assert (resumed.returncode, resumed.stdout) == (0, whole.stdout)
    assert reads(folder) == of(2)


def test_without_resume_everything_is_read(folder: Path) -> None:
    """A journal that lies there is nobody's who did not ask for it."""
    sweep(folder, die_at="g4m0")
    sweep(folder)
    assert len(reads(folder)) == GROUPS * MEMBERS + 2


def test_nothing_to_resume_is_said(folder: Path) -> None:
    """Where no sweep was cut short every run is read, and one line says so."""
    done = sweep(folder, "--resume")
    assert (done.returncode, "every run is read" in done.stderr, len(reads(folder))) == (0, True, 20)


@pytest.mark.parametrize("words", [["--limit", "30"], ["--budget", "0.02"], ["--only", "finished"]], ids=" ".join)
def test_another_question_is_not_gone_on_with(folder: Path, words: list[str]) -> None:
    """Other settings or another selection are another sweep: nothing of the killed one is used."""
    sweep(folder, die_at="g4m0")
    sweep(folder, *words, "--resume")
    assert len(reads(folder)) == GROUPS * MEMBERS + 2


def test_what_changed_after_the_kill_is_read_again(folder: Path) -> None:
    """More history of a run that was done has its cohort read again, and no other."""
    sweep(folder, die_at="g4m0")
    path = folder / "runs/g0m1/history.jsonl"
    path.write_text(path.read_text() + "\n" + json.dumps({"step": 150, "train/loss": 1.0}))
    sweep(folder, "--resume")
    assert (set(of(0)) <= set(reads(folder)), set(of(1, 2)) & set(reads(folder))) == (True, set())


def test_a_home_that_cannot_be_written_costs_only_the_journal(folder: Path) -> None:
    """Without a folder for state a sweep does all its work; --resume says what is missing."""
    environ = {**os.environ, "XDG_STATE_HOME": "/proc/nowhere"}
    command = [sys.executable, "-m", "runtriage", "sweep", "files:runs"]
    found = [
        subprocess.run([*command, *more], cwd=folder, env=environ, capture_output=True, text=True, check=False)
        for more in ([], ["--resume"])
    ]
    assert [done.returncode for done in found] == [0, 2]
    assert ["folder for state" in done.stderr for done in found] == [False, True]

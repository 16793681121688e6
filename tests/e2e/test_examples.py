"""Every example runs, and says what it is there to say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtriage.settings import load

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DEMO = f"files:{ROOT}/src/runtriage/demo_data/runs"
TESTED = {"01_judge_a_folder.py", "02_gate_a_run.py", "03_read_reports.py", "nightly.sh", "runtriage.toml"}


def script(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run an example with this interpreter."""
    command = [sys.executable, str(EXAMPLES / name), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_every_example_is_run_somewhere() -> None:
    """An example without a test would rot; the one for W&B is run beside its stand-in server."""
    found = {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".sh", ".toml"}}
    assert found - {"wandb_sweep.py"} == TESTED


def test_a_folder_is_judged_from_python() -> None:
    """The first example flags the two dead runs and offers a check for each."""
    lines = script("01_judge_a_folder.py").stdout.splitlines()
    flagged = [line.split()[1] for line in lines if line.startswith("suspicious")]
    assert sorted(flagged) == ["librispeech-conformer-seed0", "librispeech-conformer-seed2"]


@pytest.mark.parametrize(("candidate", "code"), [("ap_confln_base_s0", 1), ("ap_confln_base_s4", 0)])
def test_a_gate_lets_the_healthy_run_pass(candidate: str, code: int) -> None:
    """The second example refuses the dead run and passes the other."""
    done = script("02_gate_a_run.py", candidate)
    assert (done.returncode, done.stdout.startswith(f"{candidate}: ")) == (code, True), done.stderr


def test_reports_are_counted_without_the_package(cli: Cli, tmp_path: Path) -> None:
    """The third example reads what a sweep wrote."""
    cli("sweep", DEMO, "--json", "reports.jsonl")
    done = script("03_read_reports.py", tmp_path / "reports.jsonl")
    counted, found = "2 suspicious" in done.stdout, "seed0, librispeech-conformer-seed2" in done.stdout
    assert (done.returncode, counted, found) == (0, True, True), done.stderr


def test_the_nightly_script_speaks_only_of_trouble(tmp_path: Path) -> None:
    """It hands on the exit code of the sweep, with its words if that is not 0."""
    (tmp_path / "runtriage").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runtriage "$@"\n')
    (tmp_path / "runtriage").chmod(0o755)
    done = subprocess.run(
        [str(EXAMPLES / "nightly.sh"), "files:nowhere", ""], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert (done.returncode, "no such folder" in done.stdout) == (3, True)


def test_the_settings_file_is_valid(tmp_path: Path) -> None:
    """Every setting of the example exists, and it shows all of them."""
    shutil.copy(EXAMPLES / "runtriage.toml", tmp_path)
    lines = load(tmp_path, {}).lines()
    assert [line for line in lines if line.endswith("(default)")] == []

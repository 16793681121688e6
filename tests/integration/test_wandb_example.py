"""examples/wandb_sweep.py runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("wandb")

from wandb_server.session import stand_in

pytestmark = pytest.mark.integration


def test_example_prints_a_verdict_a_run(repo_root: Path) -> None:
    """The example prints one line for each run of a project."""
    with stand_in() as server:
        for name in ("a", "b", "c"):
            rows = [{"train/loss": 3 / (i + 1)} for i in range(200)]
            server.world.add_run("team", "p", name, rows=rows, exported=True)
        done = subprocess.run(
            [sys.executable, repo_root / "examples/wandb_sweep.py", "wandb://team/p"],
            capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["'c'", "'b'", "'a'"]

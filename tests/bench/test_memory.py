"""Peak memory of a sweep is flat in the number of runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]
FEW, MANY, POINTS, COHORT = 500, 2000, 10_000, 10
MOST = 1.25
"""Times the peak of few runs that many may take; what is kept of a run is a row of a table."""

# The program itself, which says at its end how much memory it had at most (Linux counts in kB).
PROGRAM = """
import resource, sys
from runtriage.cli.app import main
try:
    main(sys.argv[1:])
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def write(folder: Path, first: int, last: int) -> None:
    """Write runs of three metrics, ten a config; one in a hundred diverges."""
    steps = np.arange(POINTS)
    for number in range(first, last):
        chance = np.random.default_rng(number)
        loss = 2.0 + 3.0 * np.exp(-steps / 2000) + 0.05 * chance.standard_normal(POINTS)
        norm = 1.0 + 0.1 * chance.standard_normal(POINTS)
        if number % 100 == 7:
            loss[6000:] += np.linspace(0, 4, POINTS - 6000)
        place = folder / f"r{number:05d}"
        place.mkdir(parents=True)
        facts = {"id": place.name, "name": place.name, "state": "finished", "config": {"width": number // COHORT}}
        (place / "run.json").write_text(json.dumps(facts))
        table = {"step": steps, "train/loss": loss, "grad_norm": norm, "lr": np.full(POINTS, 1e-3)}
        parquet.write_table(pa.table(table), place / "history.parquet")


def peak(folder: Path, runs: int) -> float:
    """Sweep so many runs with all files that a sweep can leave; return the peak in MB."""
    began = time.perf_counter()
    words = ("sweep", "files:runs", "--limit", str(runs), "--json", "out.jsonl", "--html", "out.html")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=folder, env={**os.environ, "XDG_STATE_HOME": str(folder)},
        capture_output=True, text=True, check=True,
    )
    assert f"{runs} runs: " in done.stdout
    found = float(done.stderr.rpartition("peak ")[2]) / 1000
    print(f"\n{runs} runs of {POINTS} points: {found:.0f} MB, {time.perf_counter() - began:.0f} s")  # noqa: T201  a bench
    return found


def test_peak_memory_is_flat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep over 2,000 runs of 10,000 points takes about the memory of one over 500."""
    write(tmp_path / "runs", 0, MANY)
    with capsys.disabled():
        few, many = (peak(tmp_path, runs) for runs in (FEW, MANY))
    assert many < MOST * few

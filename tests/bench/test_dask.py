"""What a second worker of a Dask cluster is worth."""

from __future__ import annotations

import json
import statistics
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from runtriage.pipeline import Params
from runtriage.registry import open_source
from runtriage.sweep.elsewhere import CohortJob, do, lost
from runtriage.sweep.executors.dask import DaskExecutor
from runtriage.sweep.run import sweep_elsewhere
from runtriage.sweep.select import group
from runtriage.testing.synth import healthy

pytestmark = pytest.mark.bench
RUNS, STEPS, COHORT, PAIRS = 200, 5000, 10, 3

LEAST = 1.3
"""Median gain below which the second worker does not work; with a core for each it is about 2."""


def write(folder: Path) -> None:
    """Write runs of three metrics as Parquet, ten a config."""
    for number in range(RUNS):
        config = {"lr": 1e-3, "group": number // COHORT}
        made = healthy(number, steps=STEPS, config=config)
        place = folder / f"r{number:05d}"
        place.mkdir()
        facts = {"id": place.name, "name": place.name, "state": "finished", "config": config}
        (place / "run.json").write_text(json.dumps(facts))
        columns = {name: track.value for name, track in made.tracks.items()}
        table = pa.table({"step": next(iter(made.tracks.values())).step, **columns})
        parquet.write_table(table, place / "history.parquet")


def seconds(workers: int, address: str, name: str) -> float:
    """Return the wall time of a sweep by warm workers."""
    with closing(open_source(address)) as source:
        groups = group(list(source.list_runs()))
    job = CohortJob(sweep=name, address=address, params=Params())
    with closing(DaskExecutor(workers=workers, lost=lost)) as there:
        list(there.map(do, map(job.of, groups[: 2 * workers])))
        start = time.perf_counter()
        outcomes = list(sweep_elsewhere(map(job.of, groups), groups, executor=there, do=do))
        took = time.perf_counter() - start
    assert not [outcome.failure for outcome in outcomes if outcome.failure]
    return took


def test_a_second_worker_is_worth_its_core(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers judge 200 runs of 5,000 points faster than one; three pairs, and their median."""
    write(tmp_path)
    gains = []
    for pair in range(PAIRS):
        one, two = (seconds(count, f"files:{tmp_path}", f"{pair}-{count}") for count in (1, 2))
        gains.append(one / two)
        with capsys.disabled():
            print(f"\n{RUNS} runs: one worker {one:.2f} s, two {two:.2f} s, {one / two:.2f} x")  # noqa: T201  a bench
    assert statistics.median(gains) > LEAST

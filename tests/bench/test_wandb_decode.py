"""How fast ``.wandb`` files are read, as a ratio to the plain loop over protobuf fields in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtriage.trackers.wandb.log import Log
from tests.oracles.wandb_log import history, log, rows_of

pytestmark = pytest.mark.bench
ROWS = 100_000
KEYS = ("train/loss", "grad_norm", "lr", "acc", "val/x")


def cpu_s(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of the faster of two tries."""
    tries = []
    for _ in range(2):
        start = time.process_time()
        work()
        tries.append(time.process_time() - start)
    return min(tries)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of 100 000 rows of five metrics and three of W&B's own, as the client writes them."""

    def row(i: int) -> bytes:
        texts = {(key,): repr(0.123456789012345 + i * (k + 1) * 1e-6) for k, key in enumerate(KEYS)}
        own = {("_step",): str(i), ("_timestamp",): repr(1.7e9 + i * 0.1), ("_runtime",): repr(i * 0.1)}
        return history(texts | own, i, i)

    path = tmp_path_factory.mktemp("bench") / "run-b.wandb"
    path.write_bytes(log(row(i) for i in range(ROWS)))
    return path


def test_by_column_beats_the_plain_loop(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reading by column takes less than a third of the CPU time of reading row by row."""
    ours = cpu_s(lambda: Log(path).history())
    plain = cpu_s(lambda: rows_of(path.read_bytes()))
    with capsys.disabled():
        said = f"{ROWS / ours:,.0f} rows/CPU s by column, {ROWS / plain:,.0f} row by row, ratio {plain / ours:.1f}"
        print(f"\n.wandb: {said}")  # noqa: T201 - what a bench is for
    assert plain / ours > 3

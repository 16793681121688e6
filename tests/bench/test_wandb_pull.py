"""How fast histories come out of W&B: the real client against the stand-in server in a process of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("wandb")

from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.bench
TESTS = Path(__file__).resolve().parent.parent
LATENCY, THREADS, RUNS, REQUESTS = 0.15, 8, 24, 3


@contextmanager
def served(kind: str, runs: int, rows: int, latency: float) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "wandb_server", kind, str(runs), str(rows), str(latency)],
        cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        os.environ.update(WANDB_BASE_URL=process.stdout.readline().strip(), WANDB_API_KEY="k" * 40, WANDB_SILENT="true")
        os.environ.update(WANDB_MODE="online", WANDB_ERROR_REPORTING="false")
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(20)


def core_cpu() -> float:
    """Return the CPU seconds of the client's service process so far (Linux)."""
    total = 0.0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = entry.read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if "wandb-core" in head and int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def test_exported(capsys: pytest.CaptureFixture[str]) -> None:
    """Exported histories come at three million rows a CPU second or more, W&B's service process included."""
    rows = 100_000
    with served("exported", RUNS, rows, 0.0):
        source = WandbSource("wandb://team/p")
        infos = list(source.list_runs())
        source.read(infos[0])
        before = own_cpu() + core_cpu()
        for info in infos:
            assert len(source.read(info).tracks["train/loss"].step) == rows
        used = own_cpu() + core_cpu() - before
    with capsys.disabled():
        print(f"\nexported: {RUNS * rows / used / 1e6:.2f} M rows per CPU second ({used:.2f} s)")  # noqa: T201
    assert RUNS * rows / used >= 3e6


def test_live(capsys: pytest.CaptureFixture[str]) -> None:
    """Live histories cost no more than a tenth above what three requests a run, eight at a time, take at best.

    Three is what the client itself needs for a history of one page: facts, exports, rows. We send one, so there is
    also a lower floor, which the decoding of 3,000 rows a run on the machine at hand keeps us from.
    """
    with served("live", RUNS, 3000, LATENCY) as process:
        source = WandbSource("wandb://team/p")
        infos = list(source.list_runs())
        source.read(infos[0])
        before = requests(process)
        started = time.perf_counter()
        with ThreadPoolExecutor(RUNS) as pool:
            list(pool.map(source.read, infos))
        took = time.perf_counter() - started
        sent = requests(process) - before
        floor, lower = RUNS * REQUESTS * LATENCY / THREADS, sent * LATENCY / THREADS
        started = time.perf_counter()
        for info in infos:
            list(source.client.run(info.id).scan_history(use_cache=False))
        serial = time.perf_counter() - started
    with capsys.disabled():
        print(  # noqa: T201
            f"\nlive: {took:.2f} s, floor {floor:.2f} s ({took / floor:.2f}x); {sent} requests: {lower:.2f} s "
            f"({took / lower:.2f}x); serial scan_history {serial / took:.1f}x"
        )
    assert took <= 1.1 * floor
    assert sent == RUNS


def requests(process: subprocess.Popen[str]) -> int:
    """Return how many requests the server has seen, telemetry of the client aside."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("counts\n")
    process.stdin.flush()
    counts: dict[str, int] = eval(process.stdout.readline())  # noqa: S307
    return sum(count for name, count in counts.items() if not name.startswith("/"))

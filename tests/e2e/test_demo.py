"""The demo, as a new user starts it: a server of its own, verdicts in it, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
COMMAND = [sys.executable, "-u", "-m", "runtriage", "demo"]


@dataclass(frozen=True)
class Finished:
    """A demo that ended by itself."""

    done: subprocess.CompletedProcess[str]
    left: list[str]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Run the demo once."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        COMMAND, env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True, check=False, timeout=600
    )
    return Finished(done, left_in(folder))


def left_in(folder: Path) -> list[str]:
    """Return the demo's folders that are still there."""
    return [path.name for path in folder.iterdir() if path.name.startswith("runtriage-demo")]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the demo with --keep; end it after the test."""
    process = subprocess.Popen(
        [*COMMAND, "--keep", "--lang", "zh"], env={**os.environ, "TMPDIR": str(tmp_path)}, text=True, cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """Return what was printed up to the line with a word in it."""
    seen = ""
    for line in process.stdout or ():
        seen += line
        if word in line:
            break
    return seen


def test_the_demo_flags_the_two_dead_runs(finished: Finished) -> None:
    """It ends by itself with 0, having found the two runs that learned nothing."""
    flagged = re.findall(r"^suspicious +librispeech-conformer-seed(\d)", finished.done.stdout, re.MULTILINE)
    assert (finished.done.returncode, sorted(flagged)) == (0, ["0", "2"]), finished.done.stderr


def test_the_demo_leaves_nothing_behind(finished: Finished) -> None:
    """Its folder is gone when it has ended."""
    assert finished.left == []


def test_the_addresses_printed_are_served(kept: subprocess.Popen[str]) -> None:
    """While it is kept, the page printed is there and the run's verdict can be read from the server.

    The verdict is told in the language asked for.
    """
    printed = read_until(kept, "until Ctrl-C")
    assert ("可疑" in printed, "--write all --lang zh" in printed) == (True, True)
    found = re.search(r"(http://127\.0\.0\.1:\d+)/#/experiments/\d+/runs/(\w+)", printed)
    assert found is not None, printed
    query = urllib.parse.urlencode({"run_id": found[2]})
    with urllib.request.urlopen(f"{found[1]}/api/2.0/mlflow/runs/get?{query}", timeout=30) as response:  # noqa: S310  loopback
        tags = {tag["key"]: tag["value"] for tag in json.load(response)["run"]["data"]["tags"]}
    assert tags["runtriage.status"] == "suspicious"


def test_ctrl_c_ends_the_server_too(kept: subprocess.Popen[str], tmp_path: Path) -> None:
    """An interrupt leaves neither the server nor its folder."""
    base = re.search(r"http://127\.0\.0\.1:\d+", read_until(kept, "until Ctrl-C"))
    assert base is not None
    kept.send_signal(signal.SIGINT)
    kept.communicate(timeout=30)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(base[0], timeout=5)  # noqa: S310  loopback
    assert left_in(tmp_path) == []

"""The command line as a person starts it: a new process, its streams and its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from runtriage.model.history import RunHistory

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Let children be interrupted even where the tests run in the background, whose children ignore it otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Return a way to run the command line in an empty folder; a traceback on a stream fails the test at once."""

    def run(
        *words: str | Path, environ: Mapping[str, str] | None = None, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "runtriage", *map(str, words)]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **(environ or {})}, capture_output=True, text=True, check=False,
            timeout=seconds,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[RunHistory], Path]:
    """Return a way to write a history as a folder of its own below ``runs``."""

    def write(history: RunHistory) -> Path:
        folder = tmp_path / "runs" / history.info.id
        folder.mkdir(parents=True)
        facts = {"id": history.info.id, "name": history.info.name, "state": str(history.info.state)}
        (folder / "run.json").write_text(json.dumps({**facts, "config": dict(history.info.config)}))
        rows: dict[int, dict[str, float]] = {}
        for name, track in history.tracks.items():
            for step, value in zip(track.step.tolist(), track.value.tolist(), strict=True):
                rows.setdefault(step, {})[name] = value
        lines = (json.dumps({"step": step, **row}) for step, row in rows.items())
        (folder / "history.jsonl").write_text("\n".join(lines))
        return folder

    return write

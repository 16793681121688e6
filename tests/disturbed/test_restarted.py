"""A sweep of a real MLflow server that is killed in the middle, and comes back on its port and with its store."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fault_proxy.command import Done, command
from fault_proxy.mlflow_project import MlflowProject, differences

from runtriage.trackers.mlflow import source as source_module
from runtriage.trackers.mlflow.client import MlflowClient

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
MOMENTS = [
    ("runs/search", 0, "out"), ("metrics/get-history", 5, "in"), ("metrics/get-history", 9, "out"),
    ("PUT panel.svg", 0, "out"), ("PUT panel.html", 0, "in"), ("runs/log-batch", 2, "out"), ("runs/log-batch", 3, "in"),
    ("experiments/set-experiment-tag", 1, "out"),
]  # fmt: skip
"""Request, how many of its kind go well before, and whether the server dies before or after carrying it out."""


class Restart:
    """Kills the server at a request, and starts it again at once."""

    def __init__(self, project: MlflowProject, name: str, skip: int, moment: str) -> None:
        self._server, self._at, self._left = project.server, (name, moment), skip
        self._lock = threading.Lock()
        self.coming: threading.Thread | None = None

    def __call__(self, name: str, moment: str) -> bool:
        """Take note of a request; return whether it is lost with the server."""
        with self._lock:
            if self.coming is not None or (name, moment) != self._at:
                return False
            self._left -= 1
            if self._left >= 0:
                return False
            self._server.kill()
            self.coming = threading.Thread(target=self._server.begin)
            self.coming.start()
            return True


@pytest.fixture
def bare(project: MlflowProject) -> Iterator[MlflowProject]:
    """Start from marks none of which is ours."""
    project.restore()
    yield project
    project.proxy.clear()


def patient(monkeypatch: pytest.MonkeyPatch, *, retries: int) -> None:
    """Let the client ask so often, each time half a second, then one, two, four ... after the one before."""
    monkeypatch.setattr(source_module, "MlflowClient", partial(MlflowClient, retries=retries, backoff=0.5))


def swept(project: MlflowProject, folder: Path) -> tuple[Done, list[dict[str, Any]]]:
    """Sweep and write everything; return what was said, and the reports by run."""
    path = folder / "reports.jsonl"
    done = command("sweep", project.address, "--write", "all", "--cache", "off", "--json", str(path))
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return done, sorted(map(json.loads, lines), key=lambda report: str(report["run"]["id"]))


@pytest.mark.parametrize(
    ("name", "skip", "moment", "retries"),
    [
        pytest.param(*at, retries, marks=[] if at == MOMENTS[5] and retries else [pytest.mark.statistical])
        for at in MOMENTS
        for retries in (1, 8)
    ],
)
def test_a_server_that_is_restarted(
    bare: MlflowProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, skip: int, moment: str,
    retries: int,
) -> None:
    """A patient sweep does not notice; one that loses patience says so, and the next one makes all of it good."""
    project, before = bare, bare.foreign()
    calm, reports = swept(project, tmp_path)
    assert (calm.code, calm.err) == (0, "")
    final = project.state()
    project.restore()
    patient(monkeypatch, retries=retries)
    restart = Restart(project, name, skip, moment)
    project.proxy.on_request = restart
    done, _ = swept(project, tmp_path)
    project.proxy.on_request = None
    assert restart.coming is not None
    restart.coming.join()
    project.proxy.settle()
    assert differences(project.foreign(), before) == []
    lines = done.err.splitlines()
    assert (len(set(lines)), "Traceback" in done.err) == (len(lines), False)
    assert all(line.startswith("runtriage: ") for line in lines)
    assert done.code == 0 if retries > 1 else (done.code in {3, 4} and lines), done
    if done.code:
        done, again = swept(project, tmp_path)
        assert (done.code, done.err, again) == (0, "", reports)
    assert differences(project.state(), final) == []

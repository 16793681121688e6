"""`sweep --rules --notify` on a real MLflow server, delivered to a web server of our own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mlflow_server.real import RealServer

from runtriage.model.rule import RULES_SCHEMA, AlertRule, NonFinite, RuleSet
from runtriage.outputs import tags
from runtriage.rules.codec import encode_rules

pytestmark = pytest.mark.integration
SECRET = "s3cretT0ken"
RULES = (AlertRule(id="nan", about="The loss is NaN.", role="loss", condition=NonFinite()),)


class Hook(BaseHTTPRequestHandler):
    """Takes JSON, or answers with an error."""

    received: list[dict[str, Any]]
    answer: list[int]

    def do_POST(self) -> None:
        """Keep what comes."""
        self.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.answer[0])
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]], list[int]]]:
    """Run a receiver; return its Apprise URL, what it got, and the status it answers with."""
    received: list[dict[str, Any]] = []
    answer = [200]
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("_Hook", (Hook,), {"received": received, "answer": answer}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"json://me:{SECRET}@127.0.0.1:{server.server_address[1]}/hook", received, answer
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_sweep_tells_once_and_makes_up_for_a_failed_delivery(
    mlflow_server: RealServer, tmp_path: Path, hook: tuple[str, list[dict[str, Any]], list[int]]
) -> None:
    """A dry run, a refused delivery, one that arrives, one with nothing new: all succeed, no secret."""
    url, received, answer = hook
    name = "sweep rules"
    run = mlflow_server.run(mlflow_server.experiment(name), "live")
    mlflow_server.log(run, "loss", [(i, 2.0 - i / 100, 1_700_000_000_000 + i) for i in range(60)])
    mlflow_server.log(run, "loss", [(i, float("nan"), 1_700_000_000_000 + i) for i in range(60, 65)])
    (tmp_path / "rules.yaml").write_bytes(encode_rules(RuleSet(schema=RULES_SCHEMA, rules=RULES)))

    def swept(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "runtriage", "sweep", mlflow_server.address(name), "--rules", "rules.yaml"]
        return subprocess.run(
            [*command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    dry = swept("--dry-run")
    assert (dry.returncode, received, tags.ALERTS in mlflow_server.tags(run)) == (0, [], False)
    assert "1 messages would be sent" in dry.stdout
    answer[0] = 500
    failed = swept("--notify", url)
    answer[0] = 200
    received.clear()
    told, again = swept("--notify", url, "--write", "tags"), swept("--notify", url, "--write", "tags")
    assert [done.returncode for done in (failed, told, again)] == [0, 0, 0]
    assert [message["title"] for message in received] == ["live: The loss is NaN"]
    assert {tags.ALERTS, tags.STATUS} <= mlflow_server.tags(run).keys()
    everything = [done.stdout + done.stderr for done in (dry, failed, told, again)]
    assert "did not take" in everything[1]
    assert not any(SECRET in text for text in everything)
    nobody = swept()
    assert (nobody.returncode, "nobody to tell" in nobody.stderr) == (2, True)


# The program itself, which is killed in front of one run.
KILLED = """
import os, signal, sys
from runtriage.cli.app import main
from runtriage.trackers.mlflow.source import MlflowSource
read = MlflowSource.read
def noted(self, info):
    if info.name == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)
    return read(self, info)
MlflowSource.read = noted
main(sys.argv[1:])
"""


def test_a_sweep_that_goes_on_tells_of_what_was_judged_before(
    mlflow_server: RealServer, tmp_path: Path, hook: tuple[str, list[dict[str, Any]], list[int]]
) -> None:
    """The kill came before anybody was told: --resume tells of the run that was judged by then, once."""
    url, received, _ = hook
    experiment = mlflow_server.experiment(name := "sweep rules resumed")
    for number in range(5, -1, -1):  # listed newest first, each a config of its own
        run = mlflow_server.run(experiment, f"r{number}", start=1_700_000_000_000 - number)
        mlflow_server.params(run, {"width": str(number)})
        mlflow_server.log(run, "loss", [(i, 2.0 - i / 100, 1_700_000_000_000 + i) for i in range(60)])
        if number == 0:
            mlflow_server.log(run, "loss", [(60, float("nan"), 1_700_000_000_060)])
    (tmp_path / "rules.yaml").write_bytes(encode_rules(RuleSet(schema=RULES_SCHEMA, rules=RULES)))
    (tmp_path / "runtriage.toml").write_text(f'[sweep]\nrules = "rules.yaml"\nnotify = ["{url}"]\nreaders = 1\n')

    def swept(*words: str, die_at: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", KILLED, "sweep", mlflow_server.address(name), "--cache", "off", *words],
            cwd=tmp_path, env={**os.environ, "DIE_AT": die_at}, capture_output=True, text=True, timeout=120,
            check=False,
        )

    killed = swept(die_at="r5")
    assert (killed.returncode, received) == (-signal.SIGKILL, [])
    resumed = swept("--resume")
    assert (resumed.returncode, "going on: " in resumed.stderr, SECRET in resumed.stderr) == (0, True, False)
    assert [message["title"] for message in received] == ["r0: The loss is NaN"]
    assert "alerts: 1 messages sent, 6 runs looked at" in resumed.stdout
    assert (swept().returncode, len(received)) == (0, 1)

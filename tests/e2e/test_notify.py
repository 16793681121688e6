"""`rules notify` delivers through Apprise to a web server of our own; secrets stay out of what it prints."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtriage.model.history import RunHistory
from runtriage.model.rule import RULES_SCHEMA, AlertRule, NonFinite, RuleSet
from runtriage.rules.codec import encode_rules
from runtriage.testing.synth import faulty

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
SECRET = "s3cretT0ken"


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


@pytest.fixture
def source(runs: Callable[[RunHistory], Path], tmp_path: Path) -> str:
    """Write a running run whose loss is NaN, and a rule for it."""
    folder = runs(faulty("nan", run_id="live"))
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "state": "running"}))
    rule = AlertRule(id="nan", about="The loss is NaN.", role="loss", condition=NonFinite())
    (tmp_path / "rules.yaml").write_bytes(encode_rules(RuleSet(schema=RULES_SCHEMA, rules=(rule,))))
    assert np.isnan(json.loads((folder / "history.jsonl").read_text().splitlines()[-1])["train/loss"])
    return "files:runs"


def test_a_message_is_delivered_once(
    cli: Cli, source: str, hook: tuple[str, list[dict[str, Any]], list[int]]
) -> None:
    """Two rounds, one delivery, in three parts."""
    url, received, _ = hook
    words = ("rules", "notify", "rules.yaml", source, "--state", "told.json")
    codes = [cli(*words, environ={"RUNTRIAGE_NOTIFY_URLS": url}).returncode for _ in range(2)]
    (message,) = received
    assert (codes, message["title"], message["type"]) == ([0, 0], "live: The loss is NaN", "warning")
    assert all(part in message["message"] for part in ("Seen", "Likely causes", "Check"))


def test_a_failed_delivery_is_said_without_secrets_and_made_up_for(
    cli: Cli, source: str, hook: tuple[str, list[dict[str, Any]], list[int]]
) -> None:
    """While the receiver answers 500 the exit code is 4; once it works the message arrives."""
    url, received, answer = hook
    words = ("rules", "notify", "rules.yaml", source, "--state", "told.json", "--to", url)
    answer[0] = 500
    failed = cli(*words)
    answer[0] = 200
    received.clear()
    worked = cli(*words)
    assert (failed.returncode, worked.returncode, len(received)) == (4, 0, 1)
    assert "address 1 (json) did not take" in failed.stderr
    assert SECRET not in failed.stdout + failed.stderr + worked.stdout + worked.stderr


def test_a_dry_run_prints_what_would_be_sent(cli: Cli, source: str) -> None:
    """No address is needed to look."""
    done = cli("rules", "notify", "rules.yaml", source, "--state", "told.json", "--dry-run")
    assert "[warning] live: The loss is NaN" in done.stdout
    assert "1 messages would be sent, 1 of 1 runs looked at" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--state", "told.json"), "nobody to tell"),
        (("--to", "json://127.0.0.1"), "--state FILE"),
        (("--state", "told.json", "--to", f"nonsense://{SECRET}"), "address 1 (nonsense)"),
    ],
)
def test_mistakes_end_with_two_and_no_secret(cli: Cli, source: str, words: tuple[str, ...], said: str) -> None:
    """Nobody to tell, nowhere to remember, an unknown way."""
    done = cli("rules", "notify", "rules.yaml", source, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert SECRET not in done.stderr

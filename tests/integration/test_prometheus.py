"""Debian's Prometheus and Alertmanager with what we compile and serve: the whole chain, once, for real."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from demanded import absent
from mlflow_server.real import RealServer

from runtriage.analysis.cohorts import fingerprint
from runtriage.analysis.prepare import prepare
from runtriage.model.rule import RULES_SCHEMA, Above, AlertRule, Knot, NonFinite, OutsideBand, RuleSet, Stalled
from runtriage.model.vocab import Level
from runtriage.outputs.prometheus import Health, RunSample, render_exposition
from runtriage.outputs.prometheus_rules import RULES_FILE, TEST_FILE, render_prometheus
from runtriage.rules.codec import encode_rules
from runtriage.rules.derive import Cohort, derive
from runtriage.rules.recipes import Member
from runtriage.testing.synth import CONFIG, cohort, healthy

pytestmark = pytest.mark.integration
HOSTILE = 'x"} or vector(1) # \\ {{ $value }} {{ template "x" }}\n- alert: Mine\n\x1b[31m&<script>'
PROGRAMS = ("prometheus", "promtool", "prometheus-alertmanager")
PATIENCE = 90.0


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    """Ask for the programs: a person may lack them, the CI may not."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        absent(f"not installed: {', '.join(missing)} (Debian: prometheus, prometheus-alertmanager)")


def promtool(*words: str, folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    command = ["promtool", *words]
    return subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[RuleSet], Path]:
    """Return a way to compile rules into a folder."""
    def write(rules: RuleSet) -> Path:
        for name, content in render_prometheus(rules, "127.0.0.1:9").items():
            (tmp_path / name).write_text(content)
        return tmp_path

    return write


@pytest.fixture(scope="module")
def derived() -> RuleSet:
    """Return rules of a cohort and one of each kind that it has not."""
    runs = cohort(5)
    members = [Member(run=prepare(history), history=history) for history in runs]
    config = fingerprint(runs[0].info.config)
    made = derive([Cohort(config=config, healthy=members)], today=date(2026, 11, 30))
    stalled = AlertRule(id="stalled", about="No point.", role="loss", config=config, condition=Stalled(seconds=600))
    everywhere = AlertRule(id="stalled-all", about="No point.", role="loss", condition=Stalled(seconds=660))
    return RuleSet(schema=RULES_SCHEMA, rules=(*made.rules, stalled, everywhere))


def test_derived_rules_pass_promtool(compiled: Callable[[RuleSet], Path], derived: RuleSet) -> None:
    """``check rules`` and the generated ``test rules`` are green."""
    folder = compiled(derived)
    checked = promtool("check", "rules", RULES_FILE, folder=folder)
    tested = promtool("test", "rules", TEST_FILE, folder=folder)
    assert (checked.returncode, tested.returncode) == (0, 0), checked.stderr + tested.stderr + tested.stdout


def test_generated_cases_notice_a_broken_rule(compiled: Callable[[RuleSet], Path], derived: RuleSet) -> None:
    """The negative control: with one expression that can never hold, ``test rules`` fails."""
    folder = compiled(derived)
    file = folder / RULES_FILE
    file.write_text(file.read_text().replace("== 1", "== 2", 1))
    assert promtool("test", "rules", TEST_FILE, folder=folder).returncode == 1


@pytest.mark.parametrize("where", ["about", "metric", "config"])
def test_hostile_words_pass_promtool_as_words(compiled: Callable[[RuleSet], Path], where: str) -> None:
    """Quotes, braces, templates and line breaks in a rule make no rule of their own, and no template is run."""
    facts: dict[str, Any] = {"id": "a", "about": "A.", "role": "loss", "condition": Above(value=1.0), where: HOSTILE}
    stalled = {**facts, "id": "b", "condition": Stalled(seconds=120)}
    folder = compiled(RuleSet(schema=RULES_SCHEMA, rules=(AlertRule(**facts), AlertRule(**stalled))))
    checked = promtool("check", "rules", RULES_FILE, folder=folder)
    tested = promtool("test", "rules", TEST_FILE, folder=folder)
    assert "SUCCESS: 5 rules found" in checked.stdout
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_a_page_of_hostile_names_passes_promtool(tmp_path: Path) -> None:
    """``check metrics`` parses and lints what the exporter serves."""
    run = RunSample(
        run_id=HOSTILE, name=HOSTILE, config=HOSTILE, running=True, verdict=Level.BROKEN, step=1, last_point=1.0,
        values={"loss": (HOSTILE, float("nan"))}, z={"loss": float("inf")}, firing={"a": True},
    )
    page = render_exposition([run], Health(refreshed=1.0, expires={"a": 2.0}))
    checked = promtool("check", "metrics", folder=tmp_path, text=page)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


class Pager(BaseHTTPRequestHandler):
    """Receives what Alertmanager sends."""

    received: list[dict[str, Any]]

    def do_POST(self) -> None:
        """Keep the alerts."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).received.extend(json.loads(body)["alerts"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def pager() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Run a receiver of notifications; return its port and what it has got."""
    received: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("_Pager", (Pager,), {"received": received}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1], received
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def running(folder: Path, name: str, *command: str) -> Iterator[Callable[[], str]]:
    """Run a program until the block ends; yields a way to read its output so far."""
    log = folder / f"{name}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(command, cwd=folder, stdout=sink, stderr=sink, start_new_session=True)
    try:
        yield lambda: log.read_text(errors="replace")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(15)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  loopback
        return answer.read().decode()


def until(what: str, ready: Callable[[], Any], logs: Callable[[], str]) -> Any:
    """Wait for something to become true and return it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(OSError, urllib.error.URLError):
            if found := ready():
                return found
        time.sleep(0.3)
    return pytest.fail(f"{what} did not happen within {PATIENCE:.0f} s:\n{logs()[-3000:]}")


PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [runtriage_rules.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]}}]}}
scrape_configs: [{{job_name: runtriage, static_configs: [{{targets: ["127.0.0.1:{exporter}"]}}]}}]
"""
ALERTMANAGER = """
route: {{receiver: pager, group_by: [alertname, run], group_wait: 0s, group_interval: 1s}}
receivers: [{{name: pager, webhook_configs: [{{url: "http://127.0.0.1:{pager}/", send_resolved: true}}]}}]
"""


@pytest.mark.timeout(400)
def test_a_nan_in_mlflow_reaches_the_pager(
    mlflow_server: RealServer, tmp_path: Path, pager: tuple[int, list[dict[str, Any]]]
) -> None:
    """MLflow, exporter, Prometheus, Alertmanager, webhook: a run logs NaN, and the right alert comes and goes."""
    port, received = pager
    experiment = mlflow_server.experiment("watched")
    run = mlflow_server.run(experiment, HOSTILE.replace("\n", " "), start=int(time.time() * 1000))
    mlflow_server.params(run, {"lr": "0.1"})
    whole = healthy(1, config=CONFIG).tracks["train/loss"]

    def log(first: int, values: list[float]) -> None:
        now = int(time.time() * 1000)
        mlflow_server.log(run, "train/loss", [(first + i, value, now + i) for i, value in enumerate(values)])

    log(0, whole.value[:50].tolist())
    knots = (Knot(step=0, high=1e9), Knot(step=10_000, high=1e9))
    rules = RuleSet(schema=RULES_SCHEMA, rules=(
        AlertRule(id="loss-nan", about='The "loss" is {{gone}}.', role="loss", condition=NonFinite()),
        AlertRule(id="calm", about="Never.", role="loss", condition=OutsideBand(window=1, knots=knots)),
    ))
    (tmp_path / "rules.yaml").write_bytes(encode_rules(rules))
    exporter, prometheus, alertmanager, mesh = (free_port() for _ in range(4))
    for name, content in render_prometheus(rules, f"127.0.0.1:{exporter}").items():
        (tmp_path / name).write_text(content)
    (tmp_path / "prometheus.yml").write_text(PROMETHEUS.format(alertmanager=alertmanager, exporter=exporter))
    (tmp_path / "alertmanager.yml").write_text(ALERTMANAGER.format(pager=port))
    page = f"http://127.0.0.1:{exporter}/metrics"
    query = f"http://127.0.0.1:{prometheus}/api/v1/query?query=runtriage_run_step"
    with (
        running(
            tmp_path, "exporter", sys.executable, "-m", "runtriage", "serve", mlflow_server.address("watched"),
            "--rules", "rules.yaml", "--port", str(exporter), "--every", "1",
        ) as said,
        running(
            tmp_path, "alertmanager", "prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am",
            f"--web.listen-address=127.0.0.1:{alertmanager}", f"--cluster.listen-address=127.0.0.1:{mesh}",
        ) as am_said,
        running(
            tmp_path, "prometheus", "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
            f"--web.listen-address=127.0.0.1:{prometheus}",
        ) as prom_said,
    ):
        until("the exporter's first page", lambda: "runtriage_rule_firing" in get(page), said)
        until("a scrape", lambda: json.loads(get(query))["data"]["result"], prom_said)
        assert not received
        log(50, [float("nan")] * 3)
        until("the alert", lambda: "firing" in states(received), lambda: am_said() + prom_said())
        log(53, whole.value[53:60].tolist())
        until("its end", lambda: "resolved" in states(received), lambda: am_said() + prom_said())
    mlflow_server.end(run)
    assert {(a["labels"]["alertname"], a["labels"]["run"], a["labels"]["severity"]) for a in received if named(a)} == {
        ("RuntriageLossNan", run, "warning")
    }
    (firing, *_) = (alert for alert in received if alert["labels"]["alertname"] == "RuntriageLossNan")
    assert firing["annotations"]["summary"] == f'The "loss" is {{{{gone}}}}. Run {run}.'


def states(alerts: list[dict[str, Any]]) -> set[str]:
    """Return the states in which the alert of the rule has arrived."""
    return {alert["status"] for alert in alerts if named(alert)}


def named(alert: dict[str, Any]) -> bool:
    """Tell whether an alert is of a rule of ours, not of the verdict or of the exporter itself."""
    return not re.fullmatch(r"Runtriage(Verdict|Blind|RuleExpired)", alert["labels"]["alertname"])

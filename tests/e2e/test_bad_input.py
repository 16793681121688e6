"""Runs that no training should leave behind: each gets a verdict or a reason, and its siblings are judged as ever."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from runtriage.model.history import RunHistory
from runtriage.testing.synth import CONFIG, cohort, healthy

STEPS = range(400)
LOSS = healthy(99).tracks["train/loss"].value.tolist()
BIG = 2**63


def csv(rows: Iterable[tuple[object, object]], head: str = "step,train/loss") -> str:
    """Return rows as a table."""
    return "\n".join([head, *(f"{step},{value}" for step, value in rows)])


def jsonl(rows: Iterable[tuple[object, object]]) -> str:
    """Return rows as lines of JSON, with the words for what is not finite that Python writes."""
    return "\n".join(json.dumps({"step": step, "train/loss": value}) for step, value in rows)


FINE = {"healthy"}
FLAGGED = {"watch", "suspicious", "broken"}
KNOWN = FINE | FLAGGED
CASES: dict[str, tuple[str, str, set[str]]] = {
    "empty file": ("history.csv", "", {"withheld"}),
    "only a head": ("history.csv", "step,train/loss", {"withheld"}),
    "one point": ("history.csv", csv([(0, 2.0)]), {"withheld"}),
    "constant": ("history.csv", csv((i, 2.0) for i in STEPS), FLAGGED),
    "all NaN": ("history.csv", csv((i, "nan") for i in STEPS), {"broken"}),
    "NaN as JSON": ("history.jsonl", jsonl((i, math.nan) for i in STEPS), {"broken"}),
    "infinite in the end": ("history.csv", csv((i, x if i < 200 else "inf") for i, x in enumerate(LOSS)), {"broken"}),
    "minus infinity once": ("history.csv", csv((i, x if i != 200 else "-inf") for i, x in enumerate(LOSS)), KNOWN),
    "1e300": ("history.csv", csv((i, x if i < 200 else 1e300) for i, x in enumerate(LOSS)), FLAGGED),
    "strings for numbers": ("history.csv", csv((i, "much") for i in STEPS), {"withheld"}),
    "some strings": ("history.csv", csv((i, x if i % 9 else "?") for i, x in enumerate(LOSS)), FINE),
    "steps backwards": ("history.csv", csv([*enumerate(LOSS)][::-1]), KNOWN),
    "steps twice": ("history.csv", csv((i // 2 * 2, x) for i, x in enumerate(LOSS)), FINE),
    "negative steps": ("history.csv", csv((i - 1000, x) for i, x in enumerate(LOSS)), FINE),
    "negative loss": ("history.csv", csv((i, -x) for i, x in enumerate(LOSS)), KNOWN),
    "steps near the limit": ("history.csv", csv((BIG - 500 + i, x) for i, x in enumerate(LOSS)), FINE),
    "steps beyond the limit": ("history.csv", csv((BIG + i, x) for i, x in enumerate(LOSS)), FINE),
    "steps near the lower limit": ("history.csv", csv((-BIG + i, x) for i, x in enumerate(LOSS)), FINE),
    "a key with slashes": ("history.csv", csv(enumerate(LOSS), "step,../../etc/loss\x1b[31m"), {"withheld"}),
    "cut in the middle of a line": ("history.jsonl", jsonl(enumerate(LOSS))[:-9], FINE),
    "not a table": ("history.parquet", "PAR1 but not really", {"withheld"}),
    "bytes of something else": ("history.csv", "\x00\x01\x02\xff", {"withheld"}),
}


@pytest.mark.parametrize(("name", "content", "allowed"), CASES.values(), ids=CASES)
def test_a_bad_run_has_a_verdict_and_its_siblings_too(
    cli: Callable[..., object], runs: Callable[[RunHistory], Path], tmp_path: Path, name: str, content: str,
    allowed: set[str],
) -> None:
    """The sweep has an answer for every run: no traceback, siblings healthy, the bad one judged or withheld."""
    for history in cohort(4):
        runs(history)
    bad = tmp_path / "runs" / "bad"
    bad.mkdir()
    (bad / "run.json").write_text(json.dumps({"id": "bad", "state": "finished", "config": {**CONFIG, "seed": 99}}))
    (bad / name).write_text(content, "latin-1")
    done = cli("sweep", "files:runs", "--json", "out.jsonl")
    reports = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    verdicts = {report["run"]["id"]: report["verdict"] for report in reports}
    assert verdicts.pop("bad") in allowed, (reports, done)
    assert verdicts == dict.fromkeys(("run-0", "run-1", "run-2", "run-3"), "healthy")


BROKEN_FACTS = {
    "cut": '{"id": "bad", "conf',
    "a list": "[]",
    "deep": "[" * 100_000,
    "odd types": '{"id": 7, "name": null, "state": 3, "config": "x", "tags": [1], "started": 1e400}',
    "empty": "",
}


@pytest.mark.parametrize("facts", BROKEN_FACTS.values(), ids=BROKEN_FACTS)
def test_damaged_facts_cost_the_config_only(
    cli: Callable[..., object], runs: Callable[[RunHistory], Path], facts: str
) -> None:
    """A run whose run.json is damaged is compared with itself."""
    folder = runs(cohort(1)[0])
    (folder / "run.json").write_text(facts)
    done = cli("sweep", "files:runs", "--json", "-")
    assert [json.loads(line)["baseline"]["kind"] for line in done.stdout.splitlines()] == ["self"]


def test_hostile_names_do_not_reach_the_terminal(
    cli: Callable[..., object], runs: Callable[[RunHistory], Path]
) -> None:
    """Control characters in names and metrics are shown as something harmless."""
    folder = runs(cohort(1)[0])
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "name": "a\x1b]0;owned\x07\u202eb\nverdict"}))
    done = cli("sweep", "files:runs")
    escaped = [c for c in "\x1b\x07\u202e" if c in done.stdout + done.stderr]
    assert (escaped, "a?]0;owned??b?verdict" in done.stdout) == ([], True)

"""The page that Prometheus scrapes, and the rules it evaluates, with names that want to break out."""

from __future__ import annotations

import re

import pytest
import yaml

from runtriage.model.rule import RULES_SCHEMA, Above, AlertRule, NonFinite, RuleSet, Stalled
from runtriage.model.vocab import Level
from runtriage.outputs.prometheus import LABEL_LIMIT, Health, RunSample, label_value, render_exposition
from runtriage.outputs.prometheus_rules import MARK, RULES_FILE, TEST_FILE, expression, render_prometheus

HOSTILE = 'x"} 1\nruntriage_run_verdict{run="y"} 3\n# \\ {{ $value }} \x1b[31m\u2028\ud800'
LINE = re.compile(
    r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\})? (NaN|[+-]Inf|-?\d[\d.e+-]*)'
)


def sample(**changes: object) -> RunSample:
    facts = {"run_id": "r", "name": "n", "config": "c", "running": True, "verdict": Level.WATCH, "step": 7}
    return RunSample(**(facts | changes))  # type: ignore[arg-type]


def test_the_newest_facts_of_a_run_are_on_the_page() -> None:
    """Values keep NaN and infinities in Prometheus' spelling; verdicts and flags are numbers."""
    values = {"loss": ("train/loss", float("nan")), "lr": ("lr", 1e-5)}
    run = sample(values=values, z={"loss": -2.5}, firing={"a": True})
    page = render_exposition([run], Health(refreshed=5.0)).splitlines()
    assert {
        'runtriage_run_verdict{run="r",config="c"} 1.0',
        'runtriage_run_step{run="r",config="c"} 7.0',
        'runtriage_metric_value{run="r",config="c",role="loss",metric="train/loss"} NaN',
        'runtriage_metric_value{run="r",config="c",role="lr",metric="lr"} 1e-05',
        'runtriage_metric_zscore{run="r",config="c",role="loss"} -2.5',
        'runtriage_rule_firing{run="r",config="c",rule="a"} 1.0',
        "runtriage_exporter_refreshed_timestamp_seconds 5.0",
    } <= set(page)


def test_hostile_names_make_no_line_of_their_own() -> None:
    """Every line is a comment or one sample with escaped labels, and nothing was added."""
    run = sample(run_id=HOSTILE, name=HOSTILE, config=HOSTILE, values={"loss": (HOSTILE, 1.0)}, firing={"a": False})
    page = render_exposition([run], Health())
    samples = [line for line in page.split("\n") if line and not line.startswith("# ")]
    assert [line for line in samples if not LINE.fullmatch(line)] == []
    assert sum(line.startswith("runtriage_run_verdict") for line in samples) == 1
    page.encode()


def test_a_label_is_cut_to_its_limit() -> None:
    """A name of ten thousand characters does not make a page of that size."""
    assert len(label_value("x" * 10_000)) == LABEL_LIMIT + 2


def test_a_run_listed_twice_is_exported_once() -> None:
    """Prometheus refuses a page with the same series twice."""
    page = render_exposition([sample(), sample(step=8)], Health())
    assert page.count("runtriage_run_step{") == 1


def rule(**changes: object) -> AlertRule:
    facts = {"id": "loss-nan-c", "about": "A.", "role": "loss", "config": "c", "condition": NonFinite(), **changes}
    return AlertRule(**facts)  # type: ignore[arg-type]


def compiled(*rules: AlertRule) -> dict[str, str]:
    return render_prometheus(RuleSet(schema=RULES_SCHEMA, rules=rules), "127.0.0.1:9187")


def test_a_rule_asks_the_exporter_whether_it_fires() -> None:
    """What happens between two scrapes is the exporter's to know."""
    assert expression(rule()) == 'runtriage_rule_firing{rule="loss-nan-c"} == 1'


def test_a_stall_is_told_by_the_clock_of_running_runs() -> None:
    """No exporter can see a point that does not come."""
    told = expression(rule(condition=Stalled(seconds=600)))
    assert told == (
        '(time() - runtriage_run_last_point_timestamp_seconds{config="c"} > 600)'
        " and on (run, config) (runtriage_run_running == 1)"
    )


@pytest.mark.parametrize("where", ["about", "metric", "config"])
def test_hostile_words_stay_within_their_scalar(where: str) -> None:
    """Our rules come back from YAML with as many keys as were written, and no template of others is expanded."""
    files = compiled(rule(**{where: HOSTILE.replace("\ud800", "")}, condition=Above(value=1.0)))
    (ours, *_) = yaml.safe_load(files[RULES_FILE])["groups"][0]["rules"]
    texts = [*ours["annotations"].values(), *ours["labels"].values()]
    assert set(ours) == {"alert", "expr", "labels", "annotations"}
    assert "{{" not in " ".join(texts).replace('{{ "{{" }}', "").replace("{{ $labels.run }}", "")


def test_every_rule_has_its_case() -> None:
    """As many promtool cases as alerts; each file says whose it is."""
    files = compiled(rule(), rule(id="b"), rule(id="stall", condition=Stalled(seconds=60)))
    groups = yaml.safe_load(files[RULES_FILE])["groups"]
    assert len(yaml.safe_load(files[TEST_FILE])["tests"]) == sum(len(group["rules"]) for group in groups)
    assert all(content.startswith(MARK) for content in files.values())


def test_compiling_twice_gives_the_same_bytes() -> None:
    """The order in which rules stand in the file does not matter."""
    assert compiled(rule(), rule(id="b")) == compiled(rule(id="b"), rule())

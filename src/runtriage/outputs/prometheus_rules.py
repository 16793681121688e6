"""Alert rules as files for Prometheus: rules, their ``promtool test rules`` cases, a scrape configuration. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from runtriage.model.rule import AlertRule, RuleSet, Stalled

RULES_FILE, TEST_FILE, SCRAPE_FILE = "runtriage_rules.yml", "runtriage_rules_test.yml", "runtriage_scrape.yml"
FILES: tuple[str, ...] = (RULES_FILE, TEST_FILE, SCRAPE_FILE)
MARK = "# Written by `runtriage rules apply --to prometheus`; changes are lost."
"""First line of each file: what does not begin with it is not ours."""

JOB = "runtriage"
_STALE = 900
_HOSTILE = 'a "hostile" \\ name {{ $value }}'
_SUSPICIOUS = 2


def render_prometheus(rules: RuleSet, target: str) -> dict[str, str]:
    """Return file name to content.

    Parameters
    ----------
    rules
        The rules; all of them can be said, since the exporter evaluates what PromQL cannot.
    target
        ``HOST:PORT`` of the exporter.
    """
    ordered = sorted(rules.rules, key=lambda rule: rule.id)
    groups = [
        {"name": "runtriage", "rules": [_alert(rule) for rule in ordered]},
        {"name": "runtriage-itself", "rules": _own_alerts()},
    ]
    tests = {"rule_files": [RULES_FILE], "evaluation_interval": "1m", "tests": [*map(_case, ordered), *_own_cases()]}
    scrape = {
        "rule_files": [RULES_FILE],
        "scrape_configs": [{"job_name": JOB, "scrape_interval": "30s", "static_configs": [{"targets": [target]}]}],
    }
    shown = {RULES_FILE: {"groups": [g for g in groups if g["rules"]]}, TEST_FILE: tests, SCRAPE_FILE: scrape}
    return {name: f"{MARK}\n{_yaml(content)}" for name, content in shown.items()}


def expression(rule: AlertRule) -> str:
    """Return the PromQL of a rule.

    Parameters
    ----------
    rule
        A stall is told by the clock, everything else by what the exporter found on the points since its last look.
    """
    if isinstance(rule.condition, Stalled):
        chosen = f"{{config={_quoted(rule.config)}}}" if rule.config else ""
        return (
            f"(time() - runtriage_run_last_point_timestamp_seconds{chosen} > {rule.condition.seconds:.0f})"
            f" and on (run, config) (runtriage_run_running == 1)"
        )
    return f"runtriage_rule_firing{{rule={_quoted(rule.id)}}} == 1"


def _alert(rule: AlertRule) -> dict[str, Any]:
    return {
        "alert": _name(rule), "expr": expression(rule),
        "labels": {"severity": str(rule.severity), "rule": rule.id},
        "annotations": _annotations(rule),
    }


def _annotations(rule: AlertRule) -> dict[str, str]:
    watched = f" Watched: {_literal(rule.metric or rule.role)}." if rule.metric or rule.role else ""
    return {
        "summary": f"{_literal(rule.about)} Run {{{{ $labels.run }}}}.",
        "description": f"{_trust(rule)}{watched}" + (f" Derive it again after {rule.expires}." if rule.expires else ""),
    }


def _trust(rule: AlertRule) -> str:
    if rule.measured is None:
        return "Written by hand."
    alarms, pooled = rule.measured.false_alarms, rule.measured.pooled
    return (
        f"From {rule.measured.runs} healthy runs of config {_literal(rule.config)}; left out one by one it fired on "
        f"{alarms.fired} of them, and on {pooled.fired} of {pooled.runs} over all configs."
    )


def _own_alerts() -> list[dict[str, Any]]:
    return [
        {
            "alert": "RuntriageVerdict",
            "expr": f"runtriage_run_verdict >= {_SUSPICIOUS} and on (run, config) runtriage_run_running == 1",
            "labels": {"severity": "warning"},
            "annotations": {"summary": "Run {{ $labels.run }} is judged suspicious or broken."},
        },
        {
            "alert": "RuntriageRuleExpired", "expr": "runtriage_rule_expires_timestamp_seconds < time()",
            "labels": {"severity": "info"},
            "annotations": {"summary": "Rule {{ $labels.rule }} has expired: derive it again from recent runs."},
        },
        {
            "alert": "RuntriageBlind",
            "expr": f'time() - runtriage_exporter_refreshed_timestamp_seconds > {_STALE} or up{{job="{JOB}"}} == 0',
            "labels": {"severity": "warning"},
            "annotations": {"summary": "runtriage cannot see the runs: its exporter is down or reads nothing."},
        },
    ]


def _case(rule: AlertRule) -> dict[str, Any]:
    """Return a promtool case: silent before, firing with the labels of the run, silent again."""
    labels = {"config": rule.config, "run": _HOSTILE}
    if isinstance(rule.condition, Stalled):
        late = int(rule.condition.seconds // 60) + 2
        series = [
            {"series": _series("runtriage_run_last_point_timestamp_seconds", labels), "values": f"0x{late}"},
            {"series": _series("runtriage_run_running", labels), "values": f"1x{late}"},
        ]
        quiet, loud = 0, late
    else:
        named = {"config": rule.config, "rule": rule.id, "run": _HOSTILE}
        series = [{"series": _series("runtriage_rule_firing", named), "values": "0 0 1 1 0"}]
        quiet, loud = 1, 3
    fired = {
        "exp_labels": {"run": _HOSTILE, "rule": rule.id, "severity": str(rule.severity)}
        | ({"config": _flat(rule.config)} if rule.config else {}),
        "exp_annotations": {key: _expanded(text) for key, text in _annotations(rule).items()},
    }
    return _asked(rule.id, _name(rule), series, [(quiet, []), (loud, [fired])])


def _own_cases() -> list[dict[str, Any]]:
    run = {"config": "c", "run": "r"}
    own = {alert["alert"]: alert for alert in _own_alerts()}

    def fired(name: str, labels: dict[str, str], words: str) -> dict[str, Any]:
        return {
            "exp_labels": labels | {"severity": own[name]["labels"]["severity"]}, "exp_annotations": {"summary": words}
        }

    return [
        _asked(
            "verdict", "RuntriageVerdict", [
                {"series": _series("runtriage_run_verdict", run), "values": "0 1 2 -1"},
                {"series": _series("runtriage_run_running", run), "values": "1x3"},
            ],
            [(1, []), (2, [fired("RuntriageVerdict", run, "Run r is judged suspicious or broken.")]), (3, [])],
        ),
        _asked(
            "expired", "RuntriageRuleExpired",
            [{"series": _series("runtriage_rule_expires_timestamp_seconds", {"rule": "x"}), "values": "150x5"}],
            [(2, []), (3, [fired(
                "RuntriageRuleExpired", {"rule": "x"}, "Rule x has expired: derive it again from recent runs."
            )])],
        ),
        _asked(
            "blind", "RuntriageBlind", [{"series": _series("up", {"job": JOB}), "values": "1 0"}],
            [(0, []), (1, [fired("RuntriageBlind", {"job": JOB}, own["RuntriageBlind"]["annotations"]["summary"])])],
        ),
    ]


def _asked(
    name: str, alert: str, series: list[dict[str, str]], moments: Sequence[tuple[int, list[dict[str, Any]]]]
) -> dict[str, Any]:
    return {
        "name": name, "interval": "1m", "input_series": series,
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected} for minute, expected in moments
        ],
    }


def _name(rule: AlertRule) -> str:
    """Return the alert's name: one for all configs, so that a route can be made for it."""
    kind = rule.id.removesuffix(f"-{rule.config}") if rule.config else rule.id
    return "Runtriage" + "".join(part.capitalize() for part in kind.replace("_", "-").split("-"))


def _literal(text: str) -> str:
    """Return text from outside for a place where Prometheus expands templates: a template itself says the braces."""
    return _flat(text).replace("{{", '{{ "{{" }}')


def _expanded(text: str) -> str:
    """Return what Prometheus makes of an annotation of ours."""
    return text.replace("{{ $labels.run }}", _HOSTILE).replace('{{ "{{" }}', "{{")


def _series(name: str, labels: dict[str, str]) -> str:
    return name + "{" + ",".join(f"{key}={_quoted(value)}" for key, value in labels.items() if value) + "}"


def _quoted(text: str) -> str:
    return '"' + _flat(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _flat(text: str) -> str:
    """Return text on one line, as the exporter spells it in labels."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _yaml(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=False, width=200)

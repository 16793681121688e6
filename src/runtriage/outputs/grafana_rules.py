"""Alert rules as a provisioning file of Grafana, over a PostgreSQL data source that holds MLflow's tables. Pure.

Grafana expands ``$NAME`` and ``$__file{…}`` in most strings of such a file and ``{{ … }}`` in annotations. There is no
``$`` in ours: templates use ``.Labels``, and one from outside is said by a template. Grafana keeps rules whose file is
gone, and people cannot delete them in its pages; the file therefore lists rules of ours that are to go.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from runtriage.model.rule import AlertRule
from runtriage.outputs.report import words

FILE = "runtriage_grafana.yaml"
MARK = "# Written by `runtriage rules apply --to grafana`; changes are lost."
"""First line of the file: what does not begin with it is not ours."""

DATASOURCE = "mlflow"
FOLDER = "runtriage"
INTERVAL = "1m"
_STUB = """\
# Belongs into provisioning/alerting/ of Grafana. The rules ask the data source {uid!r}; if there is none yet, this is
# one for provisioning/datasources/ (the user needs SELECT on runs, experiments, tags, metrics, latest_metrics only):
#   apiVersion: 1
#   datasources:
#     - name: MLflow
#       uid: {uid}
#       type: grafana-postgresql-datasource
#       access: proxy
#       url: HOST:5432
#       user: grafana_reader
#       jsonData: {{database: mlflow, sslmode: require, maxOpenConns: 4}}
#       secureJsonData: {{password: "${{MLFLOW_READER_PASSWORD}}"}}
"""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|runtriage-[0-9a-f]{24}")
_SQL = re.compile(r"(with|select) [^\n]*\n")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A rule with what Grafana needs to say it.

    Attributes
    ----------
    rule
        The rule.
    sql
        A query whose number is the step at which it fired, or -1.
    causes
        Likely causes, in words.
    checks
        How to check them.
    """

    rule: AlertRule
    sql: str
    causes: Sequence[str]
    checks: Sequence[str]


def render_grafana(
    said: Iterable[Said], *, datasource: str = DATASOURCE, unsaid: Mapping[str, str] | None = None,
    present: bytes | None = None,
) -> str:
    """Return the content of the file; equal rules give equal bytes.

    Parameters
    ----------
    said
        The rules.
    datasource
        Uid of the data source.
    unsaid
        Ids of rules that SQL cannot say, to the reasons; they stand in the file as comments.
    present
        Our file as it is, or None: rules in it that are no longer wanted are listed as to be deleted.
    """
    ordered = sorted(said, key=lambda one: (one.rule.config, one.rule.id))
    configs = list(dict.fromkeys(one.rule.config for one in ordered))
    groups = [_group(config, [one for one in ordered if one.rule.config == config], datasource) for config in configs]
    wanted = {uid(one.rule.id) for one in ordered}
    comments = [f"# Not said here: {rule_id}: {_flat(why)}\n" for rule_id, why in sorted((unsaid or {}).items())]
    head = f"{MARK}\n{_STUB.format(uid=datasource)}" + "".join(comments)
    return head + _document(groups, sorted(uids_of(present) - wanted))


def render_farewell(present: bytes) -> str | None:
    """Return the file that makes Grafana delete all rules of ours, or None if the present one is that already."""
    if b"\ngroups:" not in present:
        return None
    return f"{MARK}\n# Once Grafana has read this, prune again to remove the file.\n" + _document([], uids_of(present))


def uids_of(present: bytes | None) -> set[str]:
    """Return the uids of all rules in a file of ours, wanted or to be deleted."""
    text = present.decode() if present is not None else ""
    return set(re.findall(r"\buid: (runtriage-[0-9a-f]{24})$", text, re.MULTILINE))


def uid(rule_id: str) -> str:
    """Return the uid of a rule: Grafana takes 40 characters at most.

    Examples
    --------
    >>> uid("loss-spike-0123456789ab")
    'runtriage-9d030d5471974732046f365c'
    """
    return "runtriage-" + hashlib.sha256(rule_id.encode()).hexdigest()[:24]


def _document(groups: list[dict[str, Any]], gone: Iterable[str]) -> str:
    deleted = [{"orgId": 1, "uid": one} for one in sorted(gone)]
    content: dict[str, Any] = {"apiVersion": 1}
    content |= {"groups": groups} if groups else {}
    content |= {"deleteRules": deleted} if deleted else {}
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=1000)


def _group(config: str, said: Sequence[Said], datasource: str) -> dict[str, Any]:
    name = f"runtriage {config}" if config else "runtriage"
    return {
        "orgId": 1, "name": _unexpanded(name), "folder": FOLDER, "interval": INTERVAL,
        "rules": [_alert(one, datasource) for one in said],
    }


def _alert(one: Said, datasource: str) -> dict[str, Any]:
    rule = one.rule
    return {
        "uid": uid(rule.id), "title": rule.id, "condition": "B",
        "data": [_asked(one.sql, datasource), _judged()],
        "noDataState": "OK",  # no run goes on
        "execErrState": "Error",
        "for": "0s",  # for how many points it must hold is part of the query
        "annotations": _annotations(one),
        "labels": {"severity": str(rule.severity), "rule": rule.id},
        "isPaused": False,
    }


def _asked(sql: str, datasource: str) -> dict[str, Any]:
    return {
        "refId": "A", "relativeTimeRange": {"from": 600, "to": 0}, "datasourceUid": datasource,
        "model": {
            "refId": "A", "datasource": {"type": "grafana-postgresql-datasource", "uid": datasource},
            "editorMode": "code", "format": "table", "rawQuery": True, "rawSql": sql,
            "intervalMs": 60000, "maxDataPoints": 43200,
        },
    }


def _judged() -> dict[str, Any]:
    """Return the threshold: a step, not -1."""
    return {
        "refId": "B", "relativeTimeRange": {"from": 600, "to": 0}, "datasourceUid": "__expr__",
        "model": {
            "refId": "B", "type": "threshold", "expression": "A",
            "datasource": {"type": "__expr__", "uid": "__expr__"},
            "conditions": [{"type": "query", "evaluator": {"type": "gt", "params": [-1]}}],
            "intervalMs": 60000, "maxDataPoints": 43200,
        },
    }


def _annotations(one: Said) -> dict[str, str]:
    rule = one.rule
    about = _literal(rule.about)
    step = '{{ with .Values.A }} Step {{ printf "%.0f" .Value }}.{{ end }}'
    seen = f"{about} Run {{{{ .Labels.run }}}} of {{{{ .Labels.experiment }}}}.{step}"
    expiry = f" Derive it again after {rule.expires}." if rule.expires else ""
    return {
        "summary": seen,
        "description": "\n".join([
            f"Seen: {seen}",
            f"Likely causes: {'; '.join(map(_literal, one.causes))}",
            f"How to check: {' '.join(map(_literal, one.checks))}",
            f"{_trust(rule)} Watched: {_literal(rule.metric)}.{expiry}",
        ]),
        "run_id": "{{ .Labels.run_id }}",
    }


def _trust(rule: AlertRule) -> str:
    if rule.measured is None:
        return "Written by hand."
    alarms, pooled = rule.measured.false_alarms, rule.measured.pooled
    return (
        f"From {rule.measured.runs} healthy runs of config {_literal(rule.config)}; left out one by one it fired on "
        f"{alarms.fired} of them, and on {pooled.fired} of {pooled.runs} over all configs."
    )


def _literal(text: str) -> str:
    """Return text for a place where Grafana expands templates and variables: templates say what would begin one."""
    said = {"{": '{{ "{" }}', "$": '{{ "\\x24" }}'}
    return "".join(said.get(letter, letter) for letter in _flat(text, words.SENTENCE_LIMIT))


def _unexpanded(text: str) -> str:
    return _flat(text).replace("$", "?")


def _flat(text: str, limit: int = 200) -> str:
    return words.one_line(text, limit)


class _Dumper(yaml.SafeDumper):
    """Queries as blocks, words plain, all other text quoted: readers of YAML differ in what they take for a number."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write everything in full."""
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else "|" if _SQL.match(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)

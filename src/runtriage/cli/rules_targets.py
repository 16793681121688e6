"""Targets of alert rules that are files: what each compiles rules to, and what it takes to be rid of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from runtriage.errors import UsageError
from runtriage.model.refs import parse_address
from runtriage.model.rule import RuleSet
from runtriage.outputs import grafana_rules, prometheus_rules
from runtriage.rules.advice import advise
from runtriage.rules.sql import Query, query

_UID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_DATABASES = frozenset({"mlflow", "mlflow+https", "mlflow-sql"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """Rules as files.

    Attributes
    ----------
    files
        File name to content.
    notes
        What the target cannot say, or says differently; one sentence each.
    """

    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


class FileTarget(Protocol):
    """A target whose rules are files in a folder that others use as well."""

    @property
    def names(self) -> tuple[str, ...]:
        """File names that are ours once they begin with our mark."""
        ...

    @property
    def mark(self) -> str:
        """First line of each of our files."""
        ...

    @property
    def hint(self) -> str:
        """What to do after files were written."""
        ...

    def compile(self, rules: RuleSet, present: Mapping[str, bytes]) -> Compiled:
        """Return all files, given those of ours that are there."""
        ...

    def farewell(self, present: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return files to write instead of removing the present ones, for targets that must be told first."""
        ...


@dataclass(frozen=True, slots=True)
class Prometheus:
    """Rule file, promtool cases and scrape configuration.

    Attributes
    ----------
    exporter
        ``HOST:PORT`` of the exporter.
    """

    exporter: str
    names = prometheus_rules.FILES
    mark = prometheus_rules.MARK
    hint = f"check them with: promtool test rules {prometheus_rules.TEST_FILE}"

    def compile(self, rules: RuleSet, present: Mapping[str, bytes]) -> Compiled:  # noqa: ARG002
        """Return the three files; Prometheus says every rule, since the exporter evaluates them."""
        files = prometheus_rules.render_prometheus(rules, self.exporter)
        return Compiled(files={name: content.encode() for name, content in files.items()})

    def farewell(self, present: Mapping[str, bytes]) -> Mapping[str, bytes]:  # noqa: ARG002
        """Return nothing: a rule is gone with its file."""
        return {}


@dataclass(frozen=True, slots=True)
class Grafana:
    """One provisioning file.

    Attributes
    ----------
    datasource
        Uid of the PostgreSQL data source.
    """

    datasource: str
    names = (grafana_rules.FILE,)
    mark = grafana_rules.MARK
    hint = "put the file into provisioning/alerting/ of Grafana and reload or restart it"

    def __post_init__(self) -> None:
        """Refuse what Grafana would refuse.

        Raises
        ------
        UsageError
            The uid is none.
        """
        if not _UID.fullmatch(self.datasource):
            hint = "up to 40 letters, digits, - and _; Grafana shows it in the address of the data source's page"
            raise UsageError(f"{self.datasource[:60]!r} is no uid of a data source", where="--datasource", hint=hint)

    def compile(self, rules: RuleSet, present: Mapping[str, bytes]) -> Compiled:
        """Return the file, and which rules SQL cannot say."""
        said: list[grafana_rules.Said] = []
        unsaid: dict[str, str] = {}
        differs: Counter[str] = Counter()
        experiment = experiment_of(rules.source)
        for rule in rules.rules:
            found = query(rule, experiment=experiment)
            if not isinstance(found, Query):
                unsaid[rule.id] = found.reason
                continue
            differs.update(found.differs)
            advice = advise(rule)
            causes = [f"{cause} ({weight:.0%})" for cause, weight in advice.causes]
            said.append(grafana_rules.Said(rule=rule, sql=found.sql, causes=causes, checks=advice.checks))
        content = grafana_rules.render_grafana(
            said, datasource=self.datasource, unsaid=unsaid, present=present.get(grafana_rules.FILE)
        )
        notes = [f"not for Grafana: {rule_id}: {why}" for rule_id, why in sorted(unsaid.items())]
        notes += [f"{count} rule{'' if count == 1 else 's'}: {text}" for text, count in sorted(differs.items())]
        return Compiled(files={grafana_rules.FILE: content.encode()}, notes=tuple(notes))

    def farewell(self, present: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return the file that makes Grafana delete our rules, unless the present one is that already."""
        content = present.get(grafana_rules.FILE)
        last = grafana_rules.render_farewell(content) if content is not None else None
        return {grafana_rules.FILE: last.encode()} if last is not None else {}


def experiment_of(source: str) -> str:
    """Return the experiment that rules were derived from, where it is one of MLflow's; empty for all.

    Examples
    --------
    >>> experiment_of("mlflow://127.0.0.1:5000/pre training"), experiment_of("files:runs"), experiment_of("")
    ('pre training', '', '')
    """
    try:
        address = parse_address(source)
    except UsageError:
        return ""
    return address.parts[0] if address.scheme in _DATABASES and address.parts else ""

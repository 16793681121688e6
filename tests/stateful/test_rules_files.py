"""Plan, apply and prune of compiled rules in a folder that other people use as well."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtriage.cli.rules_files import plan, run_apply, run_prune
from runtriage.cli.rules_targets import FileTarget, Grafana, Prometheus
from runtriage.errors import UsageError
from runtriage.model.rule import RULES_SCHEMA, Above, AlertRule, RuleSet
from runtriage.rules.codec import encode_rules

ids = st.sampled_from(["a", "b", "c"])
names = st.sampled_from(["prometheus.yml", "runtriage_rules.yml", "runtriage_scrape.yml", "runtriage_grafana.yaml"])


class Folder(RuleBasedStateMachine):
    """A folder beside a plain model of what belongs to others."""

    target: FileTarget = Prometheus("127.0.0.1:1")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.out = self.root / "prometheus"
        self.rules = self.root / "rules.yaml"
        self.foreign: dict[str, bytes] = {}
        self.chosen: frozenset[str] = frozenset()
        self.write()

    def write(self) -> None:
        condition = Above(value=1.0)
        some = tuple(AlertRule(id=i, about=i, metric="loss", condition=condition) for i in sorted(self.chosen))
        self.rules.write_bytes(encode_rules(RuleSet(schema=RULES_SCHEMA, rules=some)))

    def blocked(self) -> bool:
        return bool(self.foreign.keys() & set(self.target.names))

    @rule(chosen=st.frozensets(ids))
    def derive(self, chosen: frozenset[str]) -> None:
        """Change the rules."""
        self.chosen = chosen
        self.write()

    @precondition(lambda self: not self.blocked())
    @rule()
    def apply(self) -> None:
        """After an apply nothing is left to do."""
        run_apply(str(self.rules), str(self.out), self.target)
        assert plan(str(self.rules), str(self.out), self.target).files == {}

    @precondition(lambda self: self.blocked())
    @rule()
    def apply_where_a_foreign_file_is(self) -> None:
        """Where a file of others has our name, nothing at all is written."""
        before = self.ours()
        with pytest.raises(UsageError, match="in the way"):
            run_apply(str(self.rules), str(self.out), self.target)
        assert self.ours() == before

    @rule(name=names, content=st.binary(max_size=9))
    def put_foreign(self, name: str, content: bytes) -> None:
        """Somebody writes a file of their own."""
        self.out.mkdir(exist_ok=True)
        (self.out / name).write_bytes(content)
        self.foreign[name] = content

    @rule(name=names)
    def remove(self, name: str) -> None:
        """Somebody removes a file, ours or theirs."""
        (self.out / name).unlink(missing_ok=True)
        self.foreign.pop(name, None)

    @rule()
    def prune(self) -> None:
        """Leave none of ours, at the second time where the target must be told first."""
        run_prune(str(self.out), self.target, dry=False)
        run_prune(str(self.out), self.target, dry=False)
        assert self.ours() == {}

    @rule()
    def rehearse(self) -> None:
        """Change nothing in a dry run."""
        before = self.ours()
        run_prune(str(self.out), self.target, dry=True)
        assert self.ours() == before

    @invariant()
    def foreign_files_are_left_alone(self) -> None:
        """Keep what others wrote byte for byte."""
        assert {name: (self.out / name).read_bytes() for name in self.foreign} == self.foreign

    def ours(self) -> dict[str, bytes]:
        if not self.out.exists():
            return {}
        found = {file.name: file.read_bytes() for file in self.out.iterdir()}
        return {name: content for name, content in found.items() if content.startswith(self.target.mark.encode())}

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)


class GrafanaFolder(Folder):
    """The same for Grafana, which keeps rules whose file is gone."""

    target: FileTarget = Grafana("mlflow")


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestGrafanaFolder = GrafanaFolder.TestCase
TestGrafanaFolder.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)

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
from runtriage.errors import UsageError
from runtriage.model.rule import RULES_SCHEMA, Above, AlertRule, RuleSet
from runtriage.outputs.prometheus_rules import FILES, MARK
from runtriage.rules.codec import encode_rules

ids = st.sampled_from(["a", "b", "c"])


class Folder(RuleBasedStateMachine):
    """A folder beside a plain model of what belongs to others."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.out = self.root / "prometheus"
        self.rules = self.root / "rules.yaml"
        self.foreign: dict[str, bytes] = {}
        self.chosen: frozenset[str] = frozenset()
        self.write()

    def write(self) -> None:
        some = tuple(AlertRule(id=i, about=i, role="loss", condition=Above(value=1.0)) for i in sorted(self.chosen))
        self.rules.write_bytes(encode_rules(RuleSet(schema=RULES_SCHEMA, rules=some)))

    def blocked(self) -> bool:
        return bool(self.foreign.keys() & set(FILES))

    @rule(chosen=st.frozensets(ids))
    def derive(self, chosen: frozenset[str]) -> None:
        """Change the rules."""
        self.chosen = chosen
        self.write()

    @precondition(lambda self: not self.blocked())
    @rule()
    def apply(self) -> None:
        """After an apply nothing is left to do."""
        run_apply(str(self.rules), str(self.out), target="127.0.0.1:1")
        assert plan(str(self.rules), str(self.out), target="127.0.0.1:1") == {}

    @precondition(lambda self: self.blocked())
    @rule()
    def apply_where_a_foreign_file_is(self) -> None:
        """Where a file of others has our name, nothing at all is written."""
        before = self.ours()
        with pytest.raises(UsageError, match="in the way"):
            run_apply(str(self.rules), str(self.out), target="127.0.0.1:1")
        assert self.ours() == before

    @rule(name=st.sampled_from(["prometheus.yml", *FILES]), content=st.binary(max_size=9))
    def put_foreign(self, name: str, content: bytes) -> None:
        """Somebody writes a file of their own."""
        self.out.mkdir(exist_ok=True)
        (self.out / name).write_bytes(content)
        self.foreign[name] = content

    @rule(name=st.sampled_from(FILES))
    def remove(self, name: str) -> None:
        """Somebody removes a file, ours or theirs."""
        (self.out / name).unlink(missing_ok=True)
        self.foreign.pop(name, None)

    @rule()
    def prune(self) -> None:
        """Leave none of ours."""
        run_prune(str(self.out), dry=False)
        assert self.ours() == {}

    @rule()
    def rehearse(self) -> None:
        """Change nothing in a dry run."""
        before = self.ours()
        run_prune(str(self.out), dry=True)
        assert self.ours() == before

    @invariant()
    def foreign_files_are_left_alone(self) -> None:
        """Keep what others wrote byte for byte."""
        assert {name: (self.out / name).read_bytes() for name in self.foreign} == self.foreign

    def ours(self) -> dict[str, bytes]:
        if not self.out.exists():
            return {}
        found = {file.name: file.read_bytes() for file in self.out.iterdir()}
        return {name: content for name, content in found.items() if content.startswith(MARK.encode())}

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)

"""Rules as YAML: written to be read and edited by people, and checked with the path of every mistake when read."""

from __future__ import annotations

import math
import re
from datetime import date
from itertools import pairwise
from typing import Any

import msgspec
import yaml

from runtriage.errors import CodecError
from runtriage.model.rule import RULES_SCHEMA, AlertRule, Ended, OutsideBand, RuleSet

_HEADER = """\
# Alert rules of runtriage. Edit freely; put `keep: true` on a rule that `rules derive` must not touch again.
# `rules test` says when each would have fired.
"""
_EXPONENT = re.compile(r"^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$")
_LIMIT = 8_000_000
_HINT = "`runtriage rules derive SOURCE -o FILE` writes such a file"


def encode_rules(rules: RuleSet) -> bytes:
    """Write rules; equal rules give equal bytes.

    Parameters
    ----------
    rules
        Written in the order of their ids, so that files of two derivations differ only where the rules do.
    """
    ordered = msgspec.structs.replace(
        rules,
        rules=tuple(sorted(rules.rules, key=lambda rule: rule.id)),
        dropped=tuple(sorted(rules.dropped, key=lambda one: one.id)),
    )
    body = yaml.dump(
        msgspec.to_builtins(ordered), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=116,
        default_flow_style=None,
    )
    return (_HEADER + body).encode()


def decode_rules(content: bytes) -> RuleSet:
    """Read rules.

    Raises
    ------
    CodecError
        Not YAML, not rules, of another version, or with a value that makes no sense; ``where`` is its path.
    """
    if len(content) > _LIMIT:
        raise CodecError(f"the rules file is larger than {_LIMIT // 1_000_000} MB", where="$", hint=_HINT)
    document = _parsed(content)
    if not isinstance(document, dict):
        raise CodecError("the rules file is no mapping", where="$", hint=_HINT)
    if document.get("schema") != RULES_SCHEMA:
        found = str(document.get("schema"))[:40]
        raise CodecError(f"the rules file has schema {found!r}; this version reads {RULES_SCHEMA!r}", where="$.schema")
    try:
        rules = msgspec.convert(document, RuleSet)
    except msgspec.ValidationError as error:
        what, _, path = str(error).rpartition(" - at ")
        raise CodecError(_lower(what or str(error)), where=path.strip("`") or "$", hint=_HINT) from None
    _check(rules)
    return rules


def _parsed(content: bytes) -> Any:
    try:
        return yaml.load(content.decode(), Loader=_Loader)  # noqa: S506  a SafeLoader that refuses more
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else "$"
        raise CodecError(f"the rules file is not YAML: {error.problem or error.context}", where=where) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise CodecError(f"the rules file is not YAML: {type(error).__name__}", where="$") from None


def _check(rules: RuleSet) -> None:
    seen: dict[str, int] = {}
    for i, rule in enumerate(rules.rules):
        where = f"$.rules[{i}]"
        if rule.id in seen:
            raise CodecError(f"the id {rule.id!r} is that of rule {seen[rule.id]} as well", where=f"{where}.id")
        seen[rule.id] = i
        if isinstance(rule.condition, Ended):
            if rule.for_points > 1:
                raise CodecError("a run ends once, not for several points", where=f"{where}.for_points")
        elif not rule.role and not rule.metric:
            raise CodecError("neither role nor metric says what is watched", where=f"{where}.role")
        _check_numbers(msgspec.to_builtins(rule), where)
        if rule.expires and not _is_date(rule.expires):
            raise CodecError(f"{rule.expires[:40]!r} is no date like 2026-11-30", where=f"{where}.expires")
        _check_band(rule, f"{where}.condition")


def _check_band(rule: AlertRule, where: str) -> None:
    if not isinstance(rule.condition, OutsideBand):
        return
    knots = rule.condition.knots
    for k, (before, after) in enumerate(pairwise(knots), start=1):
        if after.step <= before.step:
            raise CodecError(f"step {after.step} does not come after {before.step}", where=f"{where}.knots[{k}].step")
    for k, knot in enumerate(knots):
        if knot.low is None and knot.high is None:
            raise CodecError("the knot has neither low nor high", where=f"{where}.knots[{k}]")
        if knot.low is not None and knot.high is not None and knot.low >= knot.high:
            raise CodecError(f"low {knot.low} is not below high {knot.high}", where=f"{where}.knots[{k}].low")


def _check_numbers(node: Any, where: str) -> None:
    if isinstance(node, dict):
        for key, value in node.items():
            _check_numbers(value, f"{where}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            _check_numbers(value, f"{where}[{i}]")
    elif isinstance(node, float) and not math.isfinite(node):
        raise CodecError("the number is not finite", where=where)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


class _Dumper(yaml.SafeDumper):
    """Lists indented below their key; no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002
        """Indent lists too."""
        return super().increase_indent(flow, False)  # noqa: FBT003

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write everything in full."""
        return True


class _Loader(yaml.SafeLoader):
    """Refuses aliases (a short file may stand for a huge one) and repeated keys; dates stay text; 1e-3 is a number."""

    yaml_implicit_resolvers = {  # noqa: RUF012  the attribute of the parent
        key: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
        for key, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse an alias where it stands."""
        if self.check_event(yaml.events.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not used in rules", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002  the parent's signature
        """Refuse a key that stands twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} stands twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Write what is not printable as escapes: YAML takes NEL and its like for line breaks in any other style."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)
for _side in (_Loader, _Dumper):  # both, so that a fingerprint like 12e4 is quoted when it is written
    _side.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))

"""How good derived alert rules are on labelled runs, beside W&B's z-score automation. `make score` writes the tables.

Two kinds of runs: the fault lab's, whose rules come from its baselines and are tried on runs they have not seen; and
groups of public runs of one config, each run replayed against rules from the others of its group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from runtriage.analysis.cohorts import fingerprint
from runtriage.analysis.prepare import prepare
from runtriage.cli.rules_test import WANDB_DEFAULT, replayed
from runtriage.model.history import RunHistory
from runtriage.model.rule import AlertRule, RuleSet
from runtriage.pipeline import Params
from runtriage.registry import open_source
from runtriage.rules.derive import LEAST_HEALTHY, Cohort, derive
from runtriage.rules.recipes import Member
from runtriage.rules.score import ANY, Known, Replayed, Score, decode_known, kind_of, score

TODAY = date(2026, 12, 1)
GROUPS = ("ap_base_ogbg", "mn_valueembed", "meg_gpt3_15b", "ap_confln_base")
PARAMS = Params()


@dataclass(frozen=True)
class Lab:
    """The fault lab: the rules of its baselines, and how they and W&B's z-score did on its candidates."""

    rules: RuleSet
    ours: tuple[Score, ...]
    wandb: tuple[Score, ...]


@dataclass(frozen=True)
class Group:
    """Public runs of one config; ``ours`` of a run left out is None where too few others remain for any rule."""

    name: str
    rules: int
    left_out: Score | None
    hits: Score
    wandb: Score


def lab(corpora: Path) -> Lab:
    """Learn rules from the baselines and try them on the candidates of the same configs."""
    root = corpora / "data" / "faultlab"
    groups: dict[str, list[RunHistory]] = {}
    for history in _histories(root / "baselines"):
        groups.setdefault(fingerprint(history.info.config), []).append(history)
    rules = derive([_cohort(runs) for runs in groups.values()], today=TODAY)
    known = decode_known((root / "labels.jsonl").read_bytes())
    covered = {rule.config for rule in rules.rules}
    unseen = [h for h in _histories(root / "candidates") if fingerprint(h.info.config) in covered]
    return Lab(rules, _scored(rules.rules, unseen, known), _scored(WANDB_DEFAULT, unseen, known))


def groups(corpora: Path) -> Iterator[Group]:
    """Replay each run of some groups against rules from the others that are healthy; small blemishes are no fault."""
    root = corpora / "data" / "real"
    labels = [json.loads(line) for line in (root / "labels.jsonl").read_text().splitlines()]
    source = open_source(f"files:{root}")
    infos = {info.id: info for info in source.list_runs()}
    for name in GROUPS:
        mine = {one["run_id"]: one for one in labels if one["group"] == name and one["run_id"] in infos}
        runs = [source.read(infos[run_id]) for run_id in sorted(mine)]
        known = {
            run_id: Known(run_id=run_id, healthy=one["fault"] in {"clean", "minor"}, onset=one["onset"])
            for run_id, one in mine.items()
        }
        yield _group(name, runs, known)


def _group(name: str, runs: Sequence[RunHistory], known: dict[str, Known]) -> Group:
    good = [history for history in runs if known[history.info.id].healthy]
    rules = derive([_cohort(good)], today=TODAY).rules
    left_out: list[Replayed] = []
    for history in good if len(good) > LEAST_HEALTHY else ():
        others = [one for one in good if one is not history]
        left_out.append(replayed(derive([_cohort(others)], today=TODAY).rules, history, PARAMS))
    return Group(
        name=name, rules=len(rules), hits=_scored(rules, runs, known)[-1],
        left_out=score(rules, left_out, known)[-1] if left_out else None,
        wandb=_scored(WANDB_DEFAULT, runs, known)[-1],
    )


def lab_table(found: Lab) -> list[str]:
    """Return the fault lab's table in Markdown: a row a kind of rule, all together, and W&B's z-score."""
    own: dict[str, list[int]] = {}
    for rule in found.rules.rules:
        if rule.measured is not None:
            row = own.setdefault(kind_of(rule.id, rule.config), [0, 0])
            row[0] += rule.measured.false_alarms.fired
            row[1] += rule.measured.false_alarms.runs
    rows = [
        "| rule | false alarms, left out | false alarms, unseen runs | faulty runs caught | steps late, half / worst |",
        "|---|---|---|---|---|",
    ]
    rows += [_row(one.kind, own.get(one.kind), one) for one in found.ours if one.kind != ANY]
    worst = max(own.values(), key=lambda row: (row[0] / row[1], row[1]), default=None)
    rows.append(_row("**any of them** (left out: the worst)", worst, found.ours[-1]))
    rows += [_row("W&B's z-score on " + _watched(one.kind), None, one) for one in found.wandb if one.kind != ANY]
    rows.append(_row("**W&B's z-score on either**", None, found.wandb[-1]))
    return rows


def group_table(found: Iterable[Group]) -> list[str]:
    """Return the table of public groups in Markdown."""
    rows = [
        "| group | rules | false alarms | W&B's z-score | faulty caught | W&B's z-score | steps late, half / worst |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in found:
        left_out = one.left_out.false_alarms if one.left_out else None
        alarms = _of(left_out.fired, left_out.runs) if left_out else "too few runs"
        rows.append(
            f"| {one.name} | {one.rules} | {alarms} | {_of(one.wandb.false_alarms.fired, one.wandb.false_alarms.runs)} "
            f"| {_of(one.hits.hits.fired, one.hits.hits.runs)} | {_of(one.wandb.hits.fired, one.wandb.hits.runs)} "
            f"| {_delay(one.hits)} |"
        )
    return rows


def _histories(folder: Path) -> list[RunHistory]:
    source = open_source(f"files:{folder}")
    return [source.read(info) for info in source.list_runs()]


def _cohort(runs: Sequence[RunHistory]) -> Cohort:
    members = [Member(run=prepare(history), history=history) for history in runs]
    return Cohort(config=fingerprint(runs[0].info.config), healthy=members)


def _scored(rules: Sequence[AlertRule], runs: Sequence[RunHistory], known: dict[str, Known]) -> tuple[Score, ...]:
    return score(rules, [replayed(rules, history, PARAMS) for history in runs], known)


def _row(name: str, left_out: Sequence[int] | None, one: Score) -> str:
    own = _of(*left_out) if left_out else "-"
    alarms, hits = one.false_alarms, one.hits
    early = f" ({one.early} also early)" if one.early else ""
    caught = _of(hits.fired, hits.runs) + early
    return f"| {name} | {own} | {_of(alarms.fired, alarms.runs)} | {caught} | {_delay(one)} |"


def _watched(kind: str) -> str:
    return "the " + kind.removeprefix("wandb-z-score-").replace("-", " ")


def _of(fired: int, runs: int) -> str:
    return f"{fired} of {runs}" if runs else "-"


def _delay(one: Score) -> str:
    return f"{one.median_delay:g} / {one.delays[-1]}" if one.median_delay is not None else "-"

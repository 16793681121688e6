"""What rules watch in a project: a tracker that evaluates rules needs the exact name of a metric, not a role."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from runtriage.analysis.prepare import prepare
from runtriage.analysis.roles import is_squared
from runtriage.model.history import RunInfo
from runtriage.model.rule import AlertRule, Ended
from runtriage.model.vocab import Role
from runtriage.outputs.wandb_triggers import Watched
from runtriage.pipeline import Params, fingerprint
from runtriage.sweep.run import read_all
from runtriage.trackers.base import HistorySource

LISTED = 500
"""Newest runs among which examples are looked for."""


def find_watched(
    source: HistorySource, rules: Sequence[AlertRule], *, params: Params, readers: int = 4
) -> dict[str, Watched | str]:
    """Return rule id to what it watches, or to the reason why that cannot be told.

    Parameters
    ----------
    source
        Read only for rules that give a role without a metric: the newest run of each of their configs.
    rules
        With unique ids.
    params
        Settings of the analysis.
    readers
        Runs read at the same time.

    Raises
    ------
    SourceError
        The source cannot be listed at all.
    """
    found: dict[str, Watched | str] = {}
    asked: list[AlertRule] = []
    for rule in rules:
        if isinstance(rule.condition, Ended):
            found[rule.id] = Watched()
        elif rule.metric:
            found[rule.id] = _named(rule.role, rule.metric)
        else:
            asked.append(rule)
    if not asked:
        return found
    examples = _examples(source, {rule.config for rule in asked}, params)
    logged: dict[str, dict[str, str]] = {}
    failures: dict[str, str] = {}
    for read in read_all(source, list(examples.values()), readers=readers):
        if read.history is None:
            failures[read.info.id] = read.failure
        else:
            by_role = prepare(read.history, params.roles).by_role
            logged[read.info.id] = {role: series.metric for role, series in by_role.items()}
    for rule in asked:
        found[rule.id] = _looked_up(rule, examples.get(rule.config), logged, failures)
    return found


def _examples(source: HistorySource, configs: Iterable[str], params: Params) -> dict[str, RunInfo]:
    """Return the newest run of each config; of all configs for an empty one."""
    missing = set(configs)
    out: dict[str, RunInfo] = {}
    for info in islice(source.list_runs(), LISTED):
        for config in missing & {"", fingerprint(info.config, params.ignore_keys)}:
            out[config] = info
            missing.discard(config)
        if not missing:
            break
    return out


def _looked_up(
    rule: AlertRule, example: RunInfo | None, logged: dict[str, dict[str, str]], failures: dict[str, str]
) -> Watched | str:
    if example is None:
        return "no run shows what its role is called here" + (f", none of config {rule.config}" if rule.config else "")
    if example.id in failures:
        return f"the run that would show what its role is called here cannot be read: {failures[example.id]}"
    metric = logged.get(example.id, {}).get(rule.role)
    if metric is None:
        return f"the newest run logs no metric with the role {rule.role}: name it in the rule as `metric`"
    return _named(rule.role, metric)


def _named(role: str, metric: str) -> Watched:
    return Watched(metric=metric, squared=role == Role.GRAD_NORM and is_squared(metric))

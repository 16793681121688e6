"""Rules as SQL over MLflow's own PostgreSQL tables: what Grafana asks at each evaluation. Pure.

A query returns a row for each run the rule is for: text columns ``experiment``, ``run``, ``run_id`` and one number,
``fired``: the newest step at which the rule fired, or -1. Looked at are runs that go on, or ended within the last
:data:`LOOK_SECONDS`; of each the newest :data:`LOOK_POINTS` points. A firing counts while it is at the newest point
or was logged within :data:`LOOK_SECONDS`, so that one between two evaluations is not lost.

MLflow stores NaN as 0 with ``is_nan`` and an infinity as the largest double. In PostgreSQL NaN is larger than any
number, so that every comparison asks for it first.

Text from outside stands in literals of plain letters and escapes only: Grafana, which looks for ``$`` in queries and
in the file that holds them, finds none.
"""
# ruff: noqa: S608  every text from outside goes through `quoted`, every number is ours or an int

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from runtriage.analysis.roles import is_squared
from runtriage.model.marks import CONFIG_KEY
from runtriage.model.rule import AlertRule, Backwards, Ended, OverBest, Stalled
from runtriage.model.vocab import Role
from runtriage.rules.sql_condition import holds
from runtriage.rules.sql_text import INFINITE, quoted

LOOK_POINTS = 600
LOOK_SECONDS = 600
ABANDONED_DAYS = 7
"""A run whose newest point is older is left alone: nobody told MLflow of its end."""

MOST_POINTS = 20_000
"""Points of one run that a query may look at."""

_NOW = "(extract(epoch from now()) * 1000)::bigint"
_IN_SECONDS = 100_000_000_000
_UNSAID = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A rule as SQL.

    Attributes
    ----------
    sql
        One ``select`` without a semicolon; printable ASCII and line breaks.
    differs
        How it differs from what the rule says elsewhere; empty if it does not.
    """

    sql: str
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """A rule that this target cannot say, and why."""

    reason: str


def query(rule: AlertRule, *, experiment: str = "") -> Query | Unsaid:
    """Return the SQL of a rule.

    Parameters
    ----------
    rule
        Its metric is taken by name: a database knows no roles.
    experiment
        Name or id of the only experiment to look at; empty for all.
    """
    if not rule.metric and not isinstance(rule.condition, Ended):
        return Unsaid(reason=f"it names no metric, and SQL knows no roles: give it `metric:` beside role {rule.role!r}")
    if any(_UNSAID.search(text) for text in (rule.metric, rule.config, experiment)):
        return Unsaid(reason="a name in it holds characters that no database can")
    if _points(rule) > MOST_POINTS:
        return Unsaid(reason=f"it looks at {_points(rule)} points of each run at every evaluation, over {MOST_POINTS}")
    if isinstance(rule.condition, Ended):
        return Query(sql=_ended(rule, rule.condition, experiment), differs=_differences(rule))
    parts = [_live(rule, experiment)]
    if isinstance(rule.condition, Stalled):
        parts.append(_stalled(rule, rule.condition))
    else:
        parts += [_logged(rule) if isinstance(rule.condition, Backwards) else _seen(rule), _held(rule), _fired(rule)]
    return Query(sql="\n".join(parts), differs=_differences(rule))


def _differences(rule: AlertRule) -> tuple[str, ...]:
    said = []
    if rule.config:
        said.append(f"it fires only on runs that carry the tag {CONFIG_KEY}: `runtriage sweep --write tags` sets it")
    if isinstance(rule.condition, OverBest):
        said.append("it reads the whole metric of each run at each evaluation: keep it to metrics with few points")
    return tuple(said)


def _points(rule: AlertRule) -> int:
    """Return how many of the newest points of a run are needed to judge the newest ``LOOK_POINTS``."""
    return LOOK_POINTS + rule.for_points - 1 + getattr(rule.condition, "window", 0)


def _live(rule: AlertRule, experiment: str) -> str:
    """Return the runs, each with the newest point of the metric."""
    at = _milliseconds("l.timestamp")
    wanted = [
        f"l.key = {quoted(rule.metric)}", *_active(rule, experiment),
        f"{at} > {_NOW} - {ABANDONED_DAYS * 86_400_000}",
    ]
    if isinstance(rule.condition, Stalled):
        wanted.append("r.status = 'RUNNING'")
    else:
        wanted.append(f"(r.status = 'RUNNING' or r.end_time > {_NOW} - {LOOK_SECONDS * 1000})")
    return f"""\
with live as (
  select r.run_uuid, r.name as run, e.name as experiment, l.step, {at} as at
  from latest_metrics l
  join runs r on r.run_uuid = l.run_uuid
  join experiments e on e.experiment_id = r.experiment_id
  where {_all(wanted)}
)"""


def _active(rule: AlertRule, experiment: str) -> list[str]:
    """Return what every run the rule is for has."""
    wanted = ["r.lifecycle_stage = 'active'", "e.lifecycle_stage = 'active'"]
    if experiment:
        name = quoted(experiment)
        wanted.append(f"(e.name = {name} or e.experiment_id::text = {name})")
    if rule.config:
        wanted.append(
            "exists (select 1 from tags t where t.run_uuid = r.run_uuid"
            f" and t.key = {quoted(CONFIG_KEY)} and t.value = {quoted(rule.config)})"
        )
    return wanted


def _ended(rule: AlertRule, condition: Ended, experiment: str) -> str:
    """Return runs that ended lately, and the step after the last of those that ended as the rule says."""
    states = ", ".join(quoted(state.upper()) for state in condition.states)
    wanted = [*_active(rule, experiment), f"r.end_time > {_NOW} - {LOOK_SECONDS * 1000}"]
    return f"""\
select e.name as experiment, r.name as run, r.run_uuid as run_id,
  (case when r.status in ({states}) then coalesce(
    (select max(l.step) from latest_metrics l where l.run_uuid = r.run_uuid), -1
  ) + 1 else -1 end)::float8 as fired
from runs r
join experiments e on e.experiment_id = r.experiment_id
where {_all(wanted)}
order by r.run_uuid"""


def _seen(rule: AlertRule) -> str:
    """Return the newest points of each run, the last write of each step, oldest first in ``place``."""
    value = (
        f"case when m.is_nan then 'NaN' when m.value >= {INFINITE} then 'Infinity'"
        f" when m.value <= -{INFINITE} then '-Infinity' else m.value end"
    )
    if rule.role == Role.GRAD_NORM and is_squared(rule.metric):
        value = f"sqrt(greatest({value}, 0))"
    return f"""\
, newest as (
  select v.run_uuid, d.step, d.at, d.value, d.step as place,
    d.value not in ('NaN', 'Infinity', '-Infinity') as finite,
    case when d.value > 0 and d.value < 'Infinity' then ln(d.value) end as log
  from live v
  cross join lateral (
    select distinct on (m.step) m.step, {_milliseconds("m.timestamp")} as at, ({value})::float8 as value
    from metrics m
    where m.run_uuid = v.run_uuid and m.key = {quoted(rule.metric)}
    order by m.step desc, m.timestamp desc, m.value desc
    limit {_points(rule)}
  ) d
)"""


def _logged(rule: AlertRule) -> str:
    """Return the rows of each run that came lately, in logged order, with the largest step before each."""
    cut = f"{_NOW} - {LOOK_SECONDS * 1000}"
    key = quoted(rule.metric)
    return f"""\
, older as materialized (
  select v.run_uuid, (
    select max(b.step) from metrics b where b.run_uuid = v.run_uuid and b.key = {key} and b.timestamp <= {cut}
  ) as top
  from live v
)
, newest as (
  select o.run_uuid, m.step, m.timestamp as at,
    row_number() over (partition by o.run_uuid order by m.timestamp, m.step) as place,
    greatest(
      max(m.step) over (
        partition by o.run_uuid order by m.timestamp, m.step rows between unbounded preceding and 1 preceding
      ), o.top
    ) as top
  from older o
  join metrics m on m.run_uuid = o.run_uuid and m.key = {key} and m.timestamp > {cut}
)"""


def _held(rule: AlertRule) -> str:
    """Return where the condition holds."""
    found = holds(rule)
    computed = "".join(f",\n    {text} as {name}" for name, text in found.columns.items())
    return f"""\
{found.table}, known as (
  select p.*, row_number() over (partition by p.run_uuid order by p.place desc) as back{computed}
  from newest p{found.joined}
)
, held as (
  select run_uuid, step, at, place, back,
    coalesce({found.when}, false) and step >= {int(rule.after_step)} as holds
  from known
)"""


def _fired(rule: AlertRule) -> str:
    """Return the result: the newest step at which the condition had held for long enough."""
    points = rule.for_points
    fires = "holds"
    if points > 1:
        frame = f"rows between {points - 1} preceding and current row"
        fires = f"count(*) filter (where holds) over (partition by run_uuid order by place {frame}) = {points}"
    return f"""\
, fired as (
  select run_uuid, step, {fires} and back <= {LOOK_POINTS}
    and (back = 1 or at > {_NOW} - {LOOK_SECONDS * 1000}) as fires
  from held
)
select v.experiment, v.run, v.run_uuid as run_id, coalesce(max(f.step) filter (where f.fires), -1)::float8 as fired
from live v
left join fired f on f.run_uuid = v.run_uuid
group by v.experiment, v.run, v.run_uuid
order by v.run_uuid"""


def _stalled(rule: AlertRule, stalled: Stalled) -> str:
    """Return runs that go on without a point; one that was resumed at a lower step logs past its newest point."""
    cut = f"{_NOW} - {math.ceil(stalled.seconds * 1000)}"
    return f"""\
select v.experiment, v.run, v.run_uuid as run_id,
  (case when v.step >= {int(rule.after_step)} and v.at <= {cut} and not exists (
    select 1 from metrics m
    where m.run_uuid = v.run_uuid and m.key = {quoted(rule.metric)} and m.timestamp > {cut}
  ) then v.step else -1 end)::float8 as fired
from live v
order by v.run_uuid"""


def _milliseconds(column: str) -> str:
    """Return a time stamp in milliseconds; some clients log seconds."""
    return f"case when {column} < {_IN_SECONDS} then {column} * 1000 else {column} end"


def _all(conditions: list[str]) -> str:
    return "\n    and ".join(conditions)

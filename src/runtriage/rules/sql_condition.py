"""Conditions of rules as SQL expressions over the newest points of runs. Pure.

The points stand in ``newest`` as ``p``, oldest first in ``place``: ``step``, ``value``, whether it is ``finite``, and
``log``, null where there is none.
"""
# ruff: noqa: S608  every text from outside goes through `quoted`, every number through `number`

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from runtriage.model.rule import (
    Above,
    AlertRule,
    Below,
    Drop,
    Jump,
    Knot,
    NonFinite,
    OutsideBand,
    OverBest,
    ShareAbove,
    ZScore,
)
from runtriage.rules.sql_text import INFINITE, number, quoted

_SAFE_SQUARE = 1e150


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """A condition.

    Attributes
    ----------
    when
        The expression; null counts as false.
    columns
        Further columns it uses, name to expression.
    table
        A further named table, from its comma to the end of its line.
    joined
        Tables to join.
    """

    when: str
    columns: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    joined: str = ""


def holds(rule: AlertRule) -> Holds:
    """Return the condition of a rule; that of steps that go back for what is not about values."""
    match rule.condition:
        case NonFinite():
            found = Holds(when="not finite")
        case Above(value=limit):
            found = Holds(when=f"value <> 'NaN' and value > {number(limit)}")
        case Below(value=limit):
            found = Holds(when=f"value <> 'NaN' and value < {number(limit)}")
        case Jump():
            found = _jump(rule.condition)
        case Drop(window=window, factor=factor):
            columns = {"top": f"max(p.log) over {_frame(window, '1 preceding')}"}
            found = Holds(columns=columns, when=f"top - log > {number(math.log(factor))}")
        case OverBest(factor=factor):
            found = _over_best(rule.metric, factor)
        case ShareAbove():
            found = _share(rule.condition)
        case ZScore():
            found = _z_score(rule.condition)
        case OutsideBand():
            found = _outside(rule.condition)
        case _:
            found = Holds(when="step < top")
    return found


def _jump(jump: Jump) -> Holds:
    before = _frame(jump.window, "1 preceding")
    columns = {"before": f"array_agg(p.log) over {before}", "rows_before": f"count(*) over {before}"}
    when = f"rows_before = {jump.window} and log - {_median('before')} > {number(math.log(jump.factor))}"
    return Holds(columns=columns, when=when)


def _share(flag: ShareAbove) -> Holds:
    frame = _frame(flag.window - 1, "current row")
    on = "count(*) filter (where p.value <> 'NaN' and p.value > 0.5)"
    columns = {"on_rows": f"{on} over {frame}", "rows_here": f"count(*) over {frame}"}
    when = f"rows_here = {flag.window} and on_rows::float8 / {flag.window} > {number(flag.share)}"
    return Holds(columns=columns, when=when)


def _over_best(metric: str, factor: float) -> Holds:
    """Compare with the smallest value so far: within the newest points, and before them."""
    best = "least(min(p.log) over (partition by p.run_uuid order by p.place), o.log)"
    table = f"""\
, older as materialized (
  select f.run_uuid, (
    select ln(min(b.value)) from metrics b
    where b.run_uuid = f.run_uuid and b.key = {quoted(metric)} and b.step < f.step
      and not b.is_nan and b.value > 0 and b.value < {INFINITE}
  ) as log
  from (select run_uuid, min(step) as step from newest group by run_uuid) f
)
"""
    joined = "\n  left join older o on o.run_uuid = p.run_uuid"
    when = f"log - best > {number(math.log(factor))}"
    return Holds(columns={"best": best}, table=table, joined=joined, when=when)


def _z_score(score: ZScore) -> Holds:
    """Compare with mean and deviation of the values before; squares of what is filtered out would overflow and fail."""
    before = _frame(score.window, "1 preceding")
    usable = f"filter (where p.finite and abs(p.value) < {number(_SAFE_SQUARE)})"
    columns = {
        "usable_rows": f"count(*) {usable} over {before}", "mean": f"avg(p.value) {usable} over {before}",
        "deviation": f"stddev_samp(p.value) {usable} over {before}",
    }
    when = (
        f"usable_rows = {score.window} and value <> 'NaN' and deviation > 0"
        f" and abs(value - mean) > {number(score.limit)} * deviation"
    )
    return Holds(columns=columns, when=when)


def _outside(band: OutsideBand) -> Holds:
    """Compare with the sides of the band, the logarithm interpolated between knots; there are none outside of them."""
    last = len(band.knots) - 1
    rows = [_segment(a, b, closed=i == last) for i, (a, b) in enumerate(pairwise(band.knots), start=1)]
    table = ",\n    ".join(rows)
    joined = f"""
  left join (values
    {table}
  ) k (step_a, step_b, until, low_a, low_b, high_a, high_b) on p.step >= k.step_a and p.step < k.until"""
    part = "(p.step - k.step_a)::float8 / (k.step_b - k.step_a)"
    columns = {
        "low": f"k.low_a::float8 + (k.low_b::float8 - k.low_a::float8) * {part}",
        "high": f"k.high_a::float8 + (k.high_b::float8 - k.high_a::float8) * {part}",
    }
    level = "log"
    if band.window > 1:
        columns["near"] = f"array_agg(p.log) over {_frame(band.window - 1, 'current row')}"
        level = _median("near")
    return Holds(columns=columns, joined=joined, when=f"{level} not between coalesce(low, '-Infinity')"
                 " and coalesce(high, 'Infinity')")


def _segment(a: Knot, b: Knot, *, closed: bool) -> str:
    """Return a row of the table of segments; a side that is open at one end is open along the whole of it."""
    sides = []
    for left, right in ((a.low, b.low), (a.high, b.high)):
        is_open = left is None or right is None
        sides += ["null", "null"] if is_open else [number(math.log(x)) for x in (left, right) if x is not None]
    return f"({a.step}, {b.step}, {b.step + closed}, {', '.join(sides)})"


def _frame(before: int, until: str) -> str:
    return f"(partition by p.run_uuid order by p.place rows between {before} preceding and {until})"


def _median(array: str) -> str:
    return f"(select percentile_cont(0.5) within group (order by x) from unnest({array}) x)"

"""What a rule says as the trigger of a W&B automation, and what that leaves out. Pure.

W&B keeps a window of the newest values of a metric on each run, and for a change a window right before it. It takes the
mean, the smallest or the largest of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from runtriage.model.alert import Change, Deviation, Over, RunEnd, Threshold, Trigger
from runtriage.model.rule import (
    Above,
    AlertRule,
    Backwards,
    Below,
    Drop,
    Ended,
    Jump,
    NonFinite,
    OutsideBand,
    OverBest,
    ShareAbove,
    Stalled,
    ZScore,
)

_HUGE = 1e100
_Found = tuple[Trigger, tuple[str, ...]] | str
_NEVER: Mapping[type, str] = {
    NonFinite: "no automation can tell that a value is NaN or infinite",
    OutsideBand: "the band changes with the step; an automation has one limit for the whole run",
    OverBest: "an automation does not remember the best value of a run",
    Backwards: "an automation does not see steps, so none can tell that they go back",
    Stalled: "an automation is looked at when a value arrives, so none can tell that no value arrives",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a rule watches in this project.

    Attributes
    ----------
    metric
        Exact name; hostile input. Empty for a rule on the run itself.
    squared
        The metric is logged squared, while the rule is about its root.
    """

    metric: str = ""
    squared: bool = False


def trigger_of(rule: AlertRule, watched: Watched) -> tuple[Trigger, tuple[str, ...]] | str:
    """Return the trigger of a rule and what it leaves out, or why there is none.

    Parameters
    ----------
    rule
        Its condition and for how many points; config and warm-up are not looked at.
    watched
        What it watches.
    """
    if not _is_text(watched.metric):
        return "the name of its metric is no text that can be sent"
    condition, points = rule.condition, rule.for_points
    found: _Found = _NEVER.get(type(condition), "an automation cannot wait until this has held for several points")
    match condition:
        case Above() | Below():
            found = _limit(condition, points, watched)
        case Jump() | Drop():
            found = _change(condition, points, watched)
        case ShareAbove() if points == 1:
            found = Threshold(
                metric=watched.metric, above=True, value=condition.share, over=Over.AVERAGE, window=condition.window
            ), ("the mean of the values stands for the share of those above one half: the same for zeros and ones",)
        case ZScore() if points == 1 and not watched.squared:
            found = Deviation(metric=watched.metric, window=condition.window, limit=condition.limit), (
                "W&B's documentation reads its z-score across runs, its client across the values of one run",
            )
        case Ended():
            found = _run_end(condition)
    return found


def _limit(condition: Above | Below, points: int, watched: Watched) -> _Found:
    """Return a limit that all of the newest points pass: the smallest, or the largest, of them does."""
    if watched.squared and condition.value < 0:
        return "its metric is logged squared, and the limit is negative"
    above = isinstance(condition, Above)
    over = Over.EACH if points == 1 else Over.MIN if above else Over.MAX
    value = condition.value * condition.value if watched.squared else condition.value
    if not math.isfinite(value):
        return "its metric is logged squared, and the square of the limit is no number any more"
    return Threshold(metric=watched.metric, above=above, value=value, over=over, window=points), ()


def _change(condition: Jump | Drop, points: int, watched: Watched) -> _Found:
    """Return a change against the values before."""
    factor = condition.factor ** (2 if watched.squared else 1) if condition.factor < _HUGE else condition.factor
    if factor >= _HUGE:
        return f"a change by a factor of {condition.factor:g} is beyond any automation"
    up = isinstance(condition, Jump)
    caveats = ("the mean of the values before stands for their median",) if up else ()
    if points > 1:
        caveats = (*caveats, f"the {'mean' if up else 'largest'} of {points} values stands for each of them")
    return Change(
        metric=watched.metric, up=up, share=_short(factor - 1 if up else 1 - 1 / factor),
        over=Over.AVERAGE if up else Over.MAX, window=points, before=condition.window,
    ), caveats


def without_limit(trigger: Trigger) -> Trigger:
    """Return a trigger without its limit: two that are then equal differ in nothing else."""
    match trigger:
        case Threshold():
            return msgspec.structs.replace(trigger, value=0.0)
        case Change():
            return msgspec.structs.replace(trigger, share=0.0)
        case Deviation():
            return msgspec.structs.replace(trigger, limit=0.0)
    return trigger


def looseness(trigger: Trigger) -> float:
    """Return a number that is larger for a limit that speaks less."""
    match trigger:
        case Threshold():
            return trigger.value if trigger.above else -trigger.value
        case Change():
            return trigger.share
        case Deviation():
            return trigger.limit
    return 0.0


def _run_end(condition: Ended) -> _Found:
    """Return the automation on the end of a run: W&B tells nobody of a run that was killed."""
    states = tuple(sorted({state for state in condition.states if state != "killed"}))
    if not states:
        return "W&B starts no automation for a run that was killed"
    killed = "killed" in condition.states
    return RunEnd(states=states), ("it says nothing of a run that was killed",) if killed else ()


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(share: float) -> float:
    """Round to what is meant: 0.62 and not 0.6200000000000001."""
    return float(f"{share:.6g}")

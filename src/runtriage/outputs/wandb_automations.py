"""Alert rules as W&B automations. Pure.

An automation compares the newest values of one metric, as they come in, with a limit, with the values before them, or
with their standard deviation, on every run of a project; or it waits for a run to end. That is less than a rule can
say. A rule is compiled only if the automation means the same; with ``approximate`` also if it means nearly the same,
and then what differs is written into it. Every other rule is returned with the reason in words.

What W&B makes of an automation is taken from its documentation; its servers were never asked.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from runtriage.model.alert import PREFIX, Alert, Change, Channel, Deviation, Over, RunEnd, Threshold, Trigger
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
from runtriage.outputs.alert_words import plain, say, trust

ONCE = "W&B sends an automation at most once per run in 24 hours, and says nothing when it is over"
"""What holds for all automations, whatever the rule says."""
NAMELESS = "W&B documents no variable by which a webhook would learn which run it is about; a Slack message shows it"

_NAME_LIMIT = 255
_HUGE = 1e100
_SHARED = ".any"
"""Ends the name of an automation for the rules of several configs; no id of a rule has a full stop."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A rule that is not compiled.

    Attributes
    ----------
    rule
        The rule.
    reason
        Why, in words.
    nearly
        Whether it would be compiled with ``approximate``.
    """

    rule: AlertRule
    reason: str
    nearly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What became of some rules.

    Attributes
    ----------
    alerts
        With unique names, in the order of their names.
    said
        How many rules they say.
    left
        Rules that stay with runtriage.
    unclear
        Names that rules would have about which nothing can be said now, because it is not known what they watch.
    """

    alerts: tuple[Alert, ...]
    said: int
    left: tuple[Left, ...]
    unclear: frozenset[str]

    def keeps(self, name: str) -> bool:
        """Tell whether an automation of this name is to stay although nothing is wanted of that name now."""
        shared, mark, _ = name.rpartition(_SHARED)
        return name in self.unclear or shared + mark in self.unclear


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A rule and the automation that says it, with what that leaves out."""

    rule: AlertRule
    trigger: Trigger
    caveats: tuple[str, ...]


def prefix_of(project: str) -> str:
    """Return what the names of our automations in a project begin with: two projects of a team never share a name."""
    return f"{PREFIX}{project}:"


def compile_rules(
    rules: Iterable[AlertRule], watched: Mapping[str, Watched | str], *, project: str, channel: Channel,
    approximate: bool = False,
) -> Compiled:
    """Compile rules.

    Parameters
    ----------
    rules
        With unique ids.
    watched
        Rule id to what it watches, or to the reason why that is not known.
    project
        Name of the project.
    channel
        Where all of them are sent.
    approximate
        Compile also what an automation can say only nearly. Rules of one kind for several configs then become one
        automation with the loosest of their limits, because an automation watches every run of its project.
    """
    said: list[_Said] = []
    left: list[Left] = []
    unclear: set[str] = set()
    for rule in sorted(rules, key=lambda rule: rule.id):
        known = watched[rule.id]
        found = _say(rule, known) if isinstance(known, Watched) else known
        if isinstance(known, str):
            unclear |= {prefix_of(project) + key for key in (rule.id, _shared_key(rule))}
        if isinstance(found, str):
            left.append(Left(rule=rule, reason=found))
        elif (differs := _differs(found)) and not approximate:
            left.append(Left(rule=rule, reason="; ".join(differs), nearly=True))
        else:
            said.append(found)
    alerts = _named(said, prefix_of(project), lambda name, group: _alert(name, group, channel))
    return Compiled(alerts=tuple(alerts), said=len(said), left=tuple(left), unclear=frozenset(unclear))


def _say(rule: AlertRule, watched: Watched) -> _Said | str:
    """Return the automation that says a rule, or why there is none."""
    if not _is_text(watched.metric):
        return "the name of its metric is no text that can be sent"
    found = _trigger(rule, watched)
    if isinstance(found, str):
        return found
    trigger, caveats = found
    if rule.after_step > 0 and not isinstance(trigger, RunEnd):
        caveats = (*caveats, f"it knows no warm-up and speaks before step {rule.after_step} too")
    return _Said(rule=rule, trigger=trigger, caveats=caveats)


def _trigger(rule: AlertRule, watched: Watched) -> _Found:
    """Return the trigger of a rule and what it leaves out, or why there is none."""
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


def _differs(said: _Said) -> tuple[str, ...]:
    """Return what an automation does not say as its rule does."""
    everywhere = "it speaks about the runs of every config of the project"
    return (everywhere, *said.caveats) if said.rule.config else said.caveats


def _run_end(condition: Ended) -> _Found:
    """Return the automation on the end of a run: W&B tells nobody of a run that was killed."""
    states = tuple(state for state in dict.fromkeys(condition.states) if state != "killed")
    if not states:
        return "W&B starts no automation for a run that was killed"
    killed = "killed" in condition.states
    return RunEnd(states=states), ("it says nothing of a run that was killed",) if killed else ()


def _named(
    said: Sequence[_Said], prefix: str, make: Callable[[str, Sequence[_Said]], Alert]
) -> list[Alert]:
    """Put together what one automation says, and give each a name of its own."""
    groups: dict[tuple[str, bytes], list[_Said]] = {}
    for one in said:
        key = _shared_key(one.rule) if one.rule.config else one.rule.id
        alike = msgspec.json.encode((one.rule.severity, _without_limit(one.trigger)))
        groups.setdefault((key, alike), []).append(one)
    keys = [key for key, _ in groups]
    alerts = []
    for (key, alike), group in groups.items():
        more = f"-{hashlib.sha256(alike).hexdigest()[:6]}" if keys.count(key) > 1 else ""
        alerts.append(make(f"{prefix}{key}{more}"[:_NAME_LIMIT], group))
    return sorted(alerts, key=lambda alert: alert.name)


def _shared_key(rule: AlertRule) -> str:
    """Return the name that a rule for one config shares with its like for others; no id of a rule looks like it."""
    return f"{rule.id.removesuffix(f'-{rule.config}')}{_SHARED}" if rule.config else rule.id


def _alert(name: str, group: Sequence[_Said], channel: Channel) -> Alert:
    loosest = max(group, key=lambda one: (_looseness(one.trigger), one.rule.id))
    rule, trigger = loosest.rule, loosest.trigger
    lines = [f"{plain(rule.about, 200)}", f"Sent when {say(trigger)}."]
    if len(group) > 1:
        lines.append(f"That is the loosest of the limits of {len(group)} configs.")
    lines += trust([one.rule for one in group])
    if differs := dict.fromkeys(text for one in group for text in _differs(one)):
        lines.append(f"Nearly what the rule says: {'; '.join(differs)}.")
    facts = {
        "source": "runtriage", "rule": name.removeprefix(PREFIX), "about": plain(rule.about, 200),
        "condition": say(trigger), "severity": str(rule.severity), "project": "${project_name}",
        "entity": "${entity_name}", "event": "${event_type}",
    }
    return Alert(
        name=name, about="\n".join(lines), title=plain(rule.about, 200).rstrip(".") or plain(rule.id),
        text="\n".join(lines[1:]), facts=facts, severity=rule.severity, trigger=trigger, channel=channel,
    )


def _without_limit(trigger: Trigger) -> Trigger:
    match trigger:
        case Threshold():
            return msgspec.structs.replace(trigger, value=0.0)
        case Change():
            return msgspec.structs.replace(trigger, share=0.0)
        case Deviation():
            return msgspec.structs.replace(trigger, limit=0.0)
    return trigger


def _looseness(trigger: Trigger) -> float:
    match trigger:
        case Threshold():
            return trigger.value if trigger.above else -trigger.value
        case Change():
            return trigger.share
        case Deviation():
            return trigger.limit
    return 0.0


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(share: float) -> float:
    """Round to what is meant: 0.62 and not 0.6200000000000001."""
    return float(f"{share:.6g}")

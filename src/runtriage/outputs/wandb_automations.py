"""Alert rules as W&B automations. Pure.

An automation compares the newest values of one metric, as they come in, with a limit, with the values before them, or
with their standard deviation, on every run of a project; or it waits for a run to end. That is less than a rule can
say. A rule is compiled only if the automation means the same; with ``approximate`` also if it means nearly the same,
and then what differs is written into it. Every other rule is returned with the reason in words.

What W&B makes of an automation is taken from its documentation; its servers were never asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from runtriage.model.alert import PREFIX, Alert, Channel, RunEnd, Trigger
from runtriage.model.rule import AlertRule
from runtriage.outputs.alert_words import plain, say, trust
from runtriage.outputs.wandb_triggers import Watched, looseness, trigger_of, without_limit

ONCE = "W&B sends an automation at most once per run in 24 hours, and says nothing when it is over"
"""What holds for all automations, whatever the rule says."""
NAMELESS = "W&B documents no variable by which a webhook would learn which run it is about"

_NAME_LIMIT = 255
_SHARED = ".any"
"""Ends the name of an automation for the rules of several configs; no id of a rule has a full stop."""


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
    found = trigger_of(rule, watched)
    if isinstance(found, str):
        return found
    trigger, caveats = found
    if rule.after_step > 0 and not isinstance(trigger, RunEnd):
        caveats = (*caveats, f"it knows no warm-up and speaks before step {rule.after_step} too")
    return _Said(rule=rule, trigger=trigger, caveats=caveats)


def _differs(said: _Said) -> tuple[str, ...]:
    """Return what an automation does not say as its rule does."""
    everywhere = "it speaks about the runs of every config of the project"
    return (everywhere, *said.caveats) if said.rule.config else said.caveats


def _named(
    said: Sequence[_Said], prefix: str, make: Callable[[str, Sequence[_Said]], Alert]
) -> list[Alert]:
    """Put together what one automation says, and give each a name of its own."""
    groups: dict[tuple[str, bytes], list[_Said]] = {}
    for one in said:
        key = _shared_key(one.rule) if one.rule.config else one.rule.id
        alike = msgspec.json.encode((one.rule.severity, without_limit(one.trigger)))
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
    loosest = max(group, key=lambda one: (looseness(one.trigger), one.rule.id))
    rule, trigger = loosest.rule, loosest.trigger
    lines = [f"{plain(rule.about, 200)}", f"Sent when {say(trigger)}."]
    if len(group) > 1:
        lines.append(f"That is the loosest of the limits of {len(group)} configs.")
    lines += trust([one.rule for one in group])
    if differs := dict.fromkeys(text for one in group for text in _differs(one)):
        lines.append(f"Nearly what the rule says: {'; '.join(differs)}.")
    facts = {
        "source": "runtriage", "rule": plain(name.removeprefix(PREFIX), _NAME_LIMIT), "about": plain(rule.about, 200),
        "condition": say(trigger), "severity": str(rule.severity), "project": "${project_name}",
        "entity": "${entity_name}", "event": "${event_type}",
    }
    return Alert(
        name=name, about="\n".join(lines), title=plain(rule.about, 200).rstrip(".") or plain(rule.id),
        text="\n".join(lines[1:]), facts=facts, severity=rule.severity, trigger=trigger, channel=channel,
    )

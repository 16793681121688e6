"""Alerts in words that are safe in a chat, a webhook and a page. Pure; names are hostile."""

from __future__ import annotations

from collections.abc import Sequence

from runtriage.model.alert import Change, Channel, ChannelKind, Deviation, Over, Threshold, Trigger
from runtriage.model.rule import AlertRule

_NAME = 80
_OVER = {Over.AVERAGE: "mean", Over.MIN: "smallest", Over.MAX: "largest"}


def plain(text: str, limit: int = _NAME) -> str:
    r"""Return text on one line that mentions nobody, links nowhere and names no variable or secret of the tracker.

    Examples
    --------
    >>> plain("<!channel> $TOKEN\n@here").encode("ascii", "replace")
    b'[!channel] ?TOKEN?(at)here'
    """
    flat = "".join(c if c.isprintable() else "?" for c in text)
    flat = flat.replace("@", "(at)").replace("<", "[").replace(">", "]").replace("$", "\uff04")
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def say(trigger: Trigger) -> str:
    """Return when an alert is sent, as the end of a sentence that begins with *when*."""
    match trigger:
        case Threshold():
            values = _window(trigger.over, trigger.window)
            return f"{values}{_metric(trigger.metric)} is {'above' if trigger.above else 'below'} {trigger.value:g}"
        case Change():
            now = _window(trigger.over, trigger.window)
            before = f"the {_OVER.get(trigger.over, 'each')} of the {trigger.before} before"
            verb = "above" if trigger.up else "below"
            return f"{now}{_metric(trigger.metric)} is at least {trigger.share * 100:.3g}% {verb} {before}"
        case Deviation():
            return (
                f"{_metric(trigger.metric)} is {trigger.limit:g} standard deviations off the mean of {trigger.window}"
            )
    return f"a run has {' or '.join(trigger.states)}"


def trust(rules: Sequence[AlertRule]) -> list[str]:
    """Return at most one sentence on where the limit of some rules comes from."""
    known = [rule.measured for rule in rules if rule.measured is not None]
    if not known:
        return []
    fired, runs = sum(m.false_alarms.fired for m in known), sum(m.false_alarms.runs for m in known)
    return [f"The rule fired on {fired} of {runs} healthy runs when each was left out of its own limits."]


def channel_words(channel: Channel) -> str:
    """Return a channel as a person asks for it and where it leads."""
    place = f", {plain(channel.place)}" if channel.place else ""
    kind = "Slack" if channel.kind is ChannelKind.SLACK else "webhook"
    return f"{plain(channel.name)} ({kind}{place})"


def _window(over: Over, window: int) -> str:
    return "" if over is Over.EACH or window == 1 else f"the {_OVER[over]} of the last {window} values of "


def _metric(name: str) -> str:
    return f"'{plain(name)}'"

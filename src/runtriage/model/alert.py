"""Alerts that a tracker is to watch for itself, and the ones found there: what is ours and what is not. Pure.

An alert is ours if its name begins with :data:`PREFIX` and its description ends with a mark that was made for this very
name. The mark also holds a digest of everything we wrote, by which a later look knows what has changed.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

import msgspec

from runtriage.model.rule import EndState
from runtriage.model.vocab import Severity

PREFIX = "runtriage:"
_MARK = re.compile(r"\[runtriage ([0-9a-f]{12}) ([0-9a-f]{16})\]\s*\Z")


class Over(StrEnum):
    """What is made of the values of a window before they are compared."""

    EACH = "each"
    AVERAGE = "average"
    MIN = "min"
    MAX = "max"


class _Trigger(msgspec.Struct, frozen=True, kw_only=True, tag_field="is"):
    """What all triggers share."""


class Threshold(_Trigger, frozen=True, tag="threshold"):
    """The newest values of a metric, taken together, are above or below a limit.

    Attributes
    ----------
    metric
        Exact name; hostile input.
    above, value
        Which side of which limit.
    over, window
        How many of the newest values, and how they are taken together.
    """

    metric: str
    above: bool
    value: float
    over: Over = Over.EACH
    window: int = 1


class Change(_Trigger, frozen=True, tag="change"):
    """The newest values of a metric are larger or smaller than those before them.

    Attributes
    ----------
    metric
        Exact name; hostile input.
    up, share
        By which part of what came before they are larger or smaller.
    over
        How the values of each window are taken together.
    window, before
        How many of the newest values, and how many before those.
    """

    metric: str
    up: bool
    share: float
    over: Over
    window: int
    before: int


class Deviation(_Trigger, frozen=True, tag="deviation"):
    """The value is so many standard deviations off the mean of a window, to either side."""

    metric: str
    window: int
    limit: float


class RunEnd(_Trigger, frozen=True, tag="run_end"):
    """The run ends in one of these states."""

    states: tuple[EndState, ...]


Trigger = Threshold | Change | Deviation | RunEnd


class ChannelKind(StrEnum):
    """How a tracker can tell somebody."""

    SLACK = "slack"
    WEBHOOK = "webhook"


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """Somewhere a tracker can send alerts to.

    Attributes
    ----------
    kind, id
        What it is, and the tracker's own id.
    name
        By which people ask for it; hostile input.
    place
        Slack workspace or host of the webhook; hostile input.
    """

    kind: ChannelKind
    id: str
    name: str
    place: str = ""


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert as it should stand at the tracker.

    Attributes
    ----------
    name
        Starts with :data:`PREFIX`; unique in the project.
    about
        For the person who finds it there.
    title, text
        What is sent to a chat, without markup of others.
    facts
        What is sent to a webhook; values may hold the tracker's own variables.
    severity
        How urgent.
    trigger
        When it is sent.
    channel
        Where to.
    """

    name: str
    about: str
    title: str
    text: str
    facts: dict[str, str]
    severity: Severity
    trigger: Trigger
    channel: Channel

    @property
    def digest(self) -> str:
        """16 hex digits that stand for everything we write."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

    @property
    def description(self) -> str:
        """What is written as its description: ``about`` and our mark."""
        return f"{self.about}\n\n[runtriage {_of_name(self.name)} {self.digest}]"


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """One alert found at a tracker, ours or not.

    Attributes
    ----------
    id
        The tracker's own.
    name, description
        Hostile input.
    enabled
        Whether it is switched on; people may switch ours off, and it stays so.
    trigger
        None where it cannot be read or is of a kind that we never write.
    """

    id: str
    name: str
    description: str
    enabled: bool = True
    trigger: Trigger | None = None

    @property
    def digest(self) -> str | None:
        """The digest in our mark; None if this alert is not ours, whatever it is called."""
        found = _MARK.search(self.description)
        if found is None or not self.name.startswith(PREFIX) or found[1] != _of_name(self.name):
            return None
        return found[2]


def _of_name(name: str) -> str:
    """Return what ties a mark to a name: a copy under another name is not ours."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]

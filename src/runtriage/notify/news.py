"""What is new on a run since people were last told. Pure.

Each run has a small state: the step up to which it was looked at, and the rules people know to be firing. A rule is
told when it starts, and when it has been quiet for a while, not at every point and not for every flicker in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from runtriage.model.rule import Firing

QUIET_SHARE = 0.02
"""Part of the run without a firing after which a rule counts as over."""

_LEAST_QUIET = 20
_ROOM = 4000


class Change(StrEnum):
    """What happened to a rule on a run."""

    STARTED = "started"
    PASSED = "passed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One thing to be told.

    Attributes
    ----------
    rule, run_id
        Which rule on which run.
    change
        Started and lasting, passed (started and over before anybody could be told), or ended.
    step
        Where it fired; for an end, the last step at which the condition held.
    value
        Of the metric there; NaN for an end.
    times
        Episodes since the last time.
    """

    rule: str
    run_id: str
    change: Change
    step: int
    value: float
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What people know of a run.

    Attributes
    ----------
    upto
        Newest step when it was last looked at.
    on
        Rules they know to be firing, with the step told.
    final
        True once the run was looked at after its end: it need not be read again.
    """

    upto: int = -1
    final: bool = False
    on: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What to tell of a run, and what people know once they were told."""

    news: tuple[News, ...]
    told: Told


def compare(firings: Iterable[Firing], told: Told | None, *, run_id: str, newest: int, live: bool) -> Round:
    """Return what to tell, and what people know once they were told.

    Parameters
    ----------
    firings
        All firings on one run.
    told
        What people know, or None when the run was never looked at.
    run_id
        The run.
    newest
        Newest step of the run.
    live
        Whether the run still goes on. One that had ended before it was first seen is nobody's alarm any more.
    """
    before = told or Told(upto=-1 if live else newest)
    quiet = max(_LEAST_QUIET, int(QUIET_SHARE * newest))
    by_rule: dict[str, list[Firing]] = {}
    for firing in firings:
        by_rule.setdefault(firing.rule, []).append(firing)
    news: list[News] = []
    on: dict[str, int] = {}
    for rule in sorted({*by_rule, *before.on}):
        mine = sorted(by_rule.get(rule, []), key=lambda firing: firing.step)
        fresh = [firing for firing in mine if firing.step > before.upto]
        lasts = bool(mine) and (mine[-1].ongoing or (live and newest - mine[-1].last_step <= quiet))
        if rule in before.on:
            if lasts:
                on[rule] = before.on[rule]
            else:
                last = mine[-1].last_step if mine else before.on[rule]
                news.append(News(rule=rule, run_id=run_id, change=Change.ENDED, step=last, value=float("nan")))
        elif fresh:
            news.append(_started(rule, fresh, lasts=lasts))
            if lasts:
                on[rule] = fresh[0].step
    return Round(news=tuple(news), told=Told(upto=max(newest, before.upto), on=on, final=not live))


def encode_told(told: Told) -> str:
    """Write a state as one short line: ``upto;rule@step,rule@step``, with ``!`` behind a final ``upto``."""
    on = ",".join(f"{rule}@{step}" for rule, step in sorted(told.on.items()))
    text = f"{told.upto}{'!' if told.final else ''};{on}"
    return text if len(text) <= _ROOM else text[:_ROOM].rpartition(",")[0]


def decode_told(text: str) -> Told | None:
    """Read a state; None for one that nobody of ours has written, which then counts as never looked at.

    Examples
    --------
    >>> decode_told("12;loss-nan@7") == Told(upto=12, on={"loss-nan": 7})
    True
    """
    upto, mark, rest = text.partition(";")
    try:
        pairs = [part.rpartition("@") for part in rest.split(",") if part]
        on = {rule: int(step) for rule, _, step in pairs if rule}
        return Told(upto=int(upto.rstrip("!")), on=on, final=upto.endswith("!")) if mark else None
    except ValueError:
        return None


def _started(rule: str, fresh: list[Firing], *, lasts: bool) -> News:
    first = fresh[0]
    change = Change.STARTED if lasts else Change.PASSED
    return News(
        rule=rule, run_id=first.run_id, change=change, step=first.step, value=first.value, times=len(fresh)
    )

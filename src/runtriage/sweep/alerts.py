"""One round of alerts: replay the rules, tell what is new, remember what was told. Outcomes, not exceptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from runtriage.analysis.prepare import prepare
from runtriage.errors import RuntriageError, UsageError
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.marks import WritePlan
from runtriage.model.rule import AlertRule
from runtriage.model.vocab import RunState
from runtriage.notify.message import Bulletin, Message, messages
from runtriage.notify.news import Round, Told, compare, decode_told, encode_told
from runtriage.outputs import tags
from runtriage.pipeline import Params, triage_cohort
from runtriage.rules.replay import replay
from runtriage.sweep.run import read_all
from runtriage.trackers.base import HistorySource, MarkTarget

_LIVE = frozenset({RunState.RUNNING, RunState.UNKNOWN})


class Memory(Protocol):
    """Where it is remembered what people were told of a run."""

    def told(self, info: RunInfo) -> Told | None:
        """Return what is remembered, or None; raises a RuntriageError when that cannot be read."""
        ...

    def remember(self, info: RunInfo, told: Told) -> None:
        """Keep it, for the next round."""
        ...


class Sends(Protocol):
    """Something that delivers messages."""

    def __len__(self) -> int:
        """Return the number of addresses."""
        ...

    def send(self, message: Message) -> tuple[str, ...]:
        """Return the addresses that did not take the message."""
        ...


class OnTheRun:
    """Remembers in a mark of the run itself: whoever tells the next time knows, from whatever machine.

    A listing of MLflow shows the mark. One of W&B does not while the run goes on and until a mark was written after its
    end: there it is read, and where the run has ended, only if the listing says by an empty mark that there is one.
    """

    def __init__(self, target: MarkTarget) -> None:
        self._target = target
        self._read: dict[str, Told | None] = {}

    def told(self, info: RunInfo) -> Told | None:
        """Return what the mark says."""
        if info.id not in self._read:
            text = info.tags.get(tags.ALERTS)
            if text == "" or (text is None and info.state in _LIVE):
                text = self._target.read_marks(info).tags.get(tags.ALERTS)
            self._read[info.id] = decode_told(text or "")
        return self._read[info.id]

    def remember(self, info: RunInfo, told: Told) -> None:
        """Set the mark."""
        self._target.apply(info, WritePlan(set_tags={tags.ALERTS: encode_told(told)}))
        self._read[info.id] = told


class InAFile:
    """Remembers in a local file, for sources on which nothing can be written.

    Raises
    ------
    UsageError
        The file exists and is something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            content = json.loads(path.read_bytes()) if path.is_file() and path.stat().st_size else {}
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
            raise UsageError("this is no file of told alerts", where=str(path), hint="give another --state file")
        self._known: dict[str, str] = content

    def told(self, info: RunInfo) -> Told | None:
        """Return what the file says."""
        return decode_told(self._known.get(f"{info.source} {info.id}", ""))

    def remember(self, info: RunInfo, told: Told) -> None:
        """Write the file anew, whole or not at all."""
        self._known[f"{info.source} {info.id}"] = encode_told(told)
        beside = self._path.with_name(f".{self._path.name}.new")
        try:
            beside.write_text(json.dumps(self._known, indent=0, sort_keys=True))
            beside.replace(self._path)
        except OSError as error:
            raise UsageError(f"the file cannot be written: {error.strerror}", where=str(self._path)) from None


@dataclass(slots=True, kw_only=True, eq=False)
class Summary:
    """What a round did.

    Attributes
    ----------
    sent
        Messages that at least one address took; in a dry run those that would be sent.
    failures
        Sentences: runs not read, addresses that took nothing, states not kept.
    looked_at
        Runs read.
    """

    sent: list[Message] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    looked_at: int = 0


def tell(
    source: HistorySource, infos: Sequence[RunInfo], rules: Sequence[AlertRule], *,
    params: Params, memory: Memory, sender: Sends | None, readers: int = 4,
) -> Summary:
    """Replay rules over runs and tell what is new.

    Parameters
    ----------
    source, infos
        The runs. Those that had ended before they were first looked at are left alone.
    rules
        To replay.
    params
        Settings of the analysis.
    memory
        What people know. It is brought up to date for a run once a message about it was taken by at least one address;
        what nobody took is told again the next time.
    sender
        Delivers; None tells nobody and remembers nothing (a dry run).
    readers
        Runs read at the same time.
    """
    summary = Summary()
    rounds: dict[str, Round] = {}
    found: list[RunHistory] = []
    due = list(_due(infos, memory, summary))
    for read in read_all(source, due, readers=readers):
        if read.history is None:
            summary.failures.append(f"{read.info.id}: {read.failure}")
            continue
        found.append(read.history)
        rounds[read.info.id] = round_of(read.history, rules, params, memory.told(read.info))
    summary.looked_at = len(found)
    silent = {run_id for run_id, one in rounds.items() if not one.news}
    told = set(silent)
    for message in messages(_bulletins(found, rounds, params), {rule.id: rule for rule in rules}):
        refused = sender.send(message) if sender is not None else ()
        summary.failures += [f"{address} did not take {message.title!r}" for address in refused]
        if sender is None or len(refused) < len(sender):
            summary.sent.append(message)
            told.update(message.runs)
    if sender is not None:
        remember(memory, [history.info for history in found if history.info.id in told], rounds, summary)
    return summary


def _due(infos: Sequence[RunInfo], memory: Memory, summary: Summary) -> Iterator[RunInfo]:
    """Yield the runs to look at; one of which it cannot be said what people know is left for the next round."""
    for info in infos:
        try:
            if due(info, memory):
                yield info
        except RuntriageError as error:
            summary.failures.append(f"{info.id}: {error}")


def due(info: RunInfo, memory: Memory) -> bool:
    """Tell whether a run is to be looked at: it goes on, or has not had its last word. Raises as the memory does."""
    told = memory.told(info)
    return info.state in _LIVE or (told is not None and not told.final)


def round_of(history: RunHistory, rules: Sequence[AlertRule], params: Params, told: Told | None) -> Round:
    """Replay rules over a run; return what is new on it."""
    firings = replay(rules, history, roles=params.roles, ignore=params.ignore_keys)
    newest = prepare(history, params.roles).last_step()
    return compare(firings, told, run_id=history.info.id, newest=newest, live=history.info.state in _LIVE)


def _bulletins(found: Sequence[RunHistory], rounds: dict[str, Round], params: Params) -> list[Bulletin]:
    if not any(one.news for one in rounds.values()):
        return []
    triages = triage_cohort(found, params=params)
    return [
        Bulletin(
            run_id=history.info.id, name=history.info.name or history.info.id, url=history.info.url,
            news=rounds[history.info.id].news, report=triage.report,
        )
        for history, triage in zip(found, triages, strict=True)
    ]


def remember(memory: Memory, infos: Sequence[RunInfo], rounds: dict[str, Round], summary: Summary) -> None:
    """Keep what was told of some runs; what cannot be kept is a failure of the round, and told again."""
    for info in infos:
        if memory.told(info) == rounds[info.id].told:
            continue
        try:
            memory.remember(info, rounds[info.id].told)
        except RuntriageError as error:
            summary.failures.append(f"{info.id}: what was told could not be kept, and will be told again: {error}")

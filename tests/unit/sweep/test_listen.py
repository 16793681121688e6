"""Rules within a sweep: each run read once, told once with its verdict, and told again when nobody took it."""

from __future__ import annotations

import numpy as np
import pytest

from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.rule import AlertRule, NonFinite
from runtriage.model.vocab import RunState
from runtriage.notify.message import Message
from runtriage.pipeline import Params
from runtriage.sweep.alerts import InAFile, Summary
from runtriage.sweep.executors import SerialExecutor
from runtriage.sweep.listen import Listener
from runtriage.sweep.run import sweep
from runtriage.testing.synth import healthy
from runtriage.trackers.memory import MemorySource

RULES = (AlertRule(id="nan", about="The loss is NaN.", role="loss", condition=NonFinite()),)


class Box:
    """Takes messages, or refuses them."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.taken: list[Message] = []
        self.refuses = refuses

    def __len__(self) -> int:
        return 1

    def send(self, message: Message) -> tuple[str, ...]:
        """Take one."""
        if self.refuses:
            return ("address 1 (json)",)
        self.taken.append(message)
        return ()


class Counting(MemorySource):
    """Counts what is read."""

    reads: list[str]

    def read(self, run: RunInfo) -> RunHistory:
        """Read one run."""
        self.reads = [*getattr(self, "reads", []), run.id]
        return super().read(run)


def run(name: str, state: RunState = RunState.RUNNING) -> RunHistory:
    """Return a run that ends in NaN."""
    whole = healthy(1)
    info = RunInfo(source="memory:", id=name, name=name, state=state, config=whole.info.config)
    tracks = {}
    for metric, track in whole.tracks.items():
        value = track.value.copy()
        value[-5:] = np.nan
        tracks[metric] = Track(step=track.step, value=value)
    return RunHistory(info=info, tracks=tracks)


@pytest.fixture
def swept(tmp_path):  # noqa: ANN001, ANN201
    """Return a way to sweep some runs with the rules and tell what is new."""

    def once(histories: list[RunHistory], box: Box | None) -> tuple[Summary, list[str]]:
        source = Counting(histories)
        listener = Listener(source, RULES, Params(), InAFile(tmp_path / "told.json"))
        groups = [[history.info for history in histories]]
        outcomes = list(sweep(listener, groups, analysis=SerialExecutor(), params=Params(), readers=2))
        reports = {outcome.report.run.id: outcome.report for outcome in outcomes}
        return listener.tell(lambda ids: {run_id: reports[run_id] for run_id in ids}, box), source.reads

    return once


def test_a_regime_is_told_once_and_each_run_read_once(swept) -> None:  # noqa: ANN001
    """Two sweeps, one message, one read a sweep; the message holds the verdict's causes."""
    box = Box()
    reads = [swept([run("live")], box)[1] for _ in range(2)]
    assert (reads, [message.title for message in box.taken]) == ([["live"], ["live"]], ["live: The loss is NaN"])
    assert "Likely causes" in box.taken[0].body


def test_what_nobody_took_is_told_by_the_next_sweep(swept) -> None:  # noqa: ANN001
    """A refused message is a failure of the round only."""
    refused, _ = swept([run("live")], Box(refuses=True))
    box = Box()
    swept([run("live")], box)
    assert (refused.sent, refused.failures) == ([], ["address 1 (json) did not take 'live: The loss is NaN'"])
    assert len(box.taken) == 1


def test_much_news_is_one_digest(swept) -> None:  # noqa: ANN001
    """Six runs that break at once are one message."""
    box = Box()
    swept([run(f"run {i}") for i in range(6)], box)
    assert [message.title for message in box.taken] == ["runtriage: 6 alerts, 0 over, on 6 runs"]


def test_a_dry_run_remembers_nothing(swept) -> None:  # noqa: ANN001
    """What would be sent is said twice if asked twice."""
    assert [len(swept([run("live")], None)[0].sent) for _ in range(2)] == [1, 1]


def test_a_run_that_had_ended_is_nobodys_alarm(swept) -> None:  # noqa: ANN001
    """It is read for its verdict, and not told."""
    summary, reads = swept([run("over", RunState.FINISHED)], Box())
    assert (summary.looked_at, summary.sent, reads) == (0, [], ["over"])

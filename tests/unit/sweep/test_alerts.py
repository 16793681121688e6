"""Rounds of alerts over the reference tracker: what is told, remembered, and told again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from runtriage.errors import UsageError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.marks import Marks
from runtriage.model.rule import AlertRule, Ended, NonFinite
from runtriage.model.vocab import RunState
from runtriage.notify.message import Message
from runtriage.outputs import tags
from runtriage.outputs.plan import clear, plan
from runtriage.pipeline import Params
from runtriage.sweep.alerts import InAFile, Memory, OnTheRun, Summary, tell
from runtriage.testing.synth import healthy
from runtriage.trackers.memory import MemorySource

RULES = (
    AlertRule(id="nan", about="The loss is NaN.", role="loss", condition=NonFinite()),
    AlertRule(id="failed", about="The run failed.", condition=Ended()),
)


class Box:
    """Takes messages, or refuses them."""

    def __init__(self, *, refusing: Sequence[str] = (), addresses: int = 1) -> None:
        self.taken: list[Message] = []
        self.refusing = tuple(refusing)
        self.addresses = addresses

    def __len__(self) -> int:
        return self.addresses

    def send(self, message: Message) -> tuple[str, ...]:
        """Take one."""
        if len(self.refusing) < self.addresses:
            self.taken.append(message)
        return self.refusing


def run(points: int, bad: Sequence[int] = (), *, state: RunState = RunState.RUNNING) -> RunHistory:
    """Return the first points of a run with NaN at some."""
    whole = healthy(1)
    info = RunInfo(source="memory:", id="live", name="live", state=state, config=whole.info.config)
    tracks = {}
    for name, track in whole.tracks.items():
        value = track.value[:points].copy()
        value[list(bad)] = np.nan
        tracks[name] = Track(step=track.step[:points], value=value)
    return RunHistory(info=info, tracks=tracks)


@pytest.fixture(params=["tag", "file"])
def rounds(request: pytest.FixtureRequest, tmp_path: Path):  # noqa: ANN201
    """Return a way to hold a round over one run, whichever way is remembered."""
    kept: dict[str, str] = {}

    def hold(history: RunHistory, box: Box | None) -> Summary:
        source = MemorySource([history])
        info = history.info
        if request.param == "tag":
            info = RunInfo(
                source=info.source, id=info.id, name=info.name, state=info.state, config=info.config, tags=dict(kept)
            )
            memory: Memory = OnTheRun(source)
        else:
            memory = InAFile(tmp_path / "told.json")
        done = tell(source, [info], RULES, params=Params(), memory=memory, sender=box, readers=1)
        kept.update(source.read_marks(history.info).tags)
        return done

    return hold


def test_a_regime_is_told_when_it_starts_and_when_it_ends(rounds) -> None:  # noqa: ANN001
    """Six rounds over a run that has NaN for a while: two messages."""
    box = Box()
    looks = [run(100), run(120, [119]), run(140, range(119, 140)), run(150, range(119, 141)), run(200, range(119, 141))]
    for history in (*looks, looks[-1]):
        rounds(history, box)
    assert [message.title for message in box.taken] == ["live: The loss is NaN", "live: over: The loss is NaN"]


def test_what_nobody_took_is_told_again(rounds) -> None:  # noqa: ANN001
    """A refused message is a failure of the round, and the next one brings it."""
    history = run(120, [119])
    refused = rounds(history, Box(refusing=["address 1 (json)"]))
    box = Box()
    rounds(history, box)
    assert (refused.failures, refused.sent) == (["address 1 (json) did not take 'live: The loss is NaN'"], [])
    assert len(box.taken) == 1


def test_one_address_of_two_is_enough_to_be_told(rounds) -> None:  # noqa: ANN001
    """The one that refused is named; the other does not get it twice."""
    history = run(120, [119])
    box = Box(refusing=["address 2 (slack)"], addresses=2)
    failures = rounds(history, box).failures
    rounds(history, box)
    assert (len(box.taken), len(failures)) == (1, 1)


def test_a_dry_run_sends_and_remembers_nothing(rounds) -> None:  # noqa: ANN001
    """What would be sent is returned, twice if asked twice."""
    history = run(120, [119])
    assert [len(rounds(history, None).sent) for _ in range(2)] == [1, 1]


def test_a_failure_is_told_once_even_without_a_new_point(rounds) -> None:  # noqa: ANN001
    """A run that fails where it was last seen going is told at the next look, and only then."""
    box = Box()
    for history in (run(100), *[run(100, state=RunState.FAILED)] * 2):
        rounds(history, box)
    assert [message.title for message in box.taken] == ["live: The run failed"]
    assert "- The run failed. Before step 100." in box.taken[0].body


def test_a_run_that_has_ended_is_read_once_more_and_then_left_alone(rounds) -> None:  # noqa: ANN001
    """After its last word an ended run costs nothing."""
    looks = [run(100), run(120, state=RunState.FINISHED), run(120, state=RunState.FINISHED)]
    assert [rounds(history, Box()).looked_at for history in looks] == [1, 1, 0]


def test_a_sweep_leaves_what_was_told_and_a_clear_removes_it() -> None:
    """The tag is not wanted by a verdict and must survive it; it is a trace of ours all the same."""
    present = Marks(tags={tags.ALERTS: "1;", tags.STATUS: "watch"})
    assert plan(Marks(tags={tags.STATUS: "watch"}), present).delete_tags == ()
    assert clear(present).delete_tags == (tags.ALERTS, tags.STATUS)


@pytest.mark.parametrize("content", ["[]", '{"a": 1}', "not json"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    """Nothing of others is overwritten."""
    (tmp_path / "x").write_text(content)
    with pytest.raises(UsageError, match="no file of told alerts"):
        InAFile(tmp_path / "x")

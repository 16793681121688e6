"""Our marks on W&B runs through the real client: written, read, moved, and taken off again."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.samples import put

from runtriage.errors import AccessRefusedError, MarkWriteError
from runtriage.model.marks import Marks, WritePlan
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
NAN = math.nan
PLAN = WritePlan(
    set_tags={"runtriage.status": "broken", "runtriage.findings": "loss_spike,divergence", "runtriage.z_max": "18.25"},
    set_note="lost at step 3",
    put_files={"runtriage/panel.html": b"<p>"},
)


def undo(marks: Marks) -> WritePlan:
    return WritePlan(delete_tags=tuple(marks.tags), delete_note=marks.note is not None, delete_files=tuple(marks.files))


@pytest.mark.parametrize("state", ["finished", "running"])
def test_apply_then_nothing_left_then_clear(server: StandIn, source: WandbSource, state: str) -> None:
    """Marks read back as applied, a second apply changes nothing, and clearing leaves the run as it was."""
    run = put(server, state=state, tags=["mine", "rt:todo", "mine"], summary={"acc": NAN})
    run.summary = '{"acc":NaN,  "big":1e5, "runtriage.contract": {"clip":"pre"}}'
    before = (list(run.tags), run.summary, run.config, run.notes)
    info = source.find_run("r1")
    source.apply(info, PLAN)
    marks = source.read_marks(info)
    assert (marks.tags, marks.note) == (PLAN.set_tags, PLAN.set_note)
    assert list(marks.files) == ["runtriage/panel.html"]
    assert run.tags == ["mine", "rt:todo", "mine", "rt:broken", "rt:loss_spike", "rt:divergence"]
    assert ("runtriage.status" in run.summary) == (state == "finished")
    server.counts.clear()
    source.apply(info, WritePlan(set_tags=PLAN.set_tags))
    assert server.counts["UpsertBucket"] == 0
    source.apply(info, undo(marks))
    assert (run.tags, run.summary.replace(" ", ""), run.config, run.notes) == (
        before[0],
        before[1].replace(" ", ""),
        *before[2:],
    )
    assert not run.files


def test_marks_move_once_the_run_ends(server: StandIn, source: WandbSource) -> None:
    """Values kept in a file while the run runs go into the summary afterwards, and the file goes."""
    run = put(server, state="running")
    info = source.find_run("r1")
    source.apply(info, PLAN)
    run.state = "finished"
    marks = source.read_marks(info)
    assert "runtriage/marks.json" in marks.files
    source.apply(
        info, WritePlan(set_tags=PLAN.set_tags, set_note=PLAN.set_note, delete_files=("runtriage/marks.json",))
    )
    assert source.read_marks(info).tags == PLAN.set_tags
    assert "runtriage/marks.json" not in run.files


def test_foreign_edit_between_listing_and_apply(server: StandIn, source: WandbSource) -> None:
    """Edits by others after our reading survive, where run.update() would have erased them."""
    run = put(server, tags=["a"], summary={"x": 1})
    info = source.find_run("r1")
    run.tags.append("b")
    run.notes, run.config = "theirs", '{"k": {"value": 1e5}}'
    run.summary = '{"x": 2, "y": Infinity}'
    source.apply(info, PLAN)
    assert run.tags[:2] == ["a", "b"]
    assert (run.notes, run.config) == ("theirs", '{"k": {"value": 1e5}}')
    assert run.summary.startswith('{"x": 2, "y": Infinity, ')


def test_removed_tag_is_seen(server: StandIn, source: WandbSource) -> None:
    """If somebody takes our tag off, reading the marks shows a difference."""
    run = put(server)
    source.apply(source.find_run("r1"), PLAN)
    run.tags.remove("rt:broken")
    assert source.read_marks(source.find_run("r1")).tags["runtriage.status"] != "broken"


def test_foreign_keys_are_refused(server: StandIn, source: WandbSource) -> None:
    """A plan that names what is not ours is refused before anything is written."""
    put(server)
    for plan in (WritePlan(set_tags={"theirs": "x"}), WritePlan(put_files={"runtriage/../x": b""})):
        with pytest.raises(MarkWriteError, match="not ours"):
            source.apply(source.find_run("r1"), plan)
    assert server.counts["UpsertBucket"] == 0


def test_read_only_rights(server: StandIn, source: WandbSource) -> None:
    """With rights to read only, reading goes on and writing is a typed refusal."""
    put(server)
    info = source.find_run("r1")
    server.read_only = True
    assert source.read(info).tracks
    with pytest.raises(AccessRefusedError, match="refuses"):
        source.apply(info, WritePlan(set_tags={"runtriage.status": "watch"}))

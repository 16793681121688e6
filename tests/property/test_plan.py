"""Reconciliation ends, and touches nothing that is not ours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtriage.model.marks import Marks, WritePlan, content_digest
from runtriage.outputs.plan import PANEL, TAGS, clear, plan

own_keys = st.sampled_from(["runtriage.status", "runtriage.findings", "runtriage.loss.z_max", "runtriage.cursor"])
all_keys = own_keys | st.sampled_from(["runtriage.contract", "team", "mlflow.note.content", "runtriage"])
paths = st.sampled_from(["runtriage/panel.svg", "runtriage/panel.html", "runtriage/old.svg"])
all_paths = paths | st.sampled_from(["model/weights.bin", "runtriage.txt"])
values = st.sampled_from(["healthy", "broken", "", "3.4"])
notes = st.none() | st.sampled_from(["", "runtriage: broken.", "other"])


@st.composite
def wanted_marks(draw: st.DrawFn) -> Marks:
    """Return marks as outputs.marks makes them: each file with its content."""
    contents = draw(st.dictionaries(paths, st.binary(max_size=3)))
    return Marks(
        tags=draw(st.dictionaries(own_keys, values)), note=draw(notes), contents=contents,
        files={path: content_digest(content) for path, content in contents.items()},
    )


present_marks = st.builds(
    Marks, tags=st.dictionaries(all_keys, values), note=notes,
    files=st.dictionaries(all_paths, st.binary(max_size=3).map(content_digest)),
)


def applied(change: WritePlan, present: Marks) -> Marks:
    """Return the marks after a plan, as a perfect tracker would have them."""
    tags = {k: v for k, v in present.tags.items() if k not in change.delete_tags} | change.set_tags
    files = {k: v for k, v in present.files.items() if k not in change.delete_files}
    files |= {path: content_digest(content) for path, content in change.put_files.items()}
    note = None if change.delete_note else present.note if change.set_note is None else change.set_note
    return Marks(tags=tags, note=note, files=files)


@given(wanted_marks(), present_marks)
def test_a_second_plan_is_empty(wanted: Marks, present: Marks) -> None:
    """What a plan asked for is, once applied, nothing to ask for again."""
    assert not plan(wanted, applied(plan(wanted, present), present))


@given(wanted_marks(), present_marks)
def test_a_plan_reaches_what_is_wanted(wanted: Marks, present: Marks) -> None:
    """After a plan our marks are the wanted ones."""
    after = applied(plan(wanted, present), present)
    assert {k: v for k, v in after.tags.items() if k in wanted.tags} == wanted.tags
    assert after.note == wanted.note
    assert {k: v for k, v in after.files.items() if k in wanted.files} == wanted.files


@given(present_marks)
def test_clearing_leaves_exactly_what_is_not_ours(present: Marks) -> None:
    """Every mark of ours goes; what people or other tools wrote stays."""
    after = applied(clear(present), present)
    foreign = {"runtriage.contract", "team", "mlflow.note.content", "runtriage"}
    assert after.tags == {k: v for k, v in present.tags.items() if k in foreign}
    assert after.files == {k: v for k, v in present.files.items() if not k.startswith("runtriage/")}
    assert after.note is None


@given(wanted_marks(), present_marks)
def test_a_kind_that_was_not_asked_for_is_left_alone(wanted: Marks, present: Marks) -> None:
    """Writing tags only keeps the panel that hangs there, and the other way round."""
    tags_only = plan(wanted, present, what=frozenset({TAGS}))
    assert tags_only == WritePlan(set_tags=tags_only.set_tags, delete_tags=tags_only.delete_tags)
    panel_only = plan(wanted, present, what=frozenset({PANEL}))
    assert (panel_only.set_tags, panel_only.delete_tags) == ({}, ())

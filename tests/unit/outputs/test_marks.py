"""What hangs on runs and experiments after a sweep."""

from __future__ import annotations

import json

import msgspec

from runtriage.model.curve import Triage
from runtriage.model.marks import Marks, content_digest
from runtriage.model.vocab import Level
from runtriage.outputs import tags
from runtriage.outputs.marks import wanted_marks, wanted_project_marks
from runtriage.outputs.plan import plan
from runtriage.outputs.report.markdown import NOTE_LIMIT, render_note
from runtriage.trackers.mlflow.view import compile_view
from tests.golden.made import report, spike_finding, triage

ALL = frozenset({"tags", "panel"})


def test_a_flagged_run_says_what_since_when_and_why() -> None:
    """The tags hold verdict, kinds, first step, likeliest cause and size; explained findings are not among them."""
    found = wanted_marks(triage(), what=ALL, cursor="c1").tags
    assert found == {
        "runtriage.status": "suspicious", "runtriage.findings": "loss_spike", "runtriage.first_step": "60",
        "runtriage.cause": "bad_batch", "runtriage.loss.z_max": "19.5", "runtriage.baseline": "cohort:8",
        "runtriage.config": "ab12", "runtriage.version": "0.1.0", "runtriage.cursor": "c1",
    }


def test_a_healthy_run_has_its_status_and_no_warning() -> None:
    """No note, no file, no finding."""
    found = wanted_marks(triage(Level.HEALTHY), what=ALL)
    assert (found.note, found.files) == (None, {})
    assert set(found.tags) == {tags.STATUS, tags.BASELINE, tags.CONFIG, tags.VERSION}


def test_a_withheld_run_says_why() -> None:
    """Without a note, the reason is a tag."""
    found = wanted_marks(triage(Level.WITHHELD), what=ALL)
    assert (found.note, found.tags[tags.REASON]) == (None, "Within the band of 8 runs.")


def test_a_run_that_turns_healthy_loses_its_warning() -> None:
    """The plan takes out note, files and finding tags, and sets the status."""
    flagged = wanted_marks(triage(), what=ALL)
    change = plan(wanted_marks(triage(Level.HEALTHY), what=ALL), flagged)
    assert change.set_tags == {tags.STATUS: "healthy"}
    assert change.delete_note
    assert change.delete_files == (tags.PANEL_HTML, tags.PANEL_SVG)
    assert tags.FINDINGS in change.delete_tags


def test_marks_are_a_function_of_the_triage() -> None:
    """Made twice, they are equal to the byte: no time, no order of sets, no counter."""
    once, again = (msgspec.json.encode(wanted_marks(triage(), what=ALL)) for _ in range(2))
    assert once == again


def test_files_come_with_their_digest() -> None:
    """What is compared is what is written."""
    found = wanted_marks(triage(), what=ALL)
    assert set(found.files) == {tags.PANEL_SVG, tags.PANEL_HTML}
    assert found.files == {path: content_digest(content) for path, content in found.contents.items()}


def test_only_the_kinds_asked_for_are_wanted() -> None:
    """`--write tags` makes no panel, `--write panel` no tags."""
    assert wanted_marks(triage(), what=frozenset({"tags"})).note is None
    assert wanted_marks(triage(), what=frozenset({"panel"})).tags == {}


def test_a_run_without_curves_gets_a_note_without_a_picture() -> None:
    """Where nothing can be drawn, words are all."""
    found = wanted_marks(Triage(report=report()), what=ALL, panel_url="/get-artifact?path=x")
    assert found.files == {}
    assert found.note is not None
    assert "![" not in found.note


def test_a_note_begins_with_a_plain_sentence() -> None:
    """MLflow shows the raw beginning of a note in its table of runs."""
    first = render_note(report(), panel_url="/get-artifact?path=runtriage%2Fpanel.svg").split("\n")[0]
    assert first.startswith("runtriage: suspicious. Loss spike in train/loss from step 60")


def test_a_note_of_many_findings_is_cut_between_findings() -> None:
    """The block stays within its limit and says how many findings are left out."""
    many = msgspec.structs.replace(report(), findings=tuple(spike_finding(f"m{i}" * 20) for i in range(40)))
    note = render_note(many)
    assert len(note) <= NOTE_LIMIT
    assert "… 36 more findings" in note


def test_a_digest_of_many_runs_stays_within_its_limit() -> None:
    """The worst runs are listed, the others counted."""
    found = wanted_project_marks([Triage(report=report(name=f"run {i}" * 9, run_id=str(i))) for i in range(500)])
    assert found.note is not None
    assert len(found.note) <= NOTE_LIMIT
    assert "more runs" in found.note


def test_the_order_of_runs_does_not_change_project_marks() -> None:
    """Two sweeps that list runs in another order agree."""
    runs = [Triage(report=report(name=f"n{i}", run_id=str(i))) for i in range(3)]
    assert wanted_project_marks(runs) == wanted_project_marks(runs[::-1])


def test_the_view_is_one_that_mlflow_can_be_given() -> None:
    """The tracker's compiler takes the view, with the metrics that the runs really have."""
    view = wanted_project_marks([Triage(report=report())]).tags[tags.VIEW]
    assert [chart["metric"] for chart in json.loads(view)["charts"]] == ["train/loss", "grad_norm", "lr"]
    assert json.loads(compile_view(view, 1))["name"] == tags.VIEW_NAME


def test_no_runs_want_nothing_on_an_experiment() -> None:
    """An empty sweep leaves no digest."""
    assert wanted_project_marks([]) == Marks()

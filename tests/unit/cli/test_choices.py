"""Which runs a check reads beside its own, and which a doctor looks at."""

from __future__ import annotations

import pytest

from runtriage.cli.check import SIBLINGS, siblings
from runtriage.cli.doctor import spread
from runtriage.cli.marks import marks_lines
from runtriage.cli.table import compared, what
from runtriage.cli.tell import plan_lines
from runtriage.model.history import RunInfo
from runtriage.model.marks import Marks, WritePlan
from runtriage.model.report import BaselineUse, Finding, Report, RunSummary
from runtriage.model.vocab import BaselineKind, Explanation, FindingKind, Level, Outcome, RunState, Severity
from runtriage.pipeline import Params


def _info(name: str, **config: object) -> RunInfo:
    return RunInfo(source="memory:", id=name, config=config)


def _finding(start: int, explained: Explanation | None = None) -> Finding:
    return Finding(
        kind=FindingKind.LOSS_SPIKE, metric="loss\x1b", role="loss", start_step=start, peak_step=start,
        severity=Severity.INFO, z=9.0, outcome=Outcome.RECOVERED, explained_by=explained,
    )


def _report(*findings: Finding, use: BaselineUse | None = None) -> Report:
    run = RunSummary(source="memory:", id="a", name="a", state=RunState.FINISHED)
    base = use or BaselineUse(kind=BaselineKind.NONE)
    return Report(run=run, verdict=Level.WATCH, reason="So it is.", baseline=base, findings=findings)


def test_siblings_have_the_same_config_and_are_not_the_run_itself() -> None:
    """Another seed is a sibling, another learning rate is not."""
    infos = [_info("a", lr=1, seed=1), _info("b", lr=1, seed=2), _info("c", lr=2)]
    assert [info.id for info in siblings(infos, infos[0], Params())] == ["b"]


def test_a_run_without_a_config_has_no_siblings() -> None:
    """Runs of which nothing is known are not like each other."""
    assert siblings([_info("a"), _info("b")], _info("a"), Params()) == []


def test_siblings_are_bounded() -> None:
    """A cohort of thousands is not read for one run."""
    infos = [_info(str(i), lr=1) for i in range(10 * SIBLINGS)]
    assert len(siblings(infos, infos[0], Params())) == SIBLINGS


def test_a_sample_is_spread_over_the_cohorts() -> None:
    """A large cohort does not hide the small ones."""
    cohorts = {"x": [_info(f"x{i}") for i in range(9)], "y": [_info("y0")], "": [_info("z0"), _info("z1")]}
    assert [info.id for info in spread(cohorts, 5)] == ["x0", "y0", "z0", "x1", "z1"]


def test_a_plan_is_said_in_words() -> None:
    """Every kind of change has its line, and values cannot break out of it."""
    plan = WritePlan(
        set_tags={"runtriage.status": "a\nb"}, delete_tags=("runtriage.x",), set_note="n", delete_note=True,
        put_files={"p": b"123"}, delete_files=("q",),
    )
    assert plan_lines(plan) == [
        "set runtriage.status = a?b", "remove runtriage.x", "write the note block", "remove the note block",
        "put p (3 bytes)", "remove q",
    ]


def test_no_plan_is_no_words() -> None:
    """A run that was not planned for says nothing."""
    assert plan_lines(None) == []


def test_marks_are_said_in_words() -> None:
    """Tags, the size of the note, and files."""
    marks = Marks(tags={"runtriage.status": "broken"}, note="a\nb", files={"runtriage/panel.svg": "0"})
    assert marks_lines(marks) == ["runtriage.status = broken", "note block of 2 lines", "file runtriage/panel.svg"]


def test_what_alarms_is_named_before_what_is_explained() -> None:
    """The table speaks of the unexplained finding first, and counts what it leaves out."""
    explained = [_finding(i, Explanation.SHARED_BATCH) for i in range(3)]
    words = what(_report(*explained, _finding(7)))
    assert (words.split("; ")[0], words.split("; ")[-1]) == ("loss spike in loss? at 7, recovered", "1 more")


def test_without_findings_the_reason_is_given() -> None:
    """A quiet run says why it is quiet."""
    assert what(_report()) == "So it is."


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (BaselineUse(kind=BaselineKind.COHORT, runs=1), "1 sibling"),
        (BaselineUse(kind=BaselineKind.COHORT, runs=4), "4 siblings"),
        (BaselineUse(kind=BaselineKind.SELF), "itself"),
        (BaselineUse(kind=BaselineKind.NONE), "nothing"),
    ],
)
def test_the_table_says_what_a_run_was_compared_with(use: BaselineUse, words: str) -> None:
    """Cohort, own past, or nothing."""
    assert compared(_report(use=use)) == words

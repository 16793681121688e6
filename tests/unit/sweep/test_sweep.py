"""A sweep over the reference tracker: outcomes, failures, and what is written back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from runtriage.errors import RunReadError, SourceUnreachableError
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.marks import Marks, WritePlan
from runtriage.model.vocab import Level
from runtriage.pipeline import Params, learn
from runtriage.sweep import breaker, job
from runtriage.sweep.executors import SerialExecutor
from runtriage.sweep.outcome import Outcome, Tally
from runtriage.sweep.run import sweep
from runtriage.sweep.select import group
from runtriage.sweep.write import Writer
from runtriage.testing.synth import cohort, faulty, healthy, history
from runtriage.trackers.memory import MemorySource

ALL = frozenset({"tags", "panel", "view"})


class Failing(MemorySource):
    """The reference tracker, in which some runs cannot be read or marked."""

    def __init__(self, histories: Sequence[RunHistory], errors: dict[str, Exception], *, on: str) -> None:
        super().__init__(histories)
        self.errors = errors
        self.on = on
        self.asked: list[str] = []

    def read(self, info: RunInfo) -> RunHistory:
        """Read, or fail."""
        self.asked.append(info.id)
        if self.on == "read" and info.id in self.errors:
            raise self.errors[info.id]
        return super().read(info)

    def apply(self, info: RunInfo, plan: WritePlan) -> None:
        """Mark, or fail."""
        self.asked.append(f"apply {info.id}")
        if self.on == "apply" and info.id in self.errors:
            raise self.errors[info.id]
        super().apply(info, plan)


def swept(source: MemorySource, *, writer: Writer | None = None, **how: Any) -> dict[str, Outcome]:
    """Sweep all runs of a source and return the outcomes by run."""
    groups = group(list(source.list_runs()))
    outcomes = sweep(source, groups, analysis=SerialExecutor(), params=Params(), writer=writer, readers=2, **how)
    return {outcome.report.run.id: outcome for outcome in outcomes}


def writing(source: MemorySource, what: frozenset[str] = ALL, **how: Any) -> tuple[Writer, dict[str, Outcome]]:
    """Sweep and write; return the writer and the outcomes."""
    writer = Writer(target=source, what=what, **how)
    outcomes = swept(source, writer=writer)
    writer.project([outcome.triage for outcome in outcomes.values()])
    return writer, outcomes


@pytest.fixture
def runs() -> list[RunHistory]:
    """Five healthy runs and one that diverges."""
    return [*cohort(5), faulty("divergence", run_id="bad")]


@pytest.fixture
def source(runs: list[RunHistory]) -> Iterator[MemorySource]:
    """Put the runs into the reference tracker."""
    return MemorySource(runs)


def test_every_run_has_an_outcome(source: MemorySource) -> None:
    """A sweep answers for each run it was given."""
    assert set(swept(source)) == {info.id for info in source.list_runs()}


def test_the_broken_run_stands_out(source: MemorySource) -> None:
    """Siblings are healthy and the run with the fault is not."""
    flagged = [name for name, outcome in swept(source).items() if outcome.report.verdict != Level.HEALTHY]
    assert flagged == ["bad"]


def test_reading_writes_nothing(source: MemorySource) -> None:
    """Without a writer the tracker is not touched."""
    swept(source)
    assert source.writes == 0


def test_a_run_that_cannot_be_read_is_an_outcome(runs: list[RunHistory]) -> None:
    """The run is withheld with the reason, and the others are judged."""
    outcomes = swept(Failing(runs, {"run-2": RunReadError("the disk is gone")}, on="read"))
    assert [(o.report.verdict, o.failure) for o in outcomes.values() if o.failure] == [
        (Level.WITHHELD, "the disk is gone")
    ]


def test_an_unforeseen_error_stops_nobody_else(runs: list[RunHistory]) -> None:
    """A bug in reading one run costs that run."""
    outcomes = swept(Failing(runs, {"run-2": KeyError("x")}, on="read"))
    assert [o.failure for o in outcomes.values() if o.failure] == ["unexpected KeyError while reading: 'x'"]


def test_a_silent_server_is_not_asked_for_ever(runs: list[RunHistory]) -> None:
    """After some runs without an answer the rest is not tried."""
    source = Failing(runs, {run.info.id: SourceUnreachableError("no answer") for run in runs}, on="read")
    reader = job.Reader(source)
    failures = [reader(info).failure for info in source.list_runs()]
    assert (len(source.asked), failures[-1]) == (breaker.SILENT, "not tried: the source stopped answering")


def broken(what: str = "500") -> RunReadError:
    """Return what a run is answered with by a server that is broken itself."""
    error = RunReadError(what)
    error.at_server = True
    return error


def test_a_broken_server_is_not_asked_for_ever() -> None:
    """A server that fails for many runs in a row is given up; one that fails for runs here and there is not."""
    runs = [history({"loss": ([0], [1.0])}, run_id=f"r{i}") for i in range(breaker.FAILING + 5)]
    source = Failing(runs, {run.info.id: broken() for run in runs}, on="read")
    reader = job.Reader(source)
    failures = [reader(info).failure for info in source.list_runs()]
    assert len(source.asked) == breaker.FAILING
    assert failures[-1] == "not tried: the source failed for 10 runs in a row"
    source.errors = {run.info.id: broken() for run in runs[::2]}
    reader = job.Reader(source)
    assert sum(reader(info).failure == "500" for info in source.list_runs()) == len(source.errors)


def test_marks_are_not_tried_for_ever(runs: list[RunHistory]) -> None:
    """Where the source stopped answering no further run, nor the experiment, is marked; the verdicts are whole."""
    source = Failing(runs, {run.info.id: SourceUnreachableError("no answer") for run in runs}, on="apply")
    writer, outcomes = writing(source)
    why = "not tried: the source stopped answering"
    assert sum(asked.startswith("apply") for asked in source.asked) == breaker.SILENT
    assert [outcome.write_failure for outcome in outcomes.values()][breaker.SILENT :] == [why] * 3
    assert (writer.project([]), {outcome.failure for outcome in outcomes.values()}) == ((None, why), {None})


def test_a_failing_analysis_costs_only_the_run_at_fault(
    runs: list[RunHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a cohort cannot be analysed together, each run is tried alone."""
    real = job.triage_cohort

    def fussy(histories: Sequence[RunHistory], **how: Any) -> Any:
        if any(each.info.id == "bad" for each in histories):
            raise ArithmeticError("no")
        return real(histories, **how)

    monkeypatch.setattr(job, "triage_cohort", fussy)
    failures = {name: outcome.failure for name, outcome in swept(MemorySource(runs)).items() if outcome.failure}
    assert failures == {"bad": "unexpected ArithmeticError in the analysis: no"}


def test_learned_baselines_judge_instead_of_siblings(runs: list[RunHistory]) -> None:
    """A run alone in its source is compared with the cohort it was not part of."""
    baselines = learn(runs[:5])
    outcome = swept(MemorySource(runs[5:]), baselines=baselines)["bad"]
    assert (outcome.report.baseline.runs, outcome.report.verdict != Level.HEALTHY) == (5, True)


def test_verdicts_are_written(source: MemorySource) -> None:
    """Each run carries its verdict as a tag."""
    _, outcomes = writing(source)
    tags = {name: source.tags_of(name)["runtriage.status"] for name in outcomes}
    assert tags == {name: str(outcome.report.verdict) for name, outcome in outcomes.items()}


def test_a_second_sweep_plans_nothing(source: MemorySource) -> None:
    """What hangs there already is not written again."""
    writing(source)
    before = source.writes
    writer, outcomes = writing(source)
    plans = [bool(outcome.plan) for outcome in outcomes.values()]
    assert (any(plans), writer.refused, source.writes) == (False, None, before)


def test_a_run_that_turns_healthy_loses_its_warning(source: MemorySource) -> None:
    """Warning tags, note and panel go when the run is judged healthy."""
    writing(source)
    source.put(healthy(9, run_id="bad"))
    _, outcomes = writing(source)
    marks = source.read_marks(source.find_run("bad"))
    assert (outcomes["bad"].report.verdict, "runtriage.findings" in marks.tags, marks.note, marks.files) == (
        Level.HEALTHY, False, None, {},
    )


def test_a_dry_run_plans_and_writes_nothing(source: MemorySource) -> None:
    """The plans are there, the tracker is not touched."""
    _, outcomes = writing(source, dry=True)
    assert (all(outcome.plan for outcome in outcomes.values()), source.writes) == (True, 0)


def test_only_the_kinds_asked_for_are_written(source: MemorySource) -> None:
    """With tags only, there is neither note nor panel nor view."""
    writing(source, frozenset({"tags"}))
    marks = source.read_marks(source.find_run("bad"))
    assert (marks.note, marks.files, source.read_project_marks()) == (None, {}, Marks())


def test_kinds_not_asked_for_are_left_alone(source: MemorySource) -> None:
    """Writing tags does not remove the panels of an earlier sweep."""
    writing(source)
    before = source.read_marks(source.find_run("bad"))
    writing(source, frozenset({"tags"}))
    assert source.read_marks(source.find_run("bad")) == before


def test_where_files_cannot_be_stored_the_note_goes_without(source: MemorySource) -> None:
    """A tracker without room for files gets tags and note, and no failure."""
    _, outcomes = writing(source, without_files="no artifact proxy")
    marks = source.read_marks(source.find_run("bad"))
    assert (marks.files, marks.note is not None, outcomes["bad"].write_failure) == ({}, True, None)


def test_read_only_rights_still_report(runs: list[RunHistory]) -> None:
    """A refusal is noted once, and every run has its verdict."""
    source = MemorySource(runs, writable=False)
    writer, outcomes = writing(source)
    verdicts = {outcome.report.verdict for outcome in outcomes.values()}
    assert ("may not write" in (writer.refused or ""), Level.WITHHELD in verdicts) == (True, False)


def test_a_run_that_cannot_be_marked_stops_nobody_else(runs: list[RunHistory]) -> None:
    """A failed write is part of the run's outcome; the others are marked."""
    source = Failing(runs, {"run-2": ValueError("odd")}, on="apply")
    _, outcomes = writing(source)
    unwritten = {name: o.write_failure for name, o in outcomes.items() if o.write_failure}
    assert (unwritten, "runtriage.status" in source.tags_of("run-3")) == (
        {"run-2": "unexpected ValueError while writing: odd"}, True,
    )


def test_runs_that_were_not_read_are_not_marked(runs: list[RunHistory]) -> None:
    """A verdict that rests on a failed read is not written over an earlier one."""
    source = Failing(runs, {"run-2": RunReadError("gone")}, on="read")
    writing(source)
    assert source.tags_of("run-2") == {}


def test_the_tally_counts() -> None:
    """Counts, failures and the sentence follow the outcomes."""
    tally = Tally()
    source = Failing([*cohort(3), history({}, run_id="empty")], {"run-1": RunReadError("gone")}, on="read")
    for outcome in swept(source).values():
        tally.add(outcome)
    assert tally.sentence() == "4 runs: 2 healthy, 1 withheld, 1 failed"


@pytest.mark.parametrize(
    ("threshold", "reached"), [(Level.WATCH, True), (Level.SUSPICIOUS, True), (Level.BROKEN, False)]
)
def test_the_tally_knows_whether_a_threshold_is_reached(threshold: Level, *, reached: bool) -> None:
    """Verdicts at or above the threshold count, withheld ones never do."""
    tally = Tally()
    tally.levels.update([Level.SUSPICIOUS, Level.WITHHELD])
    assert tally.worst_reaches(threshold) is reached

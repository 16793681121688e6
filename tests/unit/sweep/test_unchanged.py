"""What need not be read again, and what does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtriage.model.history import RunInfo
from runtriage.model.marks import Marks
from runtriage.model.vocab import BaselineKind, Lang, Level, RunState
from runtriage.outputs import tags
from runtriage.outputs.plan import TAGS
from runtriage.pipeline import Params, learn
from runtriage.sweep.unchanged import Basis, basis_of, is_project_sealed, seal, seal_project, split
from runtriage.testing.synth import cohort

WHAT = frozenset({TAGS})
BASIS = Basis(digest="d")


def info(name: str, *, config: dict[str, object] | None = None, cursor: str = "c") -> RunInfo:
    """Return a run as listed, without marks."""
    return RunInfo(
        source="memory:", id=name, state=RunState.FINISHED, cursor=cursor,
        config={"lr": 1} if config is None else config,
    )  # fmt: skip


def marked(infos: list[RunInfo], basis: Basis = BASIS) -> list[RunInfo]:
    """Return runs as they are listed after a sweep."""
    made_of = basis.of_runs([infos])
    values = {tags.STATUS: "watch", tags.FINDINGS: "loss_spike", tags.z_max("loss"): "7.1"}
    sealed = {each.id: values | {tags.CURSOR: seal(made_of[each.id], values)} for each in infos if each.id in made_of}
    return [replace(each, tags={"theirs": "x", **sealed.get(each.id, values)}) for each in infos]


def kept(infos: list[RunInfo], basis: Basis = BASIS) -> list[str]:
    """Return the runs that need not be read."""
    outcomes, rest = split([infos], basis.of_runs([infos]))
    assert len(outcomes) + sum(map(len, rest)) == len(infos)
    return [outcome.report.run.id for outcome in outcomes]


def test_nothing_changed() -> None:
    """A cohort as it was left is kept, with the verdicts that its marks say."""
    infos = marked([info("a"), info("b")])
    outcomes, rest = split([infos], BASIS.of_runs([infos]))
    assert rest == []
    assert [(o.report.run.id, o.report.verdict, o.kept) for o in outcomes] == [
        ("a", Level.WATCH, True), ("b", Level.WATCH, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("lang", "words"), [(Lang.EN, "loss spike"), (Lang.ZH, "损失尖峰")])
def test_what_is_kept_is_told_in_the_language_that_was_asked_for(lang: Lang, words: str) -> None:
    """Marks hold ids, so a run that is not read again is spoken of in any language."""
    infos = marked([info("a")])
    outcomes, _ = split([infos], BASIS.of_runs([infos]), lang)
    assert [(o.report.reason, o.report.language) for o in outcomes] == [(words, lang)]


def test_what_is_kept_says_what_it_was_compared_with_and_since_when() -> None:
    """The tags hold the number of siblings and the first step."""
    infos = [info("a")]
    made_of = BASIS.of_runs([infos])["a"]
    values = {tags.STATUS: "watch", tags.FINDINGS: "loss_spike", tags.FIRST_STEP: "70", tags.BASELINE: "cohort:5"}
    outcomes, _ = split([[replace(infos[0], tags=values | {tags.CURSOR: seal(made_of, values)})]], {"a": made_of})
    report = outcomes[0].report
    assert (report.reason, report.baseline.kind, report.baseline.runs) == (
        "loss spike, from step 70", BaselineKind.COHORT, 5,
    )  # fmt: skip


def test_another_language_is_written_anew() -> None:
    """Notes and panels are in a language, so a sweep in another one reads the runs again."""
    digests = {basis_of(Params(lang=lang), None, WHAT, files=True).digest for lang in Lang}
    assert len(digests) == len(Lang)


def test_first_time() -> None:
    """Runs without marks are all read."""
    assert kept([info("a"), info("b")]) == []


def test_a_sibling_that_changed_changes_the_cohort() -> None:
    """One run with more history is read together with those whose verdicts rest on it."""
    first, second = marked([info("a"), info("b")])
    assert kept([first, replace(second, cursor="more")]) == []


def test_a_new_sibling_changes_the_cohort() -> None:
    """A run that joins a cohort is part of what all verdicts of the cohort are made of."""
    assert kept([*marked([info("a"), info("b")]), info("new")]) == []


def test_a_deleted_sibling_changes_the_cohort() -> None:
    """So is one that went."""
    assert kept(marked([info("a"), info("b"), info("c")])[:2]) == []


def test_unknown_cursor() -> None:
    """Where a listing cannot tell whether a run changed, its cohort is read."""
    assert kept(marked([info("a"), info("b", cursor="")])) == []


def test_runs_without_a_config_stand_alone() -> None:
    """A run that is compared with nothing is kept whatever becomes of the others."""
    infos = marked([info("a", config={}), info("b", config={})])
    assert kept([infos[0], replace(infos[1], cursor="more"), info("c", config={})]) == ["a"]


def test_against_baselines_runs_stand_alone() -> None:
    """Where verdicts rest on learned baselines, siblings do not matter."""
    basis = replace(BASIS, alone=True)
    first, second = marked([info("a"), info("b")], basis)
    assert kept([first, replace(second, cursor="more")], basis) == ["a"]


@pytest.mark.parametrize(
    "edit", [{tags.STATUS: "healthy"}, {tags.FINDINGS: ""}, {tags.z_max("loss"): "9"}, {tags.CAUSE: "bad_batch"}]
)
def test_marks_that_somebody_edited(edit: dict[str, str]) -> None:
    """A run whose marks were changed by hand is judged again, so that they are put right."""
    found = marked([info("a")])[0]
    assert kept([replace(found, tags={**found.tags, **edit})]) == []


def test_marks_of_others_do_not_matter() -> None:
    """Foreign tags, and what was told to people, are no part of it."""
    found = marked([info("a")])[0]
    assert kept([replace(found, tags={**found.tags, "theirs": "y", "runtriage.alerts": "told"})]) == ["a"]


def test_what_else_verdicts_are_made_of() -> None:
    """Settings, baselines, kinds of marks and the place for files all count."""
    usual = Params()
    digests = [
        basis_of(usual, None, WHAT, files=True).digest,
        basis_of(replace(usual, false_alarm_budget=0.02), None, WHAT, files=True).digest,
        basis_of(replace(usual, roles={"x": "loss"}), None, WHAT, files=True).digest,
        basis_of(usual, learn(cohort(3)), WHAT, files=True).digest,
        basis_of(usual, None, WHAT | {"panel"}, files=True).digest,
        basis_of(usual, None, WHAT, files=False).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert basis_of(Params(), None, WHAT, files=True).digest == digests[0]


def test_an_experiment_as_it_was_left() -> None:
    """Marks that carry the seal of these runs and of themselves are whole."""
    left = Marks(tags={tags.VIEW: "v"}, note="n")
    sealed = Marks(tags={tags.VIEW: "v", tags.CURSOR: seal_project({"a": "1"}, left)}, note="n")
    assert is_project_sealed({"a": "1"}, sealed)


@pytest.mark.parametrize(
    ("made_of", "view", "note"),
    [({"a": "1", "b": "2"}, "v", "n"), ({}, "v", "n"), ({"a": "2"}, "v", "n"), ({"a": "1"}, "w", "n"),
     ({"a": "1"}, "v", None)],
)  # fmt: skip
def test_an_experiment_that_was_not(made_of: dict[str, str], view: str, note: str | None) -> None:
    """A run more, a run less, a run that changed, another view or no note break the seal."""
    cursor = seal_project({"a": "1"}, Marks(tags={tags.VIEW: "v"}, note="n"))
    assert not is_project_sealed(made_of, Marks(tags={tags.VIEW: view, tags.CURSOR: cursor}, note=note))

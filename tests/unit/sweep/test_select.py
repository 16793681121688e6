"""Which runs a sweep looks at, and in which groups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtriage.model.history import RunInfo
from runtriage.model.vocab import RunState
from runtriage.pipeline import MAX_COHORT
from runtriage.sweep.select import LONERS_TOGETHER, Selection, choose, group


def _info(name: str, **facts: object) -> RunInfo:
    return RunInfo(source="memory:", id=name, **facts)  # type: ignore[arg-type]


def _ids(groups: list[list[RunInfo]]) -> list[list[str]]:
    return [[info.id for info in infos] for infos in groups]


def test_everything_is_chosen_by_default() -> None:
    """No selection keeps all runs, in the order of the listing."""
    infos = [_info("b"), _info("a")]
    assert choose(infos, Selection()) == infos


def test_runs_started_before_are_left_out() -> None:
    """A run known to have started earlier is not looked at; one whose start is unknown is."""
    infos = [_info("old", started=1.0), _info("new", started=9.0), _info("unknown")]
    assert [info.id for info in choose(infos, Selection(since=5.0))] == ["new", "unknown"]


def test_only_one_state() -> None:
    """Only runs in the state asked for are looked at."""
    infos = [_info("a", state=RunState.RUNNING), _info("b", state=RunState.FAILED)]
    assert [info.id for info in choose(infos, Selection(only=RunState.FAILED))] == ["b"]


def test_nothing_beyond_the_limit_is_listed() -> None:
    """A limit stops the listing, so that a server is not asked for pages that nobody wants."""

    def listing() -> Iterator[RunInfo]:
        yield _info("a")
        yield _info("b")
        pytest.fail("a third run was asked for")

    assert len(choose(listing(), Selection(limit=2))) == 2


def test_the_limit_counts_what_is_wanted() -> None:
    """Runs left out for another reason do not use up the limit."""
    infos = [_info("a", state=RunState.RUNNING), _info("b", state=RunState.FAILED)]
    assert [info.id for info in choose(infos, Selection(limit=1, only=RunState.FAILED))] == ["b"]


def test_runs_of_one_config_are_one_group() -> None:
    """Seeds do not tell cohorts apart; what is trained does."""
    infos = [_info(f"{lr}{seed}", config={"lr": lr, "seed": seed}) for seed in (1, 2) for lr in (0.1, 0.2)]
    assert _ids(group(infos)) == [["0.11", "0.12"], ["0.21", "0.22"]]


def test_ignored_keys_do_not_tell_cohorts_apart() -> None:
    """Keys that the user wants ignored are ignored."""
    infos = [_info(name, config={"lr": 0.1, "owner": name}) for name in ("a", "b")]
    assert [len(group(infos)), len(group(infos, ("owner",)))] == [2, 1]


def test_a_large_cohort_is_judged_in_equal_parts() -> None:
    """No part is larger than what is compared at once, and none is left with a single run."""
    parts = group([_info(str(i), config={"lr": 1}) for i in range(2 * MAX_COHORT + 1)])
    sizes = [len(part) for part in parts]
    assert (sum(sizes), max(sizes) <= MAX_COHORT, max(sizes) - min(sizes) <= 1) == (2 * MAX_COHORT + 1, True, True)


def test_runs_without_a_config_come_in_small_parts() -> None:
    """Runs that nothing can be compared with wait for at most a few others, and come last."""
    infos = [_info(str(i)) for i in range(LONERS_TOGETHER + 1)] + [_info("c", config={"lr": 1})]
    assert [len(part) for part in group(infos)] == [1, LONERS_TOGETHER // 2, LONERS_TOGETHER // 2 + 1]

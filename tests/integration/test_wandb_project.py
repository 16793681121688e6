"""The workspace view and the report of a project, through the real clients against the stand-in server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("wandb_workspaces")

from wandb_server import StandIn
from wandb_server.session import stand_in

from runtriage.model.marks import Marks, WritePlan
from runtriage.outputs.tags import VIEW_NAME
from runtriage.outputs.view import chart_metrics, render_view
from runtriage.pipeline import triage_cohort
from runtriage.testing.synth import cohort
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
PLAN = WritePlan(
    set_tags={"runtriage.view": "1"}, set_note="| run | verdict |\n|--|--|\n| <!-- runtriage:begin e30= --> | broken |"
)


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with stand_in() as running:
        yield running


@pytest.fixture
def source(server: StandIn) -> Iterator[WandbSource]:
    server.world.views.clear()
    server.world.add_project("team", "p")
    opened = WandbSource("wandb://team/p")
    yield opened
    opened.close()


def test_made_once_and_updated_in_place(server: StandIn, source: WandbSource) -> None:
    """View and report are made by the first plan, keep their ids under the second, and read back as written."""
    source.apply_project(PLAN)
    ids = set(server.world.views)
    assert sorted(view["type"] for view in server.world.views.values()) == ["project-view", "runs"]
    assert source.read_project_marks() == Marks(tags=PLAN.set_tags, note=PLAN.set_note)
    source.apply_project(WritePlan(set_note="all well"))
    assert set(server.world.views) == ids
    assert source.read_project_marks() == Marks(tags=PLAN.set_tags, note="all well")


def test_clear_takes_ours_and_leaves_others(server: StandIn, source: WandbSource) -> None:
    """Clearing deletes our view and report, and not one of the same name that somebody else made."""
    theirs = {"entityName": "team", "projectName": "p", "type": "project-view", "name": "nw-x-v", "displayName": "runtriage",  # noqa: E501
              "description": "", "spec": "{}", "id": "theirs"}  # fmt: skip
    server.world.views["theirs"] = dict(theirs)
    source.apply_project(PLAN)
    assert len(server.world.views) == 3
    marks = source.read_project_marks()
    source.apply_project(WritePlan(delete_tags=tuple(marks.tags), delete_note=True))
    assert server.world.views == {"theirs": theirs}
    assert source.read_project_marks() == Marks()


def test_missing_report_is_made_again(server: StandIn, source: WandbSource) -> None:
    """If somebody deletes the report, reading shows a difference and the same plan makes it again."""
    source.apply_project(PLAN)
    gone = next(key for key, view in server.world.views.items() if view["type"] == "runs")
    del server.world.views[gone]
    assert source.read_project_marks() != Marks(tags=PLAN.set_tags, note=PLAN.set_note)
    source.apply_project(PLAN)
    assert source.read_project_marks() == Marks(tags=PLAN.set_tags, note=PLAN.set_note)


@pytest.mark.parametrize("kind", ["late", "cut"])
@pytest.mark.parametrize("what", ["UpsertView2", "upsertView"])
def test_made_although_the_answer_says_not(server: StandIn, source: WandbSource, what: str, kind: str) -> None:
    """A view, or a report, that was made before its answer went wrong is there once."""
    server.fail(what, kind)
    source.apply_project(PLAN)
    assert sorted(view["type"] for view in server.world.views.values()) == ["project-view", "runs"]
    assert source.read_project_marks() == Marks(tags=PLAN.set_tags, note=PLAN.set_note)


def test_a_view_that_is_there_twice(server: StandIn, source: WandbSource) -> None:
    """Two views of ours show as a difference, and a plan leaves one; also where the answer to its deletion is lost."""
    source.apply_project(PLAN)
    key, view = next(iter(server.world.views.items()))
    server.world.views["again"] = {**view, "id": "again"}
    assert source.read_project_marks() != Marks(tags=PLAN.set_tags, note=PLAN.set_note)
    server.fail("deleteView", "cut")
    source.apply_project(PLAN)
    assert (key in server.world.views, len(server.world.views)) == (True, 2)
    assert source.read_project_marks() == Marks(tags=PLAN.set_tags, note=PLAN.set_note)


def test_flagged_runs_are_filtered_by_tag(server: StandIn, source: WandbSource) -> None:
    """The view and the report show the runs with our tags."""
    source.apply_project(PLAN)
    assert all("rt:broken" in view["spec"] for view in server.world.views.values())


def test_charts_are_of_the_metrics_that_the_runs_log(server: StandIn, source: WandbSource) -> None:
    """View and report draw the metrics named for the project, and the table shows our values."""
    reports = [triage.report for triage in triage_cohort(cohort(3))]
    source.apply_project(WritePlan(set_tags={"runtriage.view": render_view(reports)}, set_note="all well"))
    charts = [name for _, name in chart_metrics(reports)]
    assert charts
    for view in server.world.views.values():
        drawn = [panel["config"]["metrics"] for panel in objects(view["spec"], "Run History Line Plot")]
        assert drawn == [[name] for name in charts]
    names = {view["type"]: view["displayName"] for view in server.world.views.values()}
    assert names == {"project-view": "runtriage", "runs": VIEW_NAME}
    workspace = next(view["spec"] for view in server.world.views.values() if view["type"] == "project-view")
    assert "summary:runtriage.status" in workspace


@pytest.mark.parametrize("value", ["", "1", "{}", '{"charts": [1]}', '{"charts": []}'])
def test_a_view_that_names_no_charts(server: StandIn, source: WandbSource, value: str) -> None:
    """Where nothing says what the runs log, the usual names are drawn."""
    source.apply_project(WritePlan(set_tags={"runtriage.view": value}, set_note="x"))
    assert all("train/grad_norm" in view["spec"] for view in server.world.views.values())


def objects(spec: str, kind: str) -> list[dict[str, Any]]:
    """Return the objects of one view type anywhere in a specification, in order."""
    found: list[dict[str, Any]] = []
    todo = [json.loads(spec)]
    while todo:
        item = todo.pop(0)
        if isinstance(item, dict):
            found += [item] if item.get("viewType") == kind else []
            todo = [*item.values(), *todo]
        elif isinstance(item, list):
            todo = [*item, *todo]
    return found

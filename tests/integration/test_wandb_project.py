"""The workspace view and the report of a project, through the real clients against the stand-in server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("wandb_workspaces")

from wandb_server import StandIn
from wandb_server.session import stand_in

from runtriage.model.marks import Marks, WritePlan
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


def test_flagged_runs_are_filtered_by_tag(server: StandIn, source: WandbSource) -> None:
    """The view and the report show the runs with our tags."""
    source.apply_project(PLAN)
    assert all("rt:broken" in view["spec"] for view in server.world.views.values())

"""Marks on an experiment of a real MLflow server: the digest and the saved view."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from mlflow_server.real import RealServer

from runtriage.errors import MarkWriteError
from runtriage.model.marks import Marks, WritePlan
from runtriage.outputs.plan import clear, plan
from runtriage.outputs.view import render_view
from runtriage.trackers.mlflow.access import access_to
from runtriage.trackers.mlflow.source import MlflowSource

pytestmark = pytest.mark.integration
NOTE, SAVED = "mlflow.note.content", "mlflow.sharedViewState.runtriage-flagged"
CHARTS = [{"metric": "loss", "log": True}]
VIEW = json.dumps({"name": "flagged", "filter": "x", "columns": ["tags.`a`"], "charts": CHARTS})
WANTED = Marks(tags={"runtriage.view": VIEW}, note="3 of 9 runs are flagged")


class World:
    """An empty experiment."""

    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.experiment = server.experiment()
        self.source = MlflowSource(access_to(server.address(self.experiment), {}))
        self.pristine = server.experiment_tags(self.experiment)

    def tags(self) -> dict[str, str]:
        return self.server.experiment_tags(self.experiment)

    def set_tag(self, key: str, value: str) -> None:
        self.server.set_experiment_tag(self.experiment, key, value)

    def reconcile(self, wanted: Marks) -> WritePlan:
        """Write what is wanted, and return what a second sweep would still do."""
        self.source.apply_project(plan(wanted, self.source.read_project_marks()))
        return plan(wanted, self.source.read_project_marks())

    def view(self) -> tuple[str, dict[str, Any]]:
        """Return name and state of the saved view as MLflow's pages unpack them."""
        envelope = json.loads(self.tags()[SAVED])
        packed = envelope["state"].removeprefix("deflate;")
        return envelope["name"], json.loads(zlib.decompress(base64.b64decode(packed)))

    def edit_view(self) -> str:
        """Save the view under our name with another filter, as a person would."""
        envelope = json.loads(self.tags()[SAVED])
        state = {**self.view()[1], "searchFilter": "metrics.loss < 1"}
        envelope["state"] = "deflate;" + base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
        self.set_tag(SAVED, json.dumps(envelope))
        return json.dumps(envelope)


@pytest.fixture
def world(mlflow_server: RealServer) -> Iterator[World]:
    made = World(mlflow_server)
    yield made
    made.source.close()


def test_a_second_sweep_plans_nothing(world: World) -> None:
    """What was written is read back as wanted."""
    assert not world.reconcile(WANTED)


def test_clearing_removes_every_trace(world: World) -> None:
    """After a clear the tags of the experiment are what they were."""
    world.reconcile(WANTED)
    world.reconcile(Marks())
    assert world.tags() == world.pristine


def test_the_view_holds_what_was_wanted(world: World) -> None:
    """Name, filter, columns and charts are where MLflow's pages look for them."""
    world.reconcile(WANTED)
    name, state = world.view()
    chart = state["compareRunCharts"][0]
    assert (name, state["searchFilter"], state["selectedColumns"]) == ("flagged", "x", ["tags.`a`"])
    assert (chart["type"], chart["selectedMetricKeys"], chart["scaleType"]) == ("LINE", ["loss"], "log")


def test_charts_lie_in_a_section_that_exists(world: World) -> None:
    """A chart whose section is unknown would not be drawn."""
    world.reconcile(WANTED)
    state = world.view()[1]
    assert state["compareRunCharts"][0]["metricSectionId"] in {part["uuid"] for part in state["compareRunSections"]}


def test_the_view_of_the_outputs_can_be_saved(world: World) -> None:
    """The view as reports make it compiles, and its filter is one the server accepts."""
    world.reconcile(Marks(tags={"runtriage.view": render_view([])}))
    found = world.view()[1]["searchFilter"]
    body = {"experiment_ids": [world.experiment], "filter": found, "max_results": 10}
    assert "runs" not in world.server.call("POST", "runs/search", body)


def test_a_changed_wish_changes_the_view(world: World) -> None:
    """Other charts are saved over the old ones, under the time of the first saving."""
    world.reconcile(WANTED)
    first = json.loads(world.tags()[SAVED])["createdAt"]
    world.reconcile(Marks(tags={"runtriage.view": VIEW.replace("loss", "lr")}))
    envelope = json.loads(world.tags()[SAVED])
    assert (world.view()[1]["compareRunCharts"][0]["metricKey"], envelope["createdAt"]) == ("lr", first)


def test_a_view_removed_by_hand_is_planned_again(world: World) -> None:
    """A person who deletes the view gets it back with the next sweep that may write."""
    world.reconcile(WANTED)
    body = {"experiment_id": world.experiment, "key": SAVED}
    world.server.call("POST", "experiments/delete-experiment-tag", body)
    assert "runtriage.view" in plan(WANTED, world.source.read_project_marks()).set_tags


def test_a_view_changed_by_hand_is_theirs(world: World) -> None:
    """A view that a person saved over ours is neither written over nor cleared, and nothing is planned for it."""
    world.reconcile(WANTED)
    theirs = world.edit_view()
    again = world.reconcile(Marks(tags={"runtriage.view": VIEW.replace("loss", "lr")}, note=WANTED.note))
    world.reconcile(Marks())
    assert (bool(again), world.tags()) == (False, {**world.pristine, SAVED: theirs})


def test_foreign_views_and_notes_stay(world: World) -> None:
    """Other saved views and the text of the experiment's note are as they were after writing and clearing."""
    theirs = {NOTE: "# Ours\n\n", "mlflow.sharedViewState.abc": "{}", "team": "x"}
    for key, value in theirs.items():
        world.set_tag(key, value)
    world.reconcile(WANTED)
    between = world.tags()
    world.reconcile(Marks())
    assert {key: between[key] for key in theirs if key != NOTE} == {"mlflow.sharedViewState.abc": "{}", "team": "x"}
    assert between[NOTE].startswith(theirs[NOTE])
    assert world.tags() == {**world.pristine, **theirs}


@pytest.mark.parametrize("lost", ["runtriage.kept.view", SAVED])
def test_a_half_written_view_is_ours_and_gets_finished(world: World, lost: str) -> None:
    """Where a sweep broke off between the view and its record, the next one writes the rest, or clears it."""
    world.reconcile(WANTED)
    whole, body = world.tags(), {"experiment_id": world.experiment, "key": lost}
    world.server.call("POST", "experiments/delete-experiment-tag", body)
    world.reconcile(WANTED)
    finished = world.tags()
    world.server.call("POST", "experiments/delete-experiment-tag", body)
    world.source.apply_project(clear(world.source.read_project_marks()))
    assert (finished.keys(), finished["runtriage.kept.view"]) == (whole.keys(), whole["runtriage.kept.view"])
    assert world.tags() == world.pristine


def test_clearing_removes_the_record_of_a_view_that_others_removed(world: World) -> None:
    """Where a person took the view away, or it was taken away and we were killed, its record goes with the rest."""
    world.reconcile(WANTED)
    for key in (SAVED, "runtriage.view"):
        body = {"experiment_id": world.experiment, "key": key}
        world.server.call("POST", "experiments/delete-experiment-tag", body)
    world.source.apply_project(clear(world.source.read_project_marks()))
    assert (world.tags(), bool(clear(world.source.read_project_marks()))) == (world.pristine, False)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (WritePlan(set_tags={"runtriage.view": "not json"}), "cannot be read"),
        (WritePlan(set_tags={"runtriage.view": '{"charts": 3}'}), "cannot be read"),
        (WritePlan(set_tags={"mlflow.note.content": "x"}), "not ours"),
        (WritePlan(set_tags={"runtriage.long": "x" * 20_001}), "keeps 20,000"),
        (WritePlan(put_files={"runtriage/panel.svg": b""}), "no files"),
    ],
)
def test_what_cannot_be_written_is_refused_whole(world: World, change: WritePlan, why: str) -> None:
    """A plan that an experiment cannot hold is refused before anything is written."""
    with pytest.raises(MarkWriteError, match=why):
        world.source.apply_project(change)
    assert world.tags() == world.pristine


def test_the_view_has_an_address(world: World) -> None:
    """The page of the saved view names the view that was written."""
    assert world.source.view_url() == (
        f"{world.server.base}/#/experiments/{world.experiment}/runs?viewStateShareKey=runtriage-flagged&compareRunsMode=CHART"
    )

"""Marks on runs of a real MLflow server: tags, note, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlflow_server.real import RealServer

from runtriage.errors import MarkWriteError, RunNotFoundError
from runtriage.model.history import RunInfo
from runtriage.model.marks import Marks, WritePlan, content_digest
from runtriage.outputs.plan import clear, plan
from runtriage.trackers.mlflow.access import Access, access_to
from runtriage.trackers.mlflow.client import MlflowClient
from runtriage.trackers.mlflow.note import BEGIN, BEGIN_APART, END, NOTE_LIMIT
from runtriage.trackers.mlflow.source import MlflowSource

pytestmark = pytest.mark.integration
NOTE = "mlflow.note.content"
SVG, HTML = "runtriage/panel.svg", "runtriage/panel.html"
FOREIGN = ["plain", "", "\n\n", " ends in space \n", "a\r\nb\t\u200b\U0001f600", "```\nfence", f"{BEGIN} lonely", END]


class Uploading(MlflowClient):
    """A client during whose uploads something happens."""

    def __init__(self, access: Access, during: Callable[[], None]) -> None:
        super().__init__(access)
        self._during = during

    def put_file(self, path: str, content: bytes, content_type: str) -> None:
        super().put_file(path, content, content_type)
        self._during()


class World:
    """An experiment with one finished run."""

    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.experiment = server.experiment()
        self.run = server.run(self.experiment, "r", status="FINISHED")
        self.source = MlflowSource(access_to(server.address(self.experiment), {}))
        self.info = RunInfo(source=self.source.address, id=self.run)
        self.pristine = server.tags(self.run)

    def apply(self, wanted: WritePlan) -> None:
        self.source.apply(self.info, wanted)

    def marks(self) -> Marks:
        return self.source.read_marks(self.info)

    def reconcile(self, wanted: Marks) -> WritePlan:
        """Write what is wanted, and return what a second sweep would still do."""
        self.apply(plan(wanted, self.marks()))
        return plan(wanted, self.marks())

    def clear(self) -> None:
        self.apply(clear(self.marks()))


@pytest.fixture
def world(mlflow_server: RealServer) -> Iterator[World]:
    made = World(mlflow_server)
    yield made
    made.source.close()


def wanted(*, note: str | None = "broken at step 7", files: dict[str, bytes] | None = None) -> Marks:
    contents = {SVG: b"<svg/>", HTML: b"<p>x</p>"} if files is None else files
    return Marks(
        tags={"runtriage.status": "broken", "runtriage.z": "9.1"},
        note=note,
        files={path: content_digest(content) for path, content in contents.items()},
        contents=contents,
    )


def test_a_second_sweep_plans_nothing(world: World) -> None:
    """What was written is read back as wanted."""
    assert not world.reconcile(wanted())


def test_clearing_removes_every_trace(world: World) -> None:
    """After a clear the tags and artifacts of the run are what they were."""
    world.reconcile(wanted())
    world.clear()
    assert (world.server.tags(world.run), world.server.files(world.run)) == (world.pristine, [])


def test_a_healed_run_loses_note_and_files(world: World) -> None:
    """A run that turns healthy keeps its status and nothing that warns."""
    world.reconcile(wanted())
    healthy = Marks(tags={"runtriage.status": "healthy"})
    assert not world.reconcile(healthy)
    assert world.server.tags(world.run) == {**world.pristine, "runtriage.status": "healthy"}


@pytest.mark.parametrize("text", FOREIGN)
def test_the_users_note_comes_back_byte_for_byte(world: World, text: str) -> None:
    """Writing, rewriting and clearing our block leaves the user's own text as it was."""
    world.server.set_tag(world.run, NOTE, text)
    world.reconcile(wanted(note="one"))
    world.reconcile(wanted(note="two\n\n| a | b |"))
    between = world.server.tags(world.run)[NOTE]
    world.clear()
    assert between.startswith(text)
    assert world.server.tags(world.run)[NOTE] == text


def test_what_the_user_adds_around_our_block_stays(world: World) -> None:
    """Text that a person puts before and behind our block is theirs."""
    world.reconcile(wanted(note="one"))
    ours = world.server.tags(world.run)[NOTE]
    world.server.set_tag(world.run, NOTE, f"before\n\n{ours}\n\nafter ")
    world.reconcile(wanted(note="two"))
    world.clear()
    assert world.server.tags(world.run)[NOTE] == "before\n\n\n\nafter "


def test_the_note_is_merged_with_what_is_there_when_it_is_written(world: World) -> None:
    """A note that a person wrote after the marks were read survives the plan made before."""
    made_before = plan(wanted(note="ours"), world.marks())
    world.server.set_tag(world.run, NOTE, "theirs")
    world.apply(made_before)
    assert world.server.tags(world.run)[NOTE].startswith(f"theirs\n\n{BEGIN_APART}\nours")


def test_a_note_written_during_the_upload_survives(world: World) -> None:
    """What a person writes while our files are being stored is merged with too."""
    access = access_to(world.source.address, {})
    client = Uploading(access, lambda: world.server.set_tag(world.run, NOTE, "theirs"))
    source = MlflowSource(access, client=client)
    source.apply(world.info, plan(wanted(note="ours"), world.marks()))
    source.close()
    assert world.server.tags(world.run)[NOTE].startswith("theirs\n\n")


def test_a_note_that_does_not_fit_is_cut_and_still_counts_as_written(world: World) -> None:
    """With 7,000 characters of the user's, a long block is cut at a line, and a second sweep plans nothing."""
    world.server.set_tag(world.run, NOTE, "u" * 7000)
    again = world.reconcile(wanted(note="\n".join(f"line {i} of a long block" for i in range(200))))
    text = world.server.tags(world.run)[NOTE]
    assert not again
    assert len(text) <= NOTE_LIMIT
    assert "The rest is cut off" in text
    assert text.startswith("u" * 7000)


def test_a_note_without_any_room_is_left_alone(world: World) -> None:
    """A user's text of 8,000 characters stays whole, and a second sweep plans nothing."""
    world.server.set_tag(world.run, NOTE, "u" * NOTE_LIMIT)
    again = world.reconcile(wanted())
    assert (bool(again), world.server.tags(world.run)[NOTE]) == (False, "u" * NOTE_LIMIT)


def test_a_block_changed_by_hand_is_planned_again(world: World) -> None:
    """Our block is ours: what a person writes into it is replaced."""
    world.reconcile(wanted(note="right"))
    text = world.server.tags(world.run)[NOTE]
    world.server.set_tag(world.run, NOTE, text.replace("right", "wrong"))
    assert plan(wanted(note="right"), world.marks()).set_note == "right"


def test_more_tags_than_one_request_takes(world: World) -> None:
    """A plan with 250 tags is sent in requests of at most 100."""
    tags = {f"runtriage.t{i}": str(i) for i in range(250)}
    world.apply(WritePlan(set_tags=tags))
    assert world.marks().tags == tags


def test_values_arrive_unchanged(world: World) -> None:
    """Markup, quotes, control characters and 8,000 characters of a value are stored as they are."""
    tags = {"runtriage.a": "<b>&'\"\\\n\t\x1b[31m\u202e", "runtriage.b": "\U0001f600" * 8000}
    world.apply(WritePlan(set_tags=tags))
    assert world.marks().tags == tags


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (WritePlan(set_tags={"owner": "me"}), "not ours"),
        (WritePlan(delete_tags=("mlflow.runName",)), "not ours"),
        (WritePlan(set_tags={"runtriage.contract": "{}"}), "not ours"),
        (WritePlan(set_tags={"runtriage.kept.files": "{}"}), "not ours"),
        (WritePlan(set_tags={"runtriage.a=b": "x"}), "no tag of this name"),
        (WritePlan(set_tags={"runtriage.long": "x" * 8001}), "keeps 8,000"),
        (WritePlan(put_files={"model/weights.bin": b""}), "not ours"),
        (WritePlan(put_files={"runtriage/../model.bin": b""}), "not ours"),
        (WritePlan(delete_files=("runtriage/",)), "not ours"),
    ],
)
def test_what_is_not_ours_to_write_is_refused_whole(world: World, change: WritePlan, why: str) -> None:
    """A plan that touches others' things, or cannot be stored, is refused before anything is written."""
    both = WritePlan(
        set_tags={**change.set_tags, "runtriage.status": "broken"},
        delete_tags=change.delete_tags,
        put_files=change.put_files,
        delete_files=change.delete_files,
    )
    with pytest.raises(MarkWriteError, match=why):
        world.apply(both)
    assert world.server.tags(world.run) == world.pristine


def test_the_users_contract_tag_is_no_mark(world: World) -> None:
    """A tag with our prefix that people write themselves is neither shown nor cleared."""
    world.server.set_tag(world.run, "runtriage.contract", "{}")
    assert world.marks() == Marks()


def test_files_are_served_as_the_pages_ask_for_them(world: World) -> None:
    """The address that the note gives for the picture answers with the picture."""
    world.reconcile(wanted())
    address = world.source.panel_url(world.info)
    assert address is not None
    assert world.server.raw("GET", address) == b"<svg/>"


def test_a_changed_file_is_stored_again(world: World) -> None:
    """New content replaces the old."""
    world.reconcile(wanted())
    again = world.reconcile(wanted(files={SVG: b"<svg>new</svg>"}))
    assert (bool(again), world.server.file(world.run, SVG)) == (False, b"<svg>new</svg>")


def test_a_file_removed_by_hand_is_planned_again(world: World) -> None:
    """The record of what was stored does not hide that it is gone."""
    world.reconcile(wanted())
    place = f"{world.experiment}/{world.run}/artifacts/{SVG}"
    world.server.raw("DELETE", f"/api/2.0/mlflow-artifacts/artifacts/{place}")
    assert list(plan(wanted(), world.marks()).put_files) == [SVG]


def test_a_file_replaced_by_hand_is_planned_again(world: World) -> None:
    """The record of what was stored does not hide that something else is there."""
    world.reconcile(wanted())
    place = f"{world.experiment}/{world.run}/artifacts/{SVG}"
    world.server.raw("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{place}", {"a": 1})
    assert list(plan(wanted(), world.marks()).put_files) == [SVG]


def test_files_are_found_without_the_record(world: World) -> None:
    """Where the record is lost, files that can only be ours are still found, so that a clear removes them."""
    world.reconcile(wanted())
    world.server.call("POST", "runs/delete-tag", {"run_id": world.run, "key": "runtriage.kept.files"})
    world.clear()
    assert world.server.files(world.run) == []


def test_clearing_removes_the_records_of_what_others_removed(world: World) -> None:
    """Where a person took note and files away, what was kept about them goes with the rest."""
    world.server.set_tag(world.run, NOTE, "u" * 7000)
    world.reconcile(wanted(note="\n".join(f"line {i} of a long block" for i in range(200))))
    for path in (SVG, HTML):
        place = f"{world.experiment}/{world.run}/artifacts/{path}"
        world.server.raw("DELETE", f"/api/2.0/mlflow-artifacts/artifacts/{place}")
    world.server.call("POST", "runs/delete-tag", {"run_id": world.run, "key": NOTE})
    world.clear()
    assert (world.server.tags(world.run), bool(clear(world.marks()))) == (world.pristine, False)


def test_a_file_of_someone_else_in_our_folder_stays(world: World) -> None:
    """Clearing removes our files and leaves a foreign one beside them."""
    world.reconcile(wanted())
    place = f"{world.experiment}/{world.run}/artifacts/runtriage/mine.txt"
    world.server.raw("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{place}", {"a": 1})
    world.clear()
    assert world.server.files(world.run, "runtriage") == ["runtriage/mine.txt"]


def test_a_run_deleted_meanwhile_is_a_typed_error(world: World) -> None:
    """Marks cannot be written on a run in the bin."""
    world.server.call("POST", "runs/delete", {"run_id": world.run})
    with pytest.raises(RunNotFoundError, match="deleted"):
        world.apply(WritePlan(set_tags={"runtriage.status": "broken"}))


def test_a_finished_run_stays_finished(world: World) -> None:
    """Writing marks changes neither state nor end of a run."""
    before = world.server.call("GET", "runs/get", run_id=world.run)["run"]["info"]
    world.reconcile(wanted())
    assert world.server.call("GET", "runs/get", run_id=world.run)["run"]["info"] == before


def test_without_the_artifact_proxy_everything_but_files_is_written(mlflow_server: RealServer, tmp_path: Path) -> None:
    """An artifact root the server does not serve gives the tags and the note, and one sentence about the files."""
    body = {"name": f"elsewhere {tmp_path.name}", "artifact_location": f"file://{tmp_path}"}
    experiment = str(mlflow_server.call("POST", "experiments/create", body)["experiment_id"])
    run = mlflow_server.run(experiment, status="FINISHED")
    source = MlflowSource(access_to(mlflow_server.address(experiment), {}))
    info = source.find_run(run)
    with pytest.raises(MarkWriteError, match=r"the panel is not stored: .* artifact root is file:"):
        source.apply(info, plan(wanted(), source.read_marks(info)))
    marks = source.read_marks(info)
    assert (marks.tags, marks.note, source.panel_url(info)) == (wanted().tags, wanted().note, None)
    source.close()

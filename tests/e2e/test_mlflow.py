"""The command line against a real MLflow server: verdicts in its tags, notes, artifacts and views, and out again."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from mlflow_server.real import RealServer, real_server

from runtriage.model.history import RunHistory
from runtriage.testing.synth import cohort, faulty, healthy

pytestmark = pytest.mark.integration
Cli = Callable[..., "subprocess.CompletedProcess[str]"]
NOTE = "mlflow.note.content"
FILES = ["runtriage/panel.html", "runtriage/panel.svg"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """Run one real tracking server for this module."""
    with real_server(tmp_path_factory.mktemp("mlflow")) as running:
        yield running


@dataclass(frozen=True)
class Project:
    """An experiment of a test's own: four healthy runs and one that diverges."""

    server: RealServer
    experiment: str
    address: str
    runs: dict[str, str]

    def tags(self, name: str) -> dict[str, str]:
        """Return the tags of a run."""
        return self.server.tags(self.runs[name])

    def own(self, name: str) -> list[str]:
        """Return the keys of our tags on a run."""
        return sorted(key for key in self.tags(name) if key.startswith("runtriage."))

    def everything(self) -> list[object]:
        """Return all that a sweep could have changed."""
        found: list[object] = [self.server.experiment_tags(self.experiment)]
        for run in self.runs.values():
            found += [self.server.tags(run), self.server.files(run, "runtriage")]
        return found


@pytest.fixture
def project(server: RealServer) -> Project:
    """Log the runs to a new experiment."""
    experiment = server.experiment()
    histories: list[RunHistory] = [*cohort(4), faulty("divergence", run_id="bad")]
    runs = {history.info.id: server.put(experiment, history) for history in histories}
    return Project(server, experiment, server.address(experiment), runs)


def last(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a command's output."""
    return done.stdout.splitlines()[-1]


def rewrite(server: RealServer, run: str, history: RunHistory) -> None:
    """Replace the curves of a run in the server's database: over REST nothing that was logged can be taken back."""
    with closing(sqlite3.connect(server.database, timeout=30)) as connection, connection:
        connection.execute("delete from metrics where run_uuid = ?", (run,))
    for key, track in history.tracks.items():
        points = zip(track.step.tolist(), track.value.tolist(), strict=True)
        server.insert(run, key, [(step, value, 1) for step, value in points])


def test_a_sweep_writes_the_verdicts(cli: Cli, project: Project) -> None:
    """Every run carries its verdict, the flagged one its findings too."""
    cli("sweep", project.address, "--write", "all")
    statuses = {name: project.tags(name)["runtriage.status"] for name in project.runs}
    bad = statuses.pop("bad")
    assert (set(statuses.values()), bad in ("suspicious", "broken"), "runtriage.findings" in project.own("bad")) == (
        {"healthy"}, True, True,
    )


def test_the_flagged_run_has_its_panel(cli: Cli, project: Project) -> None:
    """The page and the picture are artifacts that MLflow's own pages can load, the healthy runs have none."""
    cli("sweep", project.address, "--write", "all")
    run = project.runs["bad"]
    picture = project.server.file(run, "runtriage/panel.svg")
    healthy_files = project.server.files(project.runs["run-0"], "runtriage")
    assert (project.server.files(run, "runtriage"), picture[:4], healthy_files) == (FILES, b"<svg", [])


def test_the_note_shows_the_panel_and_keeps_the_users_text(cli: Cli, project: Project) -> None:
    """What stood in the description stands there byte for byte, and our block refers to the picture."""
    project.server.set_tag(project.runs["bad"], NOTE, "Mine *stays*.\n")
    cli("sweep", project.address, "--write", "all")
    text = project.tags("bad")[NOTE]
    assert ("Mine *stays*.\n" in text, "get-artifact?path=runtriage%2Fpanel.svg" in text) == (True, True)


def test_the_experiment_has_its_view_and_digest(cli: Cli, project: Project) -> None:
    """The saved view hangs on the experiment, and its note counts."""
    cli("sweep", project.address, "--write", "all")
    tags = project.server.experiment_tags(project.experiment)
    assert ([key for key in tags if "runtriage-flagged" in key] != [], "bad" in tags[NOTE]) == (True, True)


def test_a_second_sweep_changes_nothing(cli: Cli, project: Project) -> None:
    """The second plan is empty, and the server holds the same afterwards."""
    cli("sweep", project.address, "--write", "all")
    before = project.everything()
    said = last(cli("sweep", project.address, "--write", "all"))
    assert (said, project.everything()) == ("marks: 0 runs changed, 5 already right", before)


def test_unchanged_runs_are_not_read_again(cli: Cli, project: Project) -> None:
    """The second sweep says so, and takes the verdicts from the marks."""
    first, second = [cli("sweep", project.address, "--write", "all").stdout.splitlines()[-2] for _ in range(2)]
    assert second == f"{first.partition(' (')[0]}; 5 of them unchanged and not read again"


def test_another_language_changes_what_people_read_only(cli: Cli, project: Project) -> None:
    """The note is written anew in Chinese; of the tags only two digests change."""
    cli("sweep", project.address, "--write", "all")
    before = project.tags("bad")
    said = last(cli("sweep", project.address, "--write", "all", "--lang", "zh"))
    after = project.tags("bad")
    changed = {key for key in project.own("bad") if before.get(key) != after[key]}
    assert said == "标记：已更改 5 个 run，0 个无需更改；实验标记已更改"
    assert changed == {"runtriage.cursor", "runtriage.kept.files"}, "digests of what was read and written"
    assert ("runtriage：" in before[NOTE], "runtriage：" in after[NOTE]) == (False, True)


def test_a_run_that_turns_healthy_loses_its_warning(cli: Cli, project: Project) -> None:
    """Once the curve is that of its siblings, findings, panel and note block go; the verdict says healthy."""
    project.server.set_tag(project.runs["bad"], NOTE, "Mine.")
    cli("sweep", project.address, "--write", "all")
    rewrite(project.server, project.runs["bad"], healthy(9))
    cli("sweep", project.address, "--write", "all", "--fresh")  # what was done to the database no listing can tell
    tags, files = project.tags("bad"), project.server.files(project.runs["bad"], "runtriage")
    left = (tags["runtriage.status"], "runtriage.findings" in tags, tags[NOTE], files)
    assert left == ("healthy", False, "Mine.", [])


def test_clearing_removes_every_trace(cli: Cli, project: Project) -> None:
    """After marks clear, the server holds what it held before the sweep."""
    project.server.set_tag(project.runs["bad"], NOTE, "Mine.")
    project.server.set_tag(project.runs["bad"], "team", "llm")
    before = project.everything()
    cli("sweep", project.address, "--write", "all")
    done = cli("marks", "clear", project.address)
    assert (last(done), project.everything()) == ("5 runs cleared; the experiment is too", before)


def test_marks_are_shown(cli: Cli, project: Project) -> None:
    """The list has the tags, the note and the files of the flagged run."""
    cli("sweep", project.address, "--write", "all")
    shown = cli("marks", "show", project.address).stdout
    wanted = ("runtriage.status = healthy", "note block", *(f"file {path}" for path in FILES), "5 runs with marks")
    assert [word for word in wanted if word not in shown] == []


def test_a_dry_run_says_what_and_changes_nothing(cli: Cli, project: Project) -> None:
    """The plan is printed, the server is as before."""
    before = project.everything()
    done = cli("sweep", project.address, "--write", "all", "--dry-run")
    planned = ("run-0: set runtriage.status = healthy", "bad: put runtriage/panel.svg", "5 runs would change")
    assert ([word for word in planned if word not in done.stdout], project.everything()) == ([], before)


def test_a_dry_clear_changes_nothing(cli: Cli, project: Project) -> None:
    """What would be removed is printed, and stays."""
    cli("sweep", project.address, "--write", "all")
    before = project.everything()
    done = cli("marks", "clear", project.address, "--dry-run")
    assert ("bad: remove runtriage.status" in done.stdout, project.everything()) == (True, before)


def test_a_part_of_the_runs_does_not_speak_for_the_experiment(cli: Cli, project: Project) -> None:
    """A sweep with --limit leaves the experiment's note and view alone."""
    before = project.server.experiment_tags(project.experiment)
    cli("sweep", project.address, "--write", "all", "--limit", "2")
    assert project.server.experiment_tags(project.experiment) == before


def test_the_contract_people_write_is_never_touched(cli: Cli, project: Project) -> None:
    """runtriage.contract is the user's own tag, whatever its prefix."""
    project.server.set_tag(project.runs["bad"], "runtriage.contract", "grad_norm=global")
    cli("sweep", project.address, "--write", "all")
    cli("marks", "clear", project.address)
    assert project.own("bad") == ["runtriage.contract"]


def test_a_run_is_checked_by_name_where_the_environment_says(cli: Cli, project: Project) -> None:
    """mlflow:EXPERIMENT/RUN takes the server from MLFLOW_TRACKING_URI."""
    words = ("check", f"mlflow:{project.experiment}/bad", "--json", "-")
    report = json.loads(cli(*words, environ={"MLFLOW_TRACKING_URI": project.server.base}).stdout)
    assert (report["run"]["id"], report["baseline"]["runs"]) == (project.runs["bad"], 4)


def test_doctor_knows_that_marks_can_hang_here(cli: Cli, project: Project) -> None:
    """The doctor says what can be written, without trying."""
    before = project.everything()
    shown = cli("doctor", project.address).stdout
    wanted = ("5 finished", "tags, note and view can be written", "can be stored")
    assert ([word for word in wanted if word not in shown], project.everything()) == ([], before)


def test_an_experiment_that_is_not_there_is_named(cli: Cli, server: RealServer) -> None:
    """The exit code is 3, and the line names experiments that do exist."""
    done = cli("sweep", f"mlflow://{server.host}/nowhere")
    assert (done.returncode, "no such experiment" in done.stderr, "the server has '" in done.stderr) == (3, True, True)

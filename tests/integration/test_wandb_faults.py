"""Servers that fail, hang, cut their answers and refuse: wandb:// through the real client."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.samples import QUICK, ROWS, put
from wandb_server.session import KEY

from runtriage.errors import AccessRefusedError, MarkWriteError, RunReadError, SourceError, SourceUnreachableError
from runtriage.model.marks import WritePlan
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("kind", [429, 500, "cut"])
@pytest.mark.parametrize("where", ["RuntriageHistory", "RuntriagePage", "Runs"])
def test_passing_faults_are_retried(server: StandIn, source: WandbSource, kind: int | str, where: str) -> None:
    """One bad answer of any request of a sweep changes nothing."""
    far = {"_step": 25_000, "loss": 1.0}
    put(server, rows=[*ROWS, far], state="running")
    server.fail(where, kind)
    assert len(source.read(next(source.list_runs())).tracks["loss"].step) == 13
    assert not any(fault.times for fault in server.faults)


@pytest.mark.parametrize("kind", [429, 500, "cut"])
@pytest.mark.parametrize("where", ["RuntriageHead", "RunParquetHistory", "HistoryPage"])
def test_passing_faults_of_mixed_histories(server: StandIn, source: WandbSource, kind: int | str, where: str) -> None:
    """One bad answer while a history is read of which only a part is exported changes nothing."""
    server.world.export(put(server), 7)
    server.fail(where, kind)
    assert len(source.read(next(source.list_runs())).tracks["loss"].step) == 12
    assert not any(fault.times for fault in server.faults)


@pytest.mark.parametrize("kind", [403, 500, "cut"])
def test_bad_export_is_scanned_instead(server: StandIn, source: WandbSource, kind: int | str) -> None:
    """Where the export cannot be had the rows are scanned once it can, and all of them arrive."""
    put(server, exported=True)
    server.fail("export", kind, times=1)
    assert len(source.read(source.find_run("r1")).tracks["loss"].step) == 12


def test_hanging_server_ends(server: StandIn, source: WandbSource) -> None:
    """A server that accepts and never answers ends in an error within the limits."""
    put(server, state="running")
    info = source.find_run("r1")
    server.fail("RuntriageHistory", "hang", times=99)
    with pytest.raises(Exception, match=r"W&B failed|did not answer"):
        source.read(info)


def test_keys_stay_out_of_messages(server: StandIn) -> None:
    """A refused key is a typed error that does not show the key."""
    server.fail("Viewer", 401, times=9)
    with pytest.raises(AccessRefusedError) as caught:
        WandbSource("wandb://team/p", limits=QUICK).find_run("r1")
    assert "k" * 40 not in str(caught.value)


@pytest.mark.parametrize("said", [f"api:{KEY}", f"Basic {'YXBp' * 20}", "https://u:pw@host/x?X-Amz-Signature=abc"])
def test_servers_that_repeat_secrets(server: StandIn, source: WandbSource, said: str) -> None:
    """What a server or a proxy repeats of our request does not reach a message."""
    server.fail("Runs", 400, times=9, body=json.dumps({"errors": [{"message": f"bad header {said}"}]}))
    with pytest.raises(SourceError) as caught:
        list(source.list_runs())
    assert not any(secret in str(caught.value) for secret in (KEY, "YXBpYXBp", "u:pw", "abc"))


def test_a_number_in_a_message_is_no_status(server: StandIn, source: WandbSource) -> None:
    """A failure that mentions 401 rows is not taken for refused credentials."""
    put(server, state="running")
    info = source.find_run("r1")
    server.fail("RuntriageHistory", 400, body=json.dumps({"errors": [{"message": "row 401 of 403 is bad"}]}))
    with pytest.raises(RunReadError, match="row 401"):
        source.read(info)


def test_rate_limit_that_does_not_end(server: StandIn, source: WandbSource) -> None:
    """A server that only says 429 is not asked for run after run: it counts as not answering."""
    put(server, state="running")
    info = source.find_run("r1")
    server.fail("RuntriageHistory", 429, times=99)
    with pytest.raises(SourceUnreachableError, match="no more requests"):
        source.read(info)


def test_refused_download(server: StandIn, source: WandbSource) -> None:
    """An expired address of one of our files is no refusal of our credentials: the file counts as another one."""
    put(server, state="finished")
    info = source.find_run("r1")
    source.apply(info, WritePlan(put_files={"runtriage/panel.html": b"<p>"}))
    server.fail("download", 403)
    assert source.read_marks(info).files == {"runtriage/panel.html": ""}


def test_values_that_cannot_be_read_are_not_written_over(server: StandIn, source: WandbSource) -> None:
    """Where the values kept for a running run cannot be had, nothing is written in their place."""
    run = put(server, state="running")
    info = source.find_run("r1")
    source.apply(info, WritePlan(set_tags={"runtriage.status": "watch", "runtriage.findings": "plateau"}))
    before = dict(run.files)
    server.fail("download", 403, times=9)
    with pytest.raises(MarkWriteError):
        source.apply(info, WritePlan(set_tags={"runtriage.status": "broken"}))
    assert (run.files, "rt:watch" in run.tags) == (before, True)


def test_files_with_hostile_names(server: StandIn, source: WandbSource) -> None:
    """A file that would be stored outside of its folder is not downloaded."""
    run = put(server)
    run.files["runtriage/../../evil"] = b"x"
    assert source.read_marks(source.find_run("r1")).files == {}
    assert server.counts["download"] == 0


@pytest.mark.parametrize("name", ["../..", "a b", "x\u202ey", "%2e%2e", "<b>", "a'\"b"])
def test_hostile_run_ids(server: StandIn, source: WandbSource, name: str) -> None:
    """A run whose id is no word is read and marked like any other."""
    run = put(server, name, state="running", display_name="\x1b[31m<script>")
    info = next(source.list_runs())
    assert len(source.read(info).tracks["loss"].step) == 12
    source.apply(info, WritePlan(set_tags={"runtriage.status": "watch"}))
    assert run.tags == ["rt:watch"]

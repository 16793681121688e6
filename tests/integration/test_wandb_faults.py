"""Servers that fail, hang, cut their answers and refuse: wandb:// through the real client."""

from __future__ import annotations

import pytest

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.samples import QUICK, ROWS, put

from runtriage.errors import AccessRefusedError
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

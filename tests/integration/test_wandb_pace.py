"""How fast a W&B server is asked: the real client, which retries by itself, against servers that have enough."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.samples import QUICK, put

from runtriage.errors import SourceUnreachableError
from runtriage.trackers.pace import AdaptivePace, pace_of
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
ASKED = "RuntriageHistory"


@pytest.fixture
def pace(server: StandIn) -> AdaptivePace:
    """Return a pace of this test's own, quick to ask again and slow to give up."""
    return AdaptivePace(server.url, patience=60.0, pause=0.05)


@pytest.fixture
def paced(server: StandIn, source: WandbSource, pace: AdaptivePace) -> Iterator[WandbSource]:
    """Open the project with it; the client itself asks twice."""
    opened = WandbSource(source.address, limits=replace(QUICK, retries=1, pace=pace))
    opened.client.service()
    server.counts.clear()
    yield opened
    opened.close()


def test_a_burst_of_refusals_is_outlived(server: StandIn, paced: WandbSource, pace: AdaptivePace) -> None:
    """More refusals in a row than the client repeats by itself cost time, and no point."""
    put(server, state="running")
    server.fail(ASKED, 429, times=4)
    assert len(paced.read(paced.find_run("r1")).tracks["loss"].step) == 12
    assert (server.counts[ASKED], pace.refusals) == (5, 2)  # twice by the client's two, and the one that arrives


def test_a_refusal_slows_all_threads(server: StandIn, paced: WandbSource, pace: AdaptivePace) -> None:
    """What was said to one thread holds for every other that asks this server."""
    put(server, state="running")
    info = paced.find_run("r1")
    for _ in range(8):  # fewer requests have no rate that can be halved
        paced.read(info)
    server.fail(ASKED, 429, times=2)
    paced.read(info)
    assert pace.rate < 100.0


def test_what_the_server_asks_to_wait_is_waited(server: StandIn, paced: WandbSource) -> None:
    """Retry-After is kept to: the request comes again no sooner."""
    put(server, state="running")
    info = paced.find_run("r1")
    asked: list[float] = []
    server.on_request[ASKED] = lambda: asked.append(time.monotonic())
    server.fail(ASKED, 429, Retry_After="2")
    try:
        assert len(paced.read(info).tracks["loss"].step) == 12
    finally:
        server.on_request.clear()
    assert (len(asked), asked[1] - asked[0] > 1.9) == (2, True)


def test_slow_answers_slow_the_asking(server: StandIn, paced: WandbSource, pace: AdaptivePace) -> None:
    """A server whose answers take far longer than before is asked less often; all of them arrive."""
    put(server, state="running")
    info = paced.find_run("r1")
    for _ in range(10):
        paced.read(info)
    unhurried = pace.rate
    server.latency = 0.8
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(paced.read, [info] * 40))
    finally:
        server.latency = 0.0
    assert {len(history.tracks["loss"].step) for history in found} == {12}
    assert pace.rate < unhurried == float("inf")


def test_listings_keep_to_the_pace_too(server: StandIn, source: WandbSource) -> None:
    """What the pace says of a listing reaches the user as it is, through the client's own wrapping of errors."""
    put(server)
    server.fail("Runs", 429, times=999)
    with pytest.raises(SourceUnreachableError, match=r"it said so \d+ times \(429\).*no request waits for more than"):
        list(source.list_runs())


def test_every_source_of_a_server_keeps_to_one_pace(server: StandIn) -> None:
    """Without one of its own, a source takes the pace of its server."""
    put(server, state="running")
    opened = [WandbSource("wandb://team/p", limits=replace(QUICK, retries=1)) for _ in range(2)]
    server.fail(ASKED, 429, times=2)
    for one in opened:
        one.read(one.find_run("r1"))
        one.close()
    assert isinstance(found := pace_of(server.url), AdaptivePace)
    assert found.refusals == 1

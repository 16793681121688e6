"""Servers: one real MLflow for the session, one that goes wrong on purpose for each test, and a stand-in for W&B."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from demanded import absent
from mlflow_server.faults import FaultServer
from mlflow_server.real import RealServer, real_server
from mlflow_store.postgres import INSTALL, cluster, programs
from wandb_server import Behaviour, StandIn
from wandb_server.samples import QUICK
from wandb_server.session import stand_in

from runtriage.trackers.pace import AdaptivePace
from runtriage.trackers.wandb.source import WandbSource

if TYPE_CHECKING:
    from mlflow_store.store import Store

pytest.register_assert_rewrite("runtriage.testing.contracts")


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """Run a real tracking server: SQLite, artifacts through its proxy."""
    with real_server(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def faults() -> Iterator[FaultServer]:
    """Run a server whose answers the test writes."""
    with FaultServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """Run a stand-in for W&B."""
    with stand_in() as running:
        yield running


@pytest.fixture
def source(server: StandIn) -> Iterator[WandbSource]:
    """Open the empty project team/p, connected, with nothing counted yet."""
    server.world.runs.clear()
    server.world.views.clear()
    server.world.behaviour = Behaviour()
    server.world.add_project("team", "p")
    server.clear_faults()
    server.read_only = False
    pace = AdaptivePace(server.url, patience=2.0, pause=0.05)
    opened = WandbSource("wandb://team/p", limits=replace(QUICK, pace=pace))
    opened.client.service()
    server.counts.clear()
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Yield a store of each kind."""
    from mlflow_store.store import Store  # noqa: PLC0415  loads MLflow

    folder = tmp_path_factory.mktemp(request.param)
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{folder}/mlflow.db"
        elif programs() is None:
            absent(f"no PostgreSQL server that can be run here: {INSTALL}")
        else:
            url = stack.enter_context(cluster(folder))
        yield stack.enter_context(Store(url).closing())

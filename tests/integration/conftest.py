"""One real MLflow server for the whole session, and one that goes wrong on purpose for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlflow_server.faults import FaultServer
from mlflow_server.real import RealServer, real_server

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

"""A small experiment on a server of its own, behind a proxy that counts requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_proxy.mlflow_project import MlflowProject, request_name
from fault_proxy.proxy import Proxy
from mlflow_server.real import real_server

from runtriage.testing.synth import cohort, faulty


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowProject]:
    """Log four runs, one of which diverges."""
    with (
        real_server(tmp_path_factory.mktemp("mlflow")) as server,
        Proxy(server.base, request_name).running() as proxy,
    ):
        yield MlflowProject.made(server, proxy, [*cohort(3, steps=150), faulty("divergence", run_id="bad", steps=150)])

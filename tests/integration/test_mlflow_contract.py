"""mlflow:// against a real server keeps the contracts of sources and marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from mlflow_server.real import RealServer

from runtriage.model.history import RunInfo
from runtriage.registry import open_source
from runtriage.testing.contracts import MarkContract, MissingSourceContract, SourceContract, sample
from runtriage.trackers.base import HistorySource, MarkTarget
from runtriage.trackers.mlflow.source import MlflowSource

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sampled(mlflow_server: RealServer) -> str:
    """Return the address of an experiment that holds the runs of the contract."""
    experiment = mlflow_server.experiment()
    for history in sample():
        mlflow_server.put(experiment, history)
    return mlflow_server.address(experiment)


class TestMlflow(SourceContract, MissingSourceContract):
    @pytest.fixture
    def source(self, sampled: str) -> Iterator[HistorySource]:
        opened = open_source(sampled)
        yield opened
        opened.close()

    @pytest.fixture
    def missing(self, mlflow_server: RealServer) -> Iterator[HistorySource]:
        opened = open_source(mlflow_server.address("no such experiment"))
        yield opened
        opened.close()


class TestMlflowMarks(MarkContract):
    @pytest.fixture
    def target(self, mlflow_server: RealServer) -> Iterator[MarkTarget]:
        experiment = mlflow_server.experiment()
        self.server = mlflow_server
        for name in ("plain1", "plain2"):
            mlflow_server.run(experiment, name, status="FINISHED")
        opened = cast("MlflowSource", open_source(mlflow_server.address(experiment)))
        yield opened
        opened.close()

    def set_foreign(self, target: MarkTarget, info: RunInfo) -> None:
        self.server.set_tag(info.id, "owner", "alice")

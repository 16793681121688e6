"""File stores written by the real MLflow keep the contract."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pytest
from mlflow.entities import Metric

from runtriage.registry import open_source
from runtriage.testing.contracts import MissingSourceContract, SourceContract, sample
from runtriage.trackers.base import HistorySource


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store that MLflow wrote; nothing changes it."""
    root = tmp_path_factory.mktemp("store") / "mlruns"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        client = mlflow.MlflowClient(root.as_uri())
        experiment = client.create_experiment("contract")
        for run in sample():
            made = client.create_run(experiment, run_name=run.info.name).info.run_id
            if "lr" in run.info.config:
                client.log_param(made, "lr", run.info.config["lr"])
            for name, track in run.tracks.items():
                rows = zip(track.value.tolist(), track.step.tolist(), strict=True)
                client.log_batch(made, [Metric(name, value, 1_700_000_000_000, step) for value, step in rows])
            client.set_terminated(made)
    return root


class TestMlflowLocal(SourceContract, MissingSourceContract):
    @pytest.fixture
    def source(self, store: Path) -> HistorySource:
        return open_source(f"mlflow-local:{store}")

    @pytest.fixture
    def missing(self, tmp_path: Path) -> HistorySource:
        return open_source(f"mlflow-local:{tmp_path / 'absent'}")

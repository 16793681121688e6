"""What the MLflow client makes of a server that wants to be left alone."""

from __future__ import annotations

import pytest
from mlflow_server.faults import Answer, FaultServer

from runtriage.errors import SourceUnreachableError
from runtriage.trackers.mlflow.access import access_to
from runtriage.trackers.mlflow.client import MlflowClient

pytestmark = pytest.mark.integration


def test_a_wait_beyond_all_patience_is_not_begun(faults: FaultServer) -> None:
    """Who is told to come back in an hour says so at once, and so do all others who ask this server."""
    faults.script("experiments/get", Answer(status=429, headers={"Retry-After": "3600"}))
    clients = [MlflowClient(access_to(f"mlflow://{faults.host}/7", {})) for _ in range(2)]
    for client in clients:
        with pytest.raises(SourceUnreachableError, match="another may begin in 36"):
            client.get("experiments/get", {"experiment_id": "7"}, bytes)
        client.close()
    assert faults.count("experiments/get") == 1

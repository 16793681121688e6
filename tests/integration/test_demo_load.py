"""The demo's way to log runs, at a server that fails."""

from __future__ import annotations

import pytest
from mlflow_server.faults import Answer, FaultServer

from runtriage.cli.demo_load import Loader
from runtriage.errors import SourceError
from runtriage.model.history import RunHistory, RunInfo

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("path", ["experiments/create", "runs/create"])
def test_what_is_made_is_not_made_twice(faults: FaultServer, path: str) -> None:
    """A thing that may be there already is not asked for again."""
    faults.script("experiments/create", Answer(body={"experiment_id": "7"}))
    faults.script(path, Answer(status=500))
    with pytest.raises(SourceError, match="500"):
        Loader(faults.host, "e").log(RunHistory(info=RunInfo(source="files:", id="r"), tracks={}))
    assert faults.count(path) == 1

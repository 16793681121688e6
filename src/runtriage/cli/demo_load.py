"""The demo's runs, logged to a server over REST as any training loop would."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

import msgspec

from runtriage.model.history import RunHistory
from runtriage.model.vocab import RunState
from runtriage.trackers.mlflow.access import Access
from runtriage.trackers.mlflow.client import MlflowClient

T = TypeVar("T")

BATCH = 1000
"""Metrics one request may hold."""

_STATUS = {RunState.FAILED: "FAILED", RunState.KILLED: "KILLED", RunState.RUNNING: "RUNNING"}
_KIND = {"key": "mlflow.experimentKind", "value": "custom_model_development"}


class _Created(msgspec.Struct):
    experiment_id: str


class _RunInfo(msgspec.Struct):
    run_id: str


class _Run(msgspec.Struct):
    info: _RunInfo


class _Started(msgspec.Struct):
    run: _Run


class Loader:
    """Creates an experiment and logs runs to it.

    Parameters
    ----------
    place
        ``HOST:PORT`` of the server.
    experiment
        Name of the experiment to create.
    """

    def __init__(self, place: str, experiment: str) -> None:
        base = f"http://{place}"
        access = Access(base=base, address=f"mlflow://{place}/{experiment}", experiment=experiment)
        self._client = MlflowClient(access)
        self._maker = MlflowClient(access, retries=0)  # what is made twice is there twice
        body = {"name": experiment, "tags": [_KIND]}
        self.experiment_id = self._maker.post("experiments/create", body, _decoder(_Created)).experiment_id

    def log(self, history: RunHistory) -> str:
        """Log one run with its params, tags and every point, end it, and return its id.

        Raises
        ------
        SourceError
            The server does not take it.
        """
        now = int(time.time() * 1000)
        info = history.info
        started = {
            "experiment_id": self.experiment_id,
            "start_time": now,
            "run_name": info.name,
            "tags": [{"key": key, "value": value} for key, value in info.tags.items()],
        }
        run_id = self._maker.post("runs/create", started, _decoder(_Started)).run.info.run_id
        params = [{"key": key, "value": str(value)} for key, value in info.config.items()]
        self._client.send("runs/log-batch", {"run_id": run_id, "params": params})
        points = _points(history, now)
        while batch := list(islice(points, BATCH)):
            self._client.send("runs/log-batch", {"run_id": run_id, "metrics": batch})
        status = _STATUS.get(info.state, "FINISHED")
        self._client.send("runs/update", {"run_id": run_id, "status": status, "end_time": now + 1000})
        return run_id

    def close(self) -> None:
        """Release connections."""
        self._client.close()
        self._maker.close()


def _points(history: RunHistory, now: int) -> Iterator[Mapping[str, Any]]:
    for key, track in history.tracks.items():
        for step, value in zip(track.step.tolist(), track.value.tolist(), strict=True):
            yield {"key": key, "value": value if math.isfinite(value) else _word(value), "timestamp": now, "step": step}


def _word(value: float) -> str:
    """Return a value that JSON has no number for, as the server reads it."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decoder(kind: type[T]) -> Callable[[bytes], T]:
    return msgspec.json.Decoder(kind).decode

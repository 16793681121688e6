"""What MLflow's own client writes into a database: the oracle of what is read from it."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import mlflow
import mlflow.store.model_registry.dbmodels.models
import mlflow.store.tracking.dbmodels.models
import sqlalchemy.orm
from mlflow.entities import Metric, Param

from runtriage.model.history import RunHistory
from runtriage.registry import open_source

T0 = 1_700_000_000_000
_PER_BATCH = 1000
_NEW = itertools.count()

# MLflow's classes are put together at the first use of any, with deprecated options, in whichever test comes first.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sqlalchemy.orm.configure_mappers()


class Store:
    """A database under MLflow's own client.

    Attributes
    ----------
    url
        URL as a user writes it in an address.
    client
        MLflow's client, straight on the database.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = mlflow.MlflowClient(url.replace("postgresql:", "postgresql+psycopg:"))

    @contextmanager
    def closing(self) -> Iterator[Store]:
        """Close MLflow's connections at the end of the block."""
        try:
            yield self
        finally:
            self.client._tracking_client.store.engine.dispose()

    def experiment(self) -> str:
        return str(self.client.create_experiment(f"exp {next(_NEW)}"))

    def address(self, experiment: str) -> str:
        return f"mlflow-sql:{self.url}#{experiment}"

    def run(self, experiment: str, name: str = "run") -> str:
        return str(self.client.create_run(experiment, start_time=T0, run_name=name).info.run_id)

    def log(self, run: str, key: str, points: Iterable[tuple[int, float, int]]) -> None:
        """Log points (step, value, time stamp) of one metric."""
        rows = [Metric(key, value, stamp, step) for step, value, stamp in points]
        for start in range(0, len(rows), _PER_BATCH):
            self.client.log_batch(run, rows[start : start + _PER_BATCH])

    def put(self, experiment: str, history: RunHistory) -> str:
        """Log a history in its own order and return the id of the run."""
        run = self.run(experiment, history.info.name or history.info.id)
        self.client.log_batch(run, params=[Param(key, str(value)) for key, value in history.info.config.items()])
        for key, track in history.tracks.items():
            pairs = zip(track.step.tolist(), track.value.tolist(), strict=True)
            self.log(run, key, [(step, value, T0 + i) for i, (step, value) in enumerate(pairs)])
        self.client.set_terminated(run)
        return run


@contextmanager
def opened(address: str) -> Iterator[Any]:
    """Open a source and close it at the end of the block."""
    source = open_source(address)
    try:
        yield source
    finally:
        source.close()


def execute(path: Any, statement: str, *values: Any) -> None:
    """Change a SQLite database past everyone."""
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        connection.execute(statement, values)

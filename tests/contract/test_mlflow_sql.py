"""mlflow-sql: over databases that the real MLflow wrote keeps the contract, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from demanded import absent
from mlflow_store.postgres import INSTALL, cluster, programs
from mlflow_store.store import Store

from runtriage.registry import open_source
from runtriage.testing.contracts import MissingSourceContract, SourceContract, sample
from runtriage.trackers.base import HistorySource


@pytest.fixture(scope="module")
def sqlite_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of an experiment that holds the runs of the contract, in SQLite."""
    with Store(f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db").closing() as store:
        yield _sampled(store)


@pytest.fixture(scope="module")
def postgres_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of an experiment that holds the runs of the contract, in PostgreSQL."""
    if programs() is None:
        absent(f"no PostgreSQL server that can be run here: {INSTALL}")
    with cluster(tmp_path_factory.mktemp("postgres")) as url, Store(url).closing() as store:
        yield _sampled(store)


def _sampled(store: Store) -> str:
    experiment = store.experiment()
    for history in sample():
        store.put(experiment, history)
    return store.address(experiment)


class TestSqlite(SourceContract, MissingSourceContract):
    @pytest.fixture
    def source(self, sqlite_address: str) -> Iterator[HistorySource]:
        opened = open_source(sqlite_address)
        yield opened
        opened.close()

    @pytest.fixture
    def missing(self, tmp_path: Path) -> HistorySource:
        return open_source(f"mlflow-sql:sqlite:///{tmp_path}/absent.db#exp")


@pytest.mark.integration
class TestPostgres(SourceContract, MissingSourceContract):
    @pytest.fixture
    def source(self, postgres_address: str) -> Iterator[HistorySource]:
        opened = open_source(postgres_address)
        yield opened
        opened.close()

    @pytest.fixture
    def missing(self, postgres_address: str) -> Iterator[HistorySource]:
        opened = open_source(postgres_address.partition("#")[0] + "#no such experiment")
        yield opened
        opened.close()

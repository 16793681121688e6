"""mlflow-sql: on databases that the real MLflow wrote: what is read, what is refused, and that nothing is changed."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest
import sqlalchemy as sa
from mlflow_server.real import RealServer
from mlflow_store.store import T0, Store, opened

from runtriage.errors import (
    AccessRefusedError,
    MissingExtraError,
    RunNotFoundError,
    SourceError,
    SourceUnreachableError,
    UsageError,
)
from runtriage.registry import open_source, split_run
from runtriage.trackers.mlflow_sql import source as sql_source
from runtriage.trackers.mlflow_sql.client import Database

pytestmark = pytest.mark.integration


def test_both_doors_tell_the_same(mlflow_server: RealServer) -> None:
    """A run read from the database is the run read from the server, cursor and order of points included."""
    experiment = mlflow_server.experiment("both doors")
    run = mlflow_server.run(experiment, "twin")
    mlflow_server.params(run, {"lr": "0.1", "model": "{'d': 2}"})
    mlflow_server.set_tag(run, "owner", "alice")
    points = [(3, math.nan, T0), (3, 0.5, T0), (1, -0.0, T0), (2, math.inf, T0 + 1), (1, -1.0, 1_600_000_000)]
    mlflow_server.log(run, "loss", points)
    mlflow_server.end(run)
    with (
        opened(mlflow_server.address("both doors")) as rest,
        opened(f"mlflow-sql:sqlite:///{mlflow_server.database}#both doors") as sql,
    ):
        (wanted,), (found,) = rest.list_runs(), sql.list_runs()
        one, other = rest.read(wanted).tracks["loss"], sql.read(found).tracks["loss"]
    assert replace(found, source="", url=None) == replace(wanted, source="", url=None)
    assert (other.step.tolist(), repr(other.value.tolist())) == (one.step.tolist(), repr(one.value.tolist()))
    assert other.wall is not None
    assert one.wall is not None
    assert other.wall.tolist() == one.wall.tolist()


def test_deleted_runs_are_left_out(store: Store) -> None:
    """A run in the bin is neither listed nor read."""
    experiment = store.experiment()
    kept, binned = store.run(experiment, "kept"), store.run(experiment, "binned")
    store.client.delete_run(binned)
    with opened(store.address(experiment)) as source:
        (info,) = source.list_runs()
        with pytest.raises(RunNotFoundError):
            source.read(replace(info, id=binned))
    assert info.id == kept


def test_deleted_experiments_are_refused(store: Store) -> None:
    """An experiment in the bin is not read."""
    experiment = store.experiment()
    store.client.delete_experiment(experiment)
    with opened(store.address(experiment)) as source, pytest.raises(SourceError, match="is deleted"):
        list(source.list_runs())


def test_runs_of_other_experiments_are_not_found(store: Store) -> None:
    """An id of another experiment is not silently taken."""
    run = store.run(store.experiment())
    with opened(store.address(store.experiment())) as source, pytest.raises(RunNotFoundError, match="another"):
        source.find_run(run)


def test_a_name_of_several_runs_is_refused(store: Store) -> None:
    """A name that is not unique lists ids to choose from."""
    experiment = store.experiment()
    ids = {store.run(experiment, "twice"), store.run(experiment, "twice")}
    with opened(store.address(experiment)) as source, pytest.raises(RunNotFoundError, match="2 runs") as caught:
        source.find_run("twice")
    assert all(run in caught.value.hint for run in ids)


def test_pages_are_joined(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing more runs than a page holds yields each once, newest first."""
    monkeypatch.setattr(sql_source, "RUNS_PER_PAGE", 2)
    experiment = store.experiment()
    runs = [store.client.create_run(experiment, start_time=T0 + i).info.run_id for i in range(5)]
    with opened(store.address(experiment)) as source:
        assert [info.id for info in source.list_runs()] == runs[::-1]


def test_a_writer_need_not_wait_for_a_listing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two pages of a listing nothing is locked, and a run deleted meanwhile is left out."""
    monkeypatch.setattr(sql_source, "RUNS_PER_PAGE", 1)
    experiment = store.experiment()
    first, last = (store.client.create_run(experiment, start_time=T0 - i).info.run_id for i in range(2))
    with opened(store.address(experiment)) as source:
        listing = source.list_runs()
        assert next(listing).id == first
        store.client.delete_run(last)
        assert list(listing) == []


def test_more_history_shows_in_the_cursor(store: Store) -> None:
    """A run that is over has a cursor, another one once it has more points."""
    experiment = store.experiment()
    run = store.run(experiment)
    store.client.set_terminated(run)
    with opened(store.address(experiment)) as source:
        before = source.find_run(run).cursor
        store.log(run, "loss", [(1, 0.5, T0)])
        assert "" != before != source.find_run(run).cursor


def test_hostile_names_survive(store: Store) -> None:
    """Names of metrics and runs are data, whatever they look like."""
    experiment = store.experiment()
    run = store.run(experiment, "'; drop table runs; --%s")
    store.log(run, "a/b c.d-e", [(0, 1.0, T0)])
    with opened(store.address(experiment)) as source:
        assert source.find_run("'; drop table runs; --%s").id == run
        assert list(source.read(source.find_run(run)).tracks) == ["a/b c.d-e"]


def test_the_database_refuses_our_writing(store: Store) -> None:
    """Writing through our connection fails in the database itself."""
    database = Database(store.url, "here")
    try:
        with pytest.raises(SourceError, match=r"(?i)read-?only|repaired"), database.reading() as reader:
            reader._connection.execute(sa.text("delete from runs"))
    finally:
        database.close()


def test_the_address_splits_off_its_run(store: Store) -> None:
    """A run after the experiment is told apart, and the rest opens."""
    address, run = split_run(store.address("exp/r1"))
    assert (address, run) == (store.address("exp"), "r1")


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_missing_rights_are_said(store: Store) -> None:
    """A role that may not read is refused by name, not taken for an empty experiment."""
    with store.client._tracking_client.store.engine.begin() as connection:
        connection.execute(sa.text("drop role if exists nobody_here"))
        connection.execute(sa.text("create role nobody_here login"))
    with (
        opened(store.address("0").replace("mlflow@", "nobody_here@")) as source,
        pytest.raises(AccessRefusedError, match="permission denied"),
    ):
        list(source.list_runs())


def test_no_answer_is_said_without_the_password() -> None:
    """A database that cannot be reached is named without its password."""
    with (
        opened("mlflow-sql:postgresql://me:s3cret@127.0.0.1:1/db#exp") as source,
        pytest.raises(SourceUnreachableError) as caught,
    ):
        list(source.list_runs())
    assert "127.0.0.1:1/db" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://me:s3cret@host/db", "sqlite://", "oracle+x://me:s3cret@h/d"])
def test_other_kinds_of_databases_are_refused(url: str) -> None:
    """Only SQLite files and PostgreSQL are read; the refusal holds no password."""
    with pytest.raises(UsageError, match="only SQLite") as caught:
        open_source(f"mlflow-sql:{url}#exp")
    assert "s3cret" not in str(caught.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SQLAlchemy the error says what to install."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delitem(sys.modules, "runtriage.trackers.mlflow_sql.client")
    with pytest.raises(MissingExtraError, match=r"runtriage\[sql\]"):
        open_source("mlflow-sql:sqlite:///x.db#exp")

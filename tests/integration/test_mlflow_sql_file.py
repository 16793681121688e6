"""mlflow-sql: on SQLite files: none is changed, unknown ones are refused, every known schema is read."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from alembic import command
from mlflow.store.db.utils import _get_alembic_config
from mlflow.store.tracking.dbmodels.initial_models import Base as InitialBase
from mlflow_server.real import RealServer
from mlflow_store.store import execute, opened
from typer.testing import CliRunner

from runtriage.cli.app import app
from runtriage.errors import (
    RunReadError,
    SourceError,
)
from runtriage.trackers.base import MarkTarget
from runtriage.trackers.mlflow_sql.schema import KNOWN

pytestmark = pytest.mark.integration
NEWER = {"f4a9b2c7d1e6"}  # known, and newer than the MLflow of the lock


@pytest.fixture
def database(mlflow_server: RealServer, tmp_path: Path) -> Path:
    """Return a SQLite database of MLflow's of which a test may do anything: a copy of the server's."""
    path = tmp_path / "copy of 100%?#.db"
    with contextlib.closing(sqlite3.connect(mlflow_server.database)) as old, contextlib.closing(
        sqlite3.connect(path)
    ) as new:
        old.backup(new)
    return path


def at(path: Path, experiment: str = "0") -> str:
    return f"mlflow-sql:sqlite:///{quote(str(path))}#{experiment}"


def test_reading_leaves_the_file_as_it_is(database: Path) -> None:
    """Not a byte of a SQLite database changes, and no file appears beside it."""
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    with opened(at(database)) as source:
        for info in source.list_runs():
            source.read(info)
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert list(database.parent.iterdir()) == [database]


def test_marks_are_not_offered(database: Path) -> None:
    """Marks need the server."""
    with opened(at(database)) as source:
        assert not isinstance(source, MarkTarget)


@pytest.mark.parametrize(
    "damage",
    ["alter table metrics rename to gone", "update metrics set value = 'text' where run_uuid = 'd'"],
)
def test_a_run_that_cannot_be_read_fails_alone(damage: str, database: Path) -> None:
    """What is wrong with the points of a run is an error of that run, not of the source."""
    execute(database, "insert into experiments (experiment_id, name, lifecycle_stage) values (900078, 'x', 'active')")
    execute(database, "insert into runs (run_uuid, lifecycle_stage, experiment_id) values ('d', 'active', 900078)")
    execute(database, "insert into metrics (key, value, timestamp, run_uuid, step) values ('k', 1, 1, 'd', 1)")
    execute(database, damage)
    with opened(at(database, "x")) as source:
        (info,) = source.list_runs()
        with pytest.raises(RunReadError):
            source.read(info)


def test_doctor_passes_the_advice_on(database: Path) -> None:
    """`runtriage doctor` shows what would help the database."""
    done = CliRunner().invoke(app, ["doctor", at(database)])
    assert "run ANALYZE once" in " ".join(done.output.split())


def test_an_unknown_version_is_refused(database: Path) -> None:
    """A schema that is not known is an error that names those that are."""
    execute(database, "update alembic_version set version_num = 'ffffffffffff'")
    with opened(at(database)) as source, pytest.raises(SourceError, match="ffffffffffff") as caught:
        list(source.list_runs())
    assert "dc11669786a5 (MLflow 3.17)" in caught.value.hint


def test_every_known_version_is_read(tmp_path: Path) -> None:
    """MLflow's own migrations from the oldest known schema on, each read in its turn."""
    path = tmp_path / "old.db"
    engine = sa.create_engine(f"sqlite:///{path}")
    InitialBase.metadata.create_all(engine)
    config: Any = _get_alembic_config(f"sqlite:///{path}")
    command.upgrade(config, "2d6e25af4d3e")
    execute(path, "insert into experiments (experiment_id, name, lifecycle_stage) values (7, 'old', 'active')")
    execute(path, "insert into runs (run_uuid, lifecycle_stage, experiment_id) values ('r', 'active', 7)")
    execute(path, "insert into metrics (key, value, timestamp, run_uuid, step) values ('loss', 2, 5, 'r', 1)")
    read = set()
    for _ in KNOWN - NEWER:
        with opened(at(path, "old")) as source:
            (info,) = source.list_runs()
            assert source.read(info).tracks["loss"].value.tolist() == [2.0]
        with contextlib.closing(sqlite3.connect(path)) as connection:
            read |= set(connection.execute("select version_num from alembic_version").fetchone())
        with contextlib.suppress(Exception):  # at the head there is no next one
            command.upgrade(config, "+1")
    engine.dispose()
    assert read == KNOWN - NEWER


def test_analyze_is_advised_where_it_helps(database: Path) -> None:
    """Without statistics SQLite walks all runs for one metric, which doctor says; after ANALYZE it does not."""
    fill = (
        "insert into metrics (key, value, timestamp, run_uuid, step) "
        "with recursive n(i) as (select 0 union all select i + 1 from n where i < 299) select 'k', i, i, ?, i from n"
    )
    execute(database, "insert into experiments (experiment_id, name, lifecycle_stage) values (9077, 'big', 'active')")
    for run in map(str, range(30)):
        execute(database, "insert into runs (run_uuid, lifecycle_stage, experiment_id) values (?, 'active', 9077)", run)
        execute(database, fill, run)
    with opened(at(database)) as source:
        before = source.advice()
    execute(database, "analyze")
    with opened(at(database)) as source:
        after = source.advice()
    assert (["ANALYZE" in sentence for sentence in before], after) == ([True], ())


@pytest.mark.parametrize("content", [b"", b"not a database at all, " * 100])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    """A file that is no database of MLflow's is a typed error."""
    (tmp_path / "x.db").write_bytes(content)
    with opened(at(tmp_path / "x.db")) as source, pytest.raises(SourceError, match="no database of MLflow"):
        list(source.list_runs())

"""The only door to an MLflow database: SQLAlchemy Core, read-only by the database's own word, whole runs at a time.

MLflow's own store classes are never used: opening a database with them migrates its schema and locks an older server
out. SQLite is opened with ``mode=ro``; ``immutable`` would be faster and wrong as soon as a server writes. PostgreSQL
is read in READ ONLY transactions at REPEATABLE READ, so that a run is one state of the database.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import sqlalchemy as sa

from runtriage.errors import AccessRefusedError, MissingExtraError, SourceError, SourceUnreachableError, UsageError
from runtriage.trackers.mlflow.rows import SECONDS_BELOW
from runtriage.trackers.mlflow_sql.columns import from_blobs, from_rows, joined
from runtriage.trackers.mlflow_sql.rows import Points

CONNECT_SECONDS = 10
LOCK_SECONDS = 30
STATEMENT_SECONDS = 600
_ROWS_PER_CHUNK = 100_000
_MESSAGE_LIMIT = 200
_POSTGRES = ("postgresql", "postgres")
_POOL: dict[str, Any] = {"pool_size": 4, "max_overflow": -1}  # who reads with many threads waits for no connection
_TRAP_INDEX = "index_metrics_run_uuid_key_step"

Row = tuple[Any, ...]


def _table(name: str, *columns: str) -> sa.TableClause:
    # Columns without types: values come as the driver has them, nothing is converted row by row.
    return sa.table(name, *map(sa.column, columns))


_VERSION = _table("alembic_version", "version_num")
_EXPERIMENTS = _table("experiments", "experiment_id", "name", "lifecycle_stage")
_RUNS = _table("runs", "run_uuid", "name", "status", "start_time", "end_time", "lifecycle_stage", "experiment_id")
_PARAMS = _table("params", "run_uuid", "key", "value")
_TAGS = _table("tags", "run_uuid", "key", "value")
_LATEST = _table("latest_metrics", "run_uuid", "key", "value", "timestamp", "step", "is_nan")
_METRICS = _table("metrics", "key", "step", "timestamp", "value", "is_nan", "run_uuid")
_POINT_COLUMNS = (_METRICS.c.step, _METRICS.c.timestamp, _METRICS.c.value, _METRICS.c.is_nan)
_SENDS = ("int8send", "int8send", "float8send", "boolsend")


class Database:
    """Connections to one database. Nothing is opened before the first question. Safe to use from several threads.

    Parameters
    ----------
    url
        Database URL of SQLAlchemy's form: SQLite or PostgreSQL, whatever driver it names.
    shown
        What to call it in messages, without credentials.

    Raises
    ------
    UsageError
        Not a URL, or of another kind of database.
    """

    def __init__(self, url: str, shown: str) -> None:
        self.shown = shown
        self._url = _parsed(url, shown)
        self._lock = threading.Lock()
        self._engine: sa.Engine | None = None

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open one short read-only transaction.

        Raises
        ------
        SourceUnreachableError
            No connection, no answer in time, or a lock that was not given up.
        AccessRefusedError
            The database does not let us in, or not read.
        SourceError
            Not a database, not one of MLflow's, or any other failure of a statement.
        MissingExtraError
            The driver is not installed.
        """
        with self._translated(), self._opened().connect() as connection:
            yield Reader(connection)

    def close(self) -> None:
        """Release all connections. May be called twice."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _opened(self) -> sa.Engine:
        with self._lock:
            if self._engine is None:
                is_sqlite = self._url.drivername == "sqlite"
                self._engine = _sqlite(self._url, self.shown) if is_sqlite else _postgres(self._url)
            return self._engine

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise _failure(error.orig or error, self.shown) from error
        except sqlite3.Error as error:  # rows fetched past SQLAlchemy
            raise _failure(error, self.shown) from error
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"{error.name} is not installed", where=self.shown, hint="pip install 'runtriage[sql]'"
            ) from error


class Reader:
    """Questions within one transaction. Every method raises as :meth:`Database.reading`."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"set local statement_timeout = {STATEMENT_SECONDS * 1000}")

    def versions(self) -> list[str]:
        """Return the schema versions that the database says it has: one, if all is well."""
        return [str(found) for (found,) in self._rows(sa.select(_VERSION))]

    def experiments(self) -> list[Row]:
        """Return (id, name, lifecycle stage) of all experiments."""
        return self._rows(sa.select(_EXPERIMENTS).order_by(_EXPERIMENTS.c.experiment_id))

    def run_ids(self, experiment: int) -> list[str]:
        """Return the runs of an experiment that are not deleted, newest first."""
        wanted = (_RUNS.c.experiment_id == experiment) & (_RUNS.c.lifecycle_stage == "active")
        order = (_RUNS.c.start_time.desc().nulls_last(), _RUNS.c.run_uuid)
        return [found for (found,) in self._rows(sa.select(_RUNS.c.run_uuid).where(wanted).order_by(*order))]

    def run_ids_named(self, experiment: int, name: str) -> list[str]:
        """Return the runs of an experiment of that name that are not deleted."""
        wanted = (_RUNS.c.experiment_id == experiment) & (_RUNS.c.lifecycle_stage == "active")
        return [found for (found,) in self._rows(sa.select(_RUNS.c.run_uuid).where(wanted & (_RUNS.c.name == name)))]

    def facts(self, run_ids: Sequence[str]) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
        """Return the rows of runs, params, tags and latest_metrics of some runs."""
        runs, params, tags, latest = (
            self._rows(sa.select(table).where(table.c.run_uuid.in_(run_ids)))
            for table in (_RUNS, _PARAMS, _TAGS, _LATEST)
        )
        return runs, params, tags, latest

    def points(self, run_id: str) -> Points:
        """Return all points of all metrics of a run, by one statement."""
        table = _METRICS.c
        mine = table.run_uuid == run_id
        if self._connection.dialect.name == "postgresql":
            packed = (_packed(send, column) for send, column in zip(_SENDS, _POINT_COLUMNS, strict=True))
            rows = self._rows(sa.select(table.key, *packed).where(mine).group_by(table.key))
            return joined([from_blobs(*row) for row in rows])
        # This order is that of an index; without it the planner takes one that walks the points of other runs.
        query = sa.select(table.key, *_POINT_COLUMNS).where(mine).order_by(table.key, table.step)
        return joined(list(self._fetched(query)))

    def points_since(self, run_id: str, second: int) -> tuple[Points, dict[str, int]]:
        """Return the points of a run from a moment on, and how many each metric has before it, by two statements.

        Parameters
        ----------
        run_id
            The run.
        second
            Whole seconds since the epoch.
        """
        table = _METRICS.c
        mine = table.run_uuid == run_id
        in_seconds = table.timestamp < SECONDS_BELOW
        since = sa.or_(in_seconds & (table.timestamp >= second), ~in_seconds & (table.timestamp >= second * 1000))
        count = sa.select(table.key, sa.func.count()).where(mine & ~since).group_by(table.key)
        before = {key: int(number) for key, number in self._rows(count)}
        query = sa.select(table.key, *_POINT_COLUMNS).where(mine & since).order_by(table.key, table.step)
        return joined(list(self._fetched(query))), before

    def walks_all_runs(self) -> bool:
        """Return True if MLflow's own question for one metric would walk that metric's points of all runs."""
        if self._connection.dialect.name != "sqlite":
            return False
        question = (
            "explain query plan select * from metrics where run_uuid = 'r' and key = 'k' "
            "order by timestamp, step, value limit 25001"
        )
        plan = " ".join(str(row[-1]) for row in self._connection.exec_driver_sql(question))
        indexes = [str(row[1]) for row in self._connection.exec_driver_sql("pragma index_list(metrics)")]
        return _TRAP_INDEX in indexes and "autoindex" in plan

    def _rows(self, query: sa.Select[Any]) -> list[Row]:
        return [tuple(row) for row in self._connection.execute(query)]

    def _fetched(self, query: sa.Select[Any]) -> Iterator[Points]:
        cursor: Any = self._connection.execute(query).cursor  # the driver's own rows: a third of the cost
        while rows := cursor.fetchmany(_ROWS_PER_CHUNK):
            yield from_rows(rows)


def _packed(send: str, column: sa.ColumnClause[Any]) -> sa.ColumnElement[Any]:
    """Return the values of a column, of one metric, as PostgreSQL sends them: one byte string instead of a row each.

    Four times as fast as COPY, which drivers hand over row by row. Aggregates of one query see the same order of rows.
    """
    return sa.func.string_agg(getattr(sa.func, send)(column), sa.literal(b"", sa.LargeBinary))


def _parsed(url: str, shown: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise UsageError("this is not the URL of a database", where=shown, hint=_KINDS) from None
    kind = parsed.drivername.partition("+")[0]
    if kind == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed.set(drivername="sqlite")
    if kind in _POSTGRES:
        return parsed.set(drivername="postgresql+psycopg")
    raise UsageError("only SQLite files and PostgreSQL can be read", where=shown, hint=_KINDS)


_KINDS = "write sqlite:///FILE or postgresql://USER@HOST/DATABASE"


def _sqlite(url: sa.URL, shown: str) -> sa.Engine:
    typed = Path(str(url.database).removeprefix("file:"))
    path = typed if typed.is_file() else Path(unquote(str(typed)))  # '?' and '#' have to be typed as %3F and %23
    if not path.is_file():
        raise SourceError("there is no such database file", where=shown)
    # Quoted, so that no character of a path can become an option of the URI.
    place = f"file:{quote(str(path.absolute()))}?mode=ro"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(place, uri=True, timeout=LOCK_SECONDS, check_same_thread=False)
        connection.execute("pragma query_only = on")
        return connection

    creator: Callable[[], Any] = connect
    return sa.create_engine("sqlite://", creator=creator, poolclass=sa.QueuePool, **_POOL)


def _postgres(url: sa.URL) -> sa.Engine:
    return sa.create_engine(
        url,
        connect_args={"connect_timeout": CONNECT_SECONDS, "application_name": "runtriage"},
        isolation_level="REPEATABLE READ",
        execution_options={"postgresql_readonly": True},
        pool_pre_ping=True,
        **_POOL,
    )


def _failure(error: BaseException, shown: str) -> SourceError:
    """Return our error for one of a driver's; drivers do not put passwords into theirs."""
    text = " ".join(str(error).split())[:_MESSAGE_LIMIT]
    state = getattr(error, "sqlstate", None) or ""
    low = text.lower()
    if state.startswith("28") or state == "42501" or "authentication failed" in low or "permission denied" in low:
        return AccessRefusedError(f"the database refuses: {text}", where=shown)
    if "no such table" in low or state == "42P01" or "not a database" in low:
        return SourceError(f"this is no database of MLflow: {text}", where=shown)
    if "readonly database" in low:
        return SourceError(
            "the database waits to be repaired after a crash, which only a writer can do",
            where=shown, hint="start its MLflow server once, or stop what is writing",
        )  # fmt: skip
    is_local = isinstance(error, sqlite3.Error)
    if any(word in low for word in ("locked", "unable to open")) if is_local else state[:2] in ("", "08", "53", "57"):
        return SourceUnreachableError(f"the database does not answer: {text}", where=shown)
    return SourceError(f"the database failed: {text}", where=shown)

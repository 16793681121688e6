"""Runs of one MLflow experiment, read from the database behind its server. Only reading: marks need the server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from runtriage.errors import (
    AccessRefusedError,
    MissingExtraError,
    RunNotFoundError,
    RunReadError,
    SourceError,
    SourceUnreachableError,
)
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.refs import database_url, parse_address
from runtriage.trackers.mlflow import wire
from runtriage.trackers.mlflow_sql.rows import records, tracks
from runtriage.trackers.mlflow_sql.schema import check_version
from runtriage.trackers.mlflow_sql.tails import continued, last_second

if TYPE_CHECKING:
    from runtriage.trackers.mlflow_sql.client import Database, Reader

T = TypeVar("T")

RUNS_PER_PAGE = 500
_NAMES_SHOWN = 5
_ANALYZE = (
    "without statistics, SQLite answers the MLflow server's question for one metric by walking the points of all runs: "
    "run ANALYZE once in this database, while the server is stopped"
)


class SqlSource:
    """The runs of one experiment in a database. Implements ``HistorySource`` and ``TailSource``.

    Nothing is opened before it is needed.

    Parameters
    ----------
    address
        Canonical address, without credentials.
    experiment
        Id or name.
    database
        Where to read.
    """

    def __init__(self, address: str, experiment: str, database: Database) -> None:
        self._address = address
        self._asked = experiment
        self._database = database
        self._lock = threading.Lock()
        self._experiment: int | None = None

    @property
    def address(self) -> str:
        """Canonical address, without credentials."""
        return self._address

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs that are not deleted, newest first.

        Raises
        ------
        SourceError
            The database cannot be read, is of an unknown version, or has no such experiment.
        """
        experiment = self._experiment_id()
        with self._database.reading() as reader:
            ids = reader.run_ids(experiment)
        for start in range(0, len(ids), RUNS_PER_PAGE):
            page = ids[start : start + RUNS_PER_PAGE]
            with self._database.reading() as reader:  # short, so that a writer need not wait for who lists
                found = records(*reader.facts(page))
            yield from (self._info(found[run]) for run in page if run in found and not found[run].deleted)

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run by id, or by its name when that is unique.

        Raises
        ------
        RunNotFoundError
            No such run in this experiment, or several of that name.
        SourceError
            As :meth:`list_runs`.
        """
        experiment = self._experiment_id()
        with self._database.reading() as reader:
            record = records(*reader.facts([run_id])).get(run_id)
            if record is None:
                ids = reader.run_ids_named(experiment, run_id)
                if len(ids) > 1:
                    shown = ", ".join(ids[:_NAMES_SHOWN])
                    raise RunNotFoundError(
                        f"{len(ids)} runs have this name", where=self._where(run_id), hint=f"use an id, such as {shown}"
                    )
                record = records(*reader.facts(ids)).get(ids[0]) if ids else None
        if record is None:
            raise RunNotFoundError("there is no run of this id or name", where=self._where(run_id))
        if record.deleted:
            raise RunNotFoundError("the run is deleted", where=self._where(run_id))
        if record.experiment_id != str(experiment):
            raise RunNotFoundError("the run belongs to another experiment", where=self._where(run_id))
        return self._info(record)

    def read(self, info: RunInfo) -> RunHistory:
        """Return every point of every metric of a run, in logged order.

        Raises
        ------
        RunNotFoundError
            The run does not exist (any more).
        RunReadError
            A statement failed on this run.
        SourceError
            The database cannot be reached or refuses.
        """
        record, points = self._answered(info, lambda reader: reader.points(info.id))
        return RunHistory(info=self._info(record), tracks=tracks(points))

    def read_tail(self, info: RunInfo, cached: RunHistory) -> RunHistory | None:
        """Return the same as :meth:`read`, pulling what was logged from the last second known on; raises as it does.

        None if a metric has more or fewer points before that second than it had, or others in it.
        """
        second = last_second(cached.tracks)
        if cached.notes or second is None:
            return None
        record, (points, before) = self._answered(info, lambda reader: reader.points_since(info.id, second))
        found = continued(cached.tracks, tracks(points), before, second)
        return None if found is None else RunHistory(info=self._info(record), tracks=found)

    def _answered(self, info: RunInfo, question: Callable[[Reader], T]) -> tuple[wire.RunRecord, T]:
        self._experiment_id()
        try:
            with self._database.reading() as reader:
                record = records(*reader.facts([info.id])).get(info.id)
                answer = question(reader) if record is not None else None
        except (SourceUnreachableError, AccessRefusedError):
            raise
        except SourceError as error:
            raise RunReadError(error.message, where=self._where(info.id), hint=error.hint) from error
        except (ValueError, TypeError, OverflowError) as error:  # SQLite takes anything in any column
            raise RunReadError("the run holds points that are no numbers", where=self._where(info.id)) from error
        if record is None or answer is None or record.deleted:
            raise RunNotFoundError("the run does not exist, or is deleted", where=self._where(info.id))
        return record, answer

    def advice(self) -> tuple[str, ...]:
        """Return what would help this database, as sentences for ``runtriage doctor``; raises as :meth:`list_runs`."""
        with self._database.reading() as reader:
            if not reader.walks_all_runs():
                return ()
        return (_ANALYZE,)

    def close(self) -> None:
        """Release connections. May be called twice."""
        self._database.close()

    def _experiment_id(self) -> int:
        with self._lock:
            if self._experiment is None:
                with self._database.reading() as reader:
                    check_version(reader.versions(), self._database.shown)
                    self._experiment = self._found_experiment(reader)
            return self._experiment

    def _found_experiment(self, reader: Reader) -> int:
        rows = reader.experiments()
        found = [row for row in rows if str(row[0]) == self._asked] or [row for row in rows if row[1] == self._asked]
        alive = [row for row in found if row[2] != "deleted"]
        if len(alive) == 1:
            return int(alive[0][0])
        if alive:  # one name in several workspaces
            ids = ", ".join(str(row[0]) for row in alive[:_NAMES_SHOWN])
            raise SourceError(f"{len(alive)} experiments have this name", where=self._address, hint=f"use an id: {ids}")
        if found:
            raise SourceError("the experiment is deleted", where=self._address)
        names = ", ".join(repr(row[1]) for row in rows[:_NAMES_SHOWN] if row[2] != "deleted") or "none"
        raise SourceError("there is no such experiment", where=self._address, hint=f"the database has {names}")

    def _info(self, record: wire.RunRecord) -> RunInfo:
        return replace(record.info(source=self._address, url=""), url=None)

    def _where(self, run: str) -> str:
        return f"{self._address}/{run}"


def open_source(address: str) -> SqlSource:
    """Return the source of an address.

    Raises
    ------
    UsageError
        The address names no database of a kind that can be read.
    MissingExtraError
        SQLAlchemy is not installed.
    """
    try:
        from runtriage.trackers.mlflow_sql.client import Database  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise MissingExtraError(
            "mlflow-sql: needs SQLAlchemy, which is not installed", hint="pip install 'runtriage[sql]'"
        ) from error
    parsed = parse_address(address)
    return SqlSource(parsed.canonical, parsed.parts[0], Database(database_url(address), parsed.canonical))

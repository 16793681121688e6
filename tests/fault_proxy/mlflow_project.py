"""An experiment on the real MLflow server behind the proxy: known findings, marks of other people, and a way back."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlflow_server.real import RealServer

from fault_proxy.proxy import Proxy
from runtriage.model.history import RunHistory
from runtriage.trackers.mlflow import note
from runtriage.trackers.mlflow.marks import NOTE_TAG
from runtriage.trackers.mlflow.view import VIEW_TAG, state_digest

WRITES = re.compile(r"PUT .*|DELETE .*|runs/log-batch|runs/delete-tag|experiments/(set|delete)-experiment-tag")
_API = "/api/2.0/mlflow/"
_TABLES = {"tags": ("run_uuid", "key", "value"), "experiment_tags": ("experiment_id", "key", "value")}
NOTES = ["Mine *stays*.\n", "", "<!-- runtriage:end --> \u2028 odd"]


def request_name(method: str, path: str, body: bytes) -> str:
    """Return what a request is called: the endpoint, or the method and the file."""
    del body
    return path.removeprefix(_API) if path.startswith(_API) else f"{method} {path.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True)
class Saved:
    """Marks at some moment: rows by table, and files."""

    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    files: Mapping[str, bytes]


@dataclass(slots=True)
class MlflowProject:
    """One experiment; its address is that of the proxy.

    Attributes
    ----------
    runs
        Name to id.
    bare
        The marks of the beginning.
    """

    server: RealServer
    proxy: Proxy
    experiment: str
    runs: dict[str, str]
    bare: Saved = field(default_factory=lambda: Saved({}, {}))

    @classmethod
    def made(cls, server: RealServer, proxy: Proxy, histories: Sequence[RunHistory]) -> MlflowProject:
        """Log the runs, with tags, notes and files of somebody else's."""
        experiment = server.experiment()
        runs = {history.info.id: server.put(experiment, history) for history in histories}
        project = cls(server, proxy, experiment, runs)
        for place, run in enumerate(runs.values()):
            server.set_tag(run, "team", f"llm {place}")
            server.set_tag(run, "runtriage.contract", "grad_norm=global")
            if place % 4 < len(NOTES):
                server.set_tag(run, NOTE_TAG, NOTES[place % 4])
            for path in ("runtriage/theirs.txt", "plots/loss.txt")[place % 2 :]:
                server.raw("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/{path}", {"a": 1})
        server.set_experiment_tag(experiment, "owner", "them")
        server.set_experiment_tag(experiment, NOTE_TAG, "Ours, not runtriage's.")
        project.bare = project.taken()
        return project

    @property
    def address(self) -> str:
        """Address of the experiment, through the proxy."""
        return f"mlflow://{self.proxy.host}/{self.experiment}"

    def state(self) -> dict[str, Any]:
        """Return all that a sweep could have changed, as it lies on the server's disk."""
        names = {run: name for name, run in self.runs.items()}
        found: dict[str, Any] = {f"file {path}": content for path, content in self._files_now().items()}
        for table, (owner, *_) in _TABLES.items():
            for who, key, value in self._select(table):
                shown = state_digest(value) if key == VIEW_TAG else value  # when a view was made may differ
                found[f"{owner} {names.get(who, who)} {key}"] = shown
        return found

    def foreign(self) -> dict[str, Any]:
        """Return the part of that which is not ours."""
        kept = {}
        for key, value in self.state().items():
            if key.startswith("file "):
                if not key.endswith(("runtriage/panel.svg", "runtriage/panel.html")):
                    kept[key] = value
            elif key.endswith(NOTE_TAG):
                if theirs := note.take_apart(value).foreign:  # a note that was empty or missing holds nothing of theirs
                    kept[key] = theirs
            elif key.endswith("runtriage.contract") or (" runtriage." not in key and not key.endswith(VIEW_TAG)):
                kept[key] = value
        return kept

    def taken(self) -> Saved:
        """Return the marks as they are, ours and others', for :meth:`load`."""
        return Saved({table: self._select(table) for table in _TABLES}, self._files_now())

    def restore(self) -> None:
        """Go back to the marks of the beginning, none of which is ours."""
        self.load(self.bare)

    def load(self, saved: Saved) -> None:
        """Go back to marks that were taken."""
        with contextlib.closing(self._connect()) as connection, connection:
            for table, columns in _TABLES.items():
                holders = self._holders(table)
                marks = ",".join("?" * len(holders))
                connection.execute(f"delete from {table} where {columns[0]} in ({marks})", holders)  # noqa: S608
                connection.executemany(
                    f"insert into {table} ({','.join(columns)}) values (?, ?, ?)",  # noqa: S608
                    saved.rows[table],
                )
        shutil.rmtree(self._root)
        for path, content in saved.files.items():
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
            (self._root / path).write_bytes(content)

    def swap_curves(self, one: str, other: str) -> None:
        """Exchange the curves of two runs, behind the server's back."""
        pairs = ((self.runs[one], "swap"), (self.runs[other], self.runs[one]), ("swap", self.runs[other]))
        with contextlib.closing(self._connect()) as connection:
            connection.execute("pragma foreign_keys = off")
            with connection:
                for table in ("metrics", "latest_metrics"):
                    for old, new in pairs:
                        connection.execute(f"update {table} set run_uuid = ? where run_uuid = ?", (new, old))  # noqa: S608

    @property
    def _root(self) -> Path:
        return self.server.database.parent / "artifacts" / self.experiment

    def _files_now(self) -> dict[str, bytes]:
        files = (path for path in self._root.rglob("*") if path.is_file())
        return {str(path.relative_to(self._root)): path.read_bytes() for path in files}

    def _holders(self, table: str) -> list[str]:
        return list(self.runs.values()) if table == "tags" else [self.experiment]

    def _select(self, table: str) -> list[tuple[Any, ...]]:
        columns, holders = _TABLES[table], self._holders(table)
        marks = ",".join("?" * len(holders))
        asked = f"select {','.join(columns)} from {table} where {columns[0]} in ({marks}) order by 1, 2"  # noqa: S608
        with contextlib.closing(self._connect()) as connection:
            return [(str(owner), key, value) for owner, key, value in connection.execute(asked, holders)]

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.server.database, timeout=60)


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return where two states differ, short enough to read."""
    keys = sorted(found.keys() | wanted.keys())
    return [
        f"{key}: {str(found.get(key))[:200]!r} instead of {str(wanted.get(key))[:200]!r}"
        for key in keys
        if found.get(key) != wanted.get(key)
    ]

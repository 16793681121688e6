"""An experiment that runtriage shares with other people: what they do to it, and what must be left of that.

What they do goes through the server's API; what is there is read past it, from its database and its folder.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from mlflow_server.real import T0, RealServer

NOTE = "mlflow.note.content"
NOTE_LIMIT = 8000
"""Characters of a note of a run that MLflow keeps; it cuts the rest off."""
THEIRS = frozenset({"runtriage.contract"})
"""Keys with our prefix that people write."""

_BEGIN = re.compile(r"<!-- runtriage:begin -->\n|\n\n<!-- runtriage:begin apart -->\n|<!-- runtriage:begin apart -->\n")
_END = re.compile(r"\n<!-- runtriage:end -->")
_AUTOMATIC = frozenset({"mlflow.user", "mlflow.runName", "mlflow.source.name", "mlflow.source.type"})


@dataclass(slots=True, kw_only=True)
class Place:
    """A run, or the experiment itself, as other people left it.

    Attributes
    ----------
    tags
        Theirs.
    note
        Their text, without our block; None while there is no note of theirs.
    files
        Theirs, by path below the artifacts.
    """

    tags: dict[str, str] = field(default_factory=dict)
    note: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Run(Place):
    """A run of theirs.

    Attributes
    ----------
    code
        The value its loss has now.
    points
        How many were logged.
    deleted
        Whether it is.
    touched
        Whether somebody changed our note or files of it since the last time that everything was read.
    """

    id: str
    name: str
    code: int = 0
    points: int = 0
    deleted: bool = False
    touched: bool = False


class Shared:
    """One experiment with some runs of one config, all over."""

    def __init__(self, server: RealServer, runs: int) -> None:
        self.server = server
        self.id = server.experiment()
        self.address = server.address(self.id)
        self.whole = Place()
        self.runs: list[Run] = []
        for number in range(runs):
            name = f"run-{number}-of-{self.id}"
            run = Run(id=server.run(self.id, name), name=name)
            server.params(run.id, {"lr": "0.1"})
            self.log(run, 0)
            server.end(run.id)
            self.runs.append(run)

    @property
    def active(self) -> list[Run]:
        """The runs that are not deleted."""
        return [run for run in self.runs if not run.deleted]

    def log(self, run: Run, code: int) -> None:
        """Go on with a run: what is found in it is said by its loss."""
        self.server.log(run.id, "loss", [(run.points, float(code), T0 + run.points)])
        run.points, run.code = run.points + 1, code

    def delete(self, run: Run) -> None:
        """Delete a run, which keeps what hangs on it."""
        self.server.call("POST", "runs/delete", {"run_id": run.id})
        run.deleted = True

    def restore(self, run: Run) -> None:
        """Bring a deleted run back."""
        self.server.call("POST", "runs/restore", {"run_id": run.id})
        run.deleted = False

    def set_tag(self, place: Place, key: str, value: str) -> None:
        """Set a tag, whosever it is."""
        if isinstance(place, Run):
            self.server.set_tag(place.id, key, value)
        else:
            self.server.set_experiment_tag(self.id, key, value)

    def drop_tag(self, place: Place, key: str) -> None:
        """Take a tag off, if it is there."""
        if key not in self.raw_tags(place):
            return
        if isinstance(place, Run):
            self.server.call("POST", "runs/delete-tag", {"run_id": place.id, "key": key})
        else:
            self.server.call("POST", "experiments/delete-experiment-tag", {"experiment_id": self.id, "key": key})

    def write_note(self, place: Place, text: str) -> None:
        """Replace the note, our block with it."""
        self.set_tag(place, NOTE, text)
        place.note = text

    def drop_note(self, place: Place) -> None:
        """Remove the note, our block with it."""
        self.drop_tag(place, NOTE)
        place.note = None

    def write_around(self, place: Place, before: str, after: str) -> None:
        """Write around what is in the note, ours or theirs, as far as the server holds it."""
        now = self.raw_tags(place).get(NOTE)
        if now is None:
            self.write_note(place, before + after)
            return
        if len(before + now + after) > NOTE_LIMIT:
            return
        self.set_tag(place, NOTE, before + now + after)
        place.note = before + (place.note or "") + after

    def put_file(self, run: Run, path: str, content: bytes) -> None:
        """Store a file, whosever it is."""
        where = f"{self.server.base}/api/2.0/mlflow-artifacts/artifacts/{self.id}/{run.id}/artifacts/{path}"
        with urllib.request.urlopen(urllib.request.Request(where, content, method="PUT"), timeout=60):  # noqa: S310
            pass

    def remove_folder(self, run: Run) -> None:
        """Remove our folder, with all that is in it."""
        shutil.rmtree(self._artifacts(run) / "runtriage", ignore_errors=True)
        run.files = {path: content for path, content in run.files.items() if not path.startswith("runtriage/")}

    def raw_tags(self, place: Place) -> dict[str, str]:
        """Return all tags, as the database has them."""
        table, column = ("tags", "run_uuid") if isinstance(place, Run) else ("experiment_tags", "experiment_id")
        key = place.id if isinstance(place, Run) else int(self.id)
        with contextlib.closing(sqlite3.connect(self.server.database, timeout=30)) as connection:
            return dict(connection.execute(f"select key, value from {table} where {column} = ?", (key,)))  # noqa: S608

    def raw_files(self, run: Run) -> dict[str, bytes]:
        """Return all files, path to content."""
        root = self._artifacts(run)
        return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}

    def _artifacts(self, run: Run) -> Path:
        return self.server.database.parent / "artifacts" / self.id / run.id / "artifacts"

    def our_tags(self, place: Place) -> dict[str, str]:
        """Return the tags that are not theirs, records included."""
        return {k: v for k, v in self.raw_tags(place).items() if _is_ours(k) and k not in place.tags}

    def our_block(self, place: Place) -> str | None:
        """Return what is in the note beside their text, which must be there as they left it."""
        now = self.raw_tags(place).get(NOTE)
        if now == place.note:
            return None
        assert now is not None, "their note is gone"
        for begin in _BEGIN.finditer(now):
            for end in _END.finditer(now, begin.end() - 1):
                if now[: begin.start()] + now[end.end() :] == (place.note or ""):
                    return now[begin.end() : end.start()]
        raise AssertionError(f"neither our block in their text nor their text: {now!r}, not {place.note!r}")

    def our_files(self, run: Run) -> dict[str, bytes]:
        """Return the files that are not theirs."""
        return {path: content for path, content in self.raw_files(run).items() if path not in run.files}

    def check_theirs(self) -> None:
        """Fail if anything of other people is not as they left it, or something of nobody is there."""
        for place in (self.whole, *self.runs):
            found = self.raw_tags(place)
            theirs = {k: v for k, v in found.items() if k in place.tags or not (_is_ours(k) or k in _AUTOMATIC)}
            assert {k: v for k, v in theirs.items() if k != NOTE} == place.tags
            self.our_block(place)
        for run in self.runs:
            found = self.raw_files(run)
            assert {path: found.get(path) for path in run.files} == run.files
            assert {path for path in found if not path.startswith("runtriage/")} <= run.files.keys()


def _is_ours(key: str) -> bool:
    view = "mlflow.sharedViewState.runtriage-flagged"
    return key == view or (key.startswith("runtriage.") and key not in THEIRS)

"""A folder of runs as a source: ``NAME/run.json`` with the facts and ``NAME/history.{parquet,csv,jsonl}`` with the curves.

Runs lie in the folder itself or in ``runs/`` below it. Histories never pass through pandas, which cannot tell a metric
that was not logged from one that was logged as NaN.
"""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runtriage.errors import RunNotFoundError, RunReadError, SourceError
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.refs import parse_address
from runtriage.model.vocab import RunState
from runtriage.trackers.tables import read_csv, read_jsonl, read_parquet

_READERS = {"parquet": read_parquet, "csv": read_csv, "jsonl": read_jsonl}
_STATES = {
    "running": RunState.RUNNING,
    "finished": RunState.FINISHED,
    "completed": RunState.FINISHED,
    "failed": RunState.FAILED,
    "crashed": RunState.FAILED,
    "killed": RunState.KILLED,
}


class FilesSource:
    """The runs of a folder.

    Parameters
    ----------
    address
        ``files:DIR``.

    Raises
    ------
    UsageError
        Not an address.
    """

    def __init__(self, address: str) -> None:
        parsed = parse_address(address)
        self._address = parsed.canonical
        self._root = Path(parsed.location).expanduser()
        self._folders: dict[str, Path] = {}
        self._lock = threading.Lock()

    @staticmethod
    def split_run(address: str) -> tuple[str, str | None]:
        """Split ``files:DIR/RUN`` if ``DIR/RUN`` is a run, or if ``DIR`` has runs and nothing is at ``DIR/RUN``."""
        folder = Path(parse_address(address).location)
        here = folder.expanduser()
        if _is_run(here):
            return f"files:{folder.parent}", _info("", here)[0].id
        if not here.exists() and any(_run_folders(here.parent)):
            return f"files:{folder.parent}", folder.name
        return address, None

    @property
    def address(self) -> str:
        """Canonical address."""
        return self._address

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs by folder name.

        Raises
        ------
        SourceError
            There is no such folder.
        """
        if not self._root.is_dir():
            raise SourceError("there is no such folder", where=self._address)
        seen: set[str] = set()
        for folder in _run_folders(self._root):
            info, _ = _info(self._address, folder)
            if info.id in seen:  # two folders claim one id: the later one goes by its place
                info = _renamed(info, str(folder.relative_to(self._root)))
            seen.add(info.id)
            with self._lock:
                self._folders[info.id] = folder
            yield info

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run by id, or by name or folder where that is unique.

        Raises
        ------
        RunNotFoundError
            No such run, or several.
        """
        infos = list(self.list_runs())
        for info in infos:
            if info.id == run_id:
                return info
        named = [info for info in infos if run_id in (info.name, self._folders[info.id].name)]
        if len(named) != 1:
            what = f"{len(named)} runs are called" if named else "there is no run"
            raise RunNotFoundError(f"{what} {run_id}", where=self._address)
        return named[0]

    def read(self, info: RunInfo) -> RunHistory:
        """Return the history of a run; what is missing or broken is in its notes.

        Raises
        ------
        RunNotFoundError
            The folder of the run is gone.
        RunReadError
            The history file exists and cannot be read at all.
        """
        folder = self._folder(info)
        notes = list(_info(self._address, folder)[1])
        for suffix, reader in _READERS.items():
            path = folder / f"history.{suffix}"
            if not path.is_file():
                continue
            try:
                found = reader(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise RunReadError(f"the history cannot be opened: {error.strerror}", where=str(path)) from error
            if not found.tracks:
                notes.append(f"{path.name} holds no logged value")
            return RunHistory(info=info, tracks=found.tracks, notes=(*notes, *found.notes))
        return RunHistory(info=info, tracks={}, notes=(*notes, "the run has no history file"))

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _folder(self, info: RunInfo) -> Path:
        with self._lock:
            folder = self._folders.get(info.id)
        if folder is None and self._root.is_dir():
            for _ in self.list_runs():
                pass
            with self._lock:
                folder = self._folders.get(info.id)
        if folder is None or not folder.is_dir():
            raise RunNotFoundError(f"the run {info.id} is not there any more", where=self._address)
        return folder


def _run_folders(root: Path) -> Iterator[Path]:
    if _is_run(root):
        yield root
        return
    for place in (root, root / "runs"):
        if place.is_dir():
            yield from (child for child in sorted(place.iterdir()) if _is_run(child))


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("run.json", *(f"history.{suffix}" for suffix in _READERS)))


def _info(address: str, folder: Path) -> tuple[RunInfo, tuple[str, ...]]:
    try:
        facts = json.loads((folder / "run.json").read_bytes())
    except FileNotFoundError:
        return RunInfo(source=address, id=folder.name, name=folder.name), ("the run has no run.json: config unknown",)
    except (OSError, ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        note = "run.json cannot be read: config and state unknown"
        return RunInfo(source=address, id=folder.name, name=folder.name), (note,)
    run_id = str(facts.get("id") or folder.name)
    url = facts.get("url")
    config = facts.get("config")
    return RunInfo(
        source=address,
        id=run_id,
        name=str(facts.get("name") or run_id),
        state=_STATES.get(str(facts.get("state")).lower(), RunState.UNKNOWN),
        config=config if isinstance(config, dict) else {},
        tags=_tags(facts.get("tags")),
        url=url if isinstance(url, str) and url.startswith(("http://", "https://")) else None,
        started=_seconds(facts.get("started", facts.get("created_at"))),
    ), ()


def _tags(tags: Any) -> Mapping[str, str]:
    if isinstance(tags, dict):
        return {str(key): str(value) for key, value in tags.items()}
    return {str(tag): "" for tag in tags} if isinstance(tags, list) else {}


def _seconds(moment: Any) -> float | None:
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        return float(moment)
    try:
        parsed = datetime.datetime.fromisoformat(str(moment))
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.UTC)).timestamp()


def _renamed(info: RunInfo, run_id: str) -> RunInfo:
    return RunInfo(
        source=info.source,
        id=run_id,
        name=info.name,
        state=info.state,
        config=info.config,
        tags=info.tags,
        url=info.url,
        started=info.started,
    )

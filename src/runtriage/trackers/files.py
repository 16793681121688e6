"""A folder of runs as a source: ``NAME/run.json`` with the facts, ``NAME/history.{parquet,csv,jsonl}`` with the curves.

Runs lie in the folder itself or in ``runs/`` below it; a folder that holds nothing but tables (``NAME.csv``,
``NAME.parquet``) is read as one run a table, with an unknown config. Histories never pass through pandas, which cannot
tell a metric that was not logged from one that was logged as NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtriage.errors import RunNotFoundError, RunReadError
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.vocab import RunState
from runtriage.trackers.folder import FolderSource, cursor_of
from runtriage.trackers.tables import Found, read_csv, read_jsonl, read_parquet

_READERS = {"parquet": read_parquet, "csv": read_csv, "jsonl": read_jsonl}
_BARE = frozenset({".csv", ".parquet"})
_FAR_FUTURE = 1e12
_NO_FACTS = "the run has no run.json: config unknown"
_NAMES = ("run.json", *(f"history.{suffix}" for suffix in _READERS))
_STATES = {
    "running": RunState.RUNNING,
    "finished": RunState.FINISHED,
    "completed": RunState.FINISHED,
    "failed": RunState.FAILED,
    "crashed": RunState.FAILED,
    "killed": RunState.KILLED,
}


class FilesSource(FolderSource[Path]):
    """The runs of a folder: ``files:DIR``. A place is the folder of a run, or a bare table."""

    scheme = "files"

    def read(self, info: RunInfo) -> RunHistory:
        """Return the history of a run; what is missing or broken is in its notes.

        Raises
        ------
        RunNotFoundError
            The run is gone.
        RunReadError
            The history file exists and cannot be read at all.
        """
        place = self._place(info)
        if not place.exists():
            raise RunNotFoundError(f"the run {info.id} is not there any more", where=self._address)
        bare = place.is_file()
        notes = [_NO_FACTS] if bare else list(_info(self._address, place)[1])
        for suffix, reader in _READERS.items():
            path = place if bare else place / f"history.{suffix}"
            if path.suffix != f".{suffix}" or not path.is_file():
                continue
            found = _read(path, reader)
            if not found.tracks and not found.notes:
                notes.append(f"{path.name} holds no logged value")
            return RunHistory(info=info, tracks=found.tracks, notes=(*notes, *found.notes))
        return RunHistory(info=info, tracks={}, notes=(*notes, "the run has no history file"))

    @classmethod
    def _scan(cls, address: str, root: Path) -> Iterator[tuple[RunInfo, Path]]:
        if _is_run(root):
            yield _info(address, root)[0], root
            return
        none = True
        for place in (root, root / "runs"):
            if place.is_dir():
                for child in sorted(place.iterdir()):
                    if _is_run(child):
                        none = False
                        yield _info(address, child)[0], child
        if none and root.is_dir():
            for path in sorted(root.iterdir()):
                if path.suffix in _BARE and path.is_file():
                    yield RunInfo(source=address, id=path.stem, name=path.stem, cursor=cursor_of([path])), path

    @classmethod
    def _run_at(cls, path: Path) -> str | None:
        return _info("", path)[0].id if _is_run(path) else None

    @staticmethod
    def _folder_name(place: Path) -> str:
        return place.name


def _read(path: Path, reader: Callable[[Path], Found]) -> Found:
    try:
        return reader(path)
    except OSError as error:
        raise RunReadError(f"the history cannot be opened: {error.strerror}", where=str(path)) from error


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _NAMES)


def _info(address: str, folder: Path) -> tuple[RunInfo, tuple[str, ...]]:
    cursor = cursor_of(folder / name for name in _NAMES)
    try:
        facts = json.loads((folder / "run.json").read_bytes())
    except FileNotFoundError:
        return RunInfo(source=address, id=folder.name, name=folder.name, cursor=cursor), (_NO_FACTS,)
    except (OSError, ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        note = "run.json cannot be read: config and state unknown"
        return RunInfo(source=address, id=folder.name, name=folder.name, cursor=cursor), (note,)
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
        cursor=cursor,
    ), ()


def _tags(tags: Any) -> Mapping[str, str]:
    if isinstance(tags, dict):
        return {str(key): str(value) for key, value in tags.items()}
    return {str(tag): "" for tag in tags} if isinstance(tags, list) else {}


def _seconds(moment: Any) -> float | None:
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        return float(moment) if abs(moment) < _FAR_FUTURE and math.isfinite(moment) else None
    try:
        parsed = datetime.fromisoformat(str(moment))
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()

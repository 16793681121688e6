"""W&B run folders and bare ``.wandb`` files as a source, without a server and without wandb.

A run that was resumed has one folder an attempt. Attempts of one run are read one after the other, oldest first, so a
step that goes back or starts anew stays visible; notes say where attempts begin.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from runtriage.errors import RunNotFoundError, RunReadError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.vocab import RunState
from runtriage.trackers.columns import from_objects
from runtriage.trackers.folder import FolderSource, cursor_of
from runtriage.trackers.wandb.facts import Facts
from runtriage.trackers.wandb.log import Log, LogHistory
from runtriage.trackers.wandb.values import flat

_RUN_FOLDER = re.compile(r"(?:offline-)?run-(?P<started>\d{8}_\d{6})-(?P<id>.+)")
_DEPTH = 4
_NOT_INSIDE = frozenset({"files", "logs", "tmp", "artifacts", "media", "node_modules", "site-packages"})
_SUMMARY = "wandb-summary.json"
_SMALL = 64 * 2**20
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One start of a run: its log, its folder, or both."""

    log: Path | None
    folder: Path | None

    @property
    def files(self) -> list[Path]:
        """The files that change when the run goes on."""
        beside = [] if self.folder is None else [self.folder / "files" / name for name in ("config.yaml", _SUMMARY)]
        return [*beside, self.log] if self.log is not None else beside

    @property
    def shown(self) -> str:
        """Name on disk."""
        return self.folder.name if self.folder is not None else self.log.name if self.log is not None else ""


class WandbFilesSource(FolderSource[tuple[Attempt, ...]]):
    """The runs below a folder: ``wandb-local:DIR``. A place is the attempts of one run, oldest first."""

    scheme = "wandb-local"

    def read(self, info: RunInfo) -> RunHistory:
        """Return every row of every attempt of a run, in logged order; damage is in the notes.

        Raises
        ------
        RunNotFoundError
            The run is gone.
        RunReadError
            None of its logs can be opened, or none is a ``.wandb`` file.
        """
        attempts = self._place(info)
        parts: list[LogHistory] = []
        notes: list[str] = []
        errors: list[RunReadError] = []
        ended = True
        for attempt in attempts:
            try:
                log = Log(attempt.log) if attempt.log is not None else None
            except FileNotFoundError:
                log = None
            except RunReadError as error:
                errors.append(error)
                notes.append(f"{attempt.shown}: {error.message}")
                continue
            part = log.history() if log is not None else None
            if part is None or not part.tracks:
                part = _from_summary(attempt, log, part)
            ended = log is not None and log.facts().exit_code is not None
            if part is not None:
                parts.append(part)
                notes += part.notes
        if errors and not parts:
            raise errors[0]
        if not any(path is not None and path.exists() for a in attempts for path in (a.log, a.folder)):
            raise RunNotFoundError(f"the run {info.id} is not there any more", where=self._address)
        if not ended:
            notes.append("the log has no exit record: the run goes on, or was killed")
        return RunHistory(info=info, tracks=_joined(parts), notes=(*notes, *_resumes(parts)))

    @classmethod
    def _scan(cls, address: str, root: Path) -> Iterator[tuple[RunInfo, tuple[Attempt, ...]]]:
        listed = []
        for found in _grouped([(_facts(attempt), attempt) for attempt in _attempts(root)]):
            pairs = sorted(found, key=_age)
            info = _info(address, [facts for facts, _ in pairs])
            info = replace(info, cursor=cursor_of(path for _, attempt in pairs for path in attempt.files))
            listed.append((info, tuple(attempt for _, attempt in pairs)))
        yield from sorted(listed, key=lambda pair: (-(pair[0].started or 0.0), pair[0].id))

    @classmethod
    def _run_at(cls, path: Path) -> str | None:
        if path.suffix == ".wandb" and path.is_file():
            return _facts(Attempt(log=path, folder=None)).run_id
        if _RUN_FOLDER.fullmatch(path.name) and path.is_dir():
            return next((_facts(attempt).run_id for attempt in _attempts(path)), None)
        return None

    @staticmethod
    def _folder_name(place: tuple[Attempt, ...]) -> str:
        return place[-1].shown


def _attempts(root: Path) -> Iterator[Attempt]:
    """Yield what lies below a folder; symbolic links (``latest-run``) are not followed."""
    if root.is_file():
        yield Attempt(log=root, folder=None)
        return
    depth_of_root = len(root.parts)
    for name, children, files in os.walk(root):
        folder = Path(name)
        logs = [folder / file for file in sorted(files) if file.endswith(".wandb") and not (folder / file).is_symlink()]
        is_run = _RUN_FOLDER.fullmatch(folder.name) is not None
        yield from (Attempt(log=log, folder=folder if is_run else None) for log in logs)
        if is_run and not logs and "files" in children:
            yield Attempt(log=None, folder=folder)
        too_deep = len(folder.parts) - depth_of_root >= _DEPTH
        keep = [] if is_run or too_deep else [c for c in sorted(children) if c not in _NOT_INSIDE and c[0] != "."]
        children[:] = [child for child in keep if not (folder / child).is_symlink()]


def _facts(attempt: Attempt) -> Facts:
    """Return what an attempt says about its run: the log first, then the files beside it."""
    facts = Facts()
    if attempt.log is not None:
        with suppress(RunReadError, FileNotFoundError):  # said when the run is read
            facts = Log(attempt.log).facts()
        facts.run_id = facts.run_id or attempt.log.stem.removeprefix("run-")
    match = _RUN_FOLDER.fullmatch(attempt.folder.name) if attempt.folder is not None else None
    if attempt.folder is not None and match is not None:
        facts.run_id = facts.run_id or match["id"]
        facts.config = facts.config or _yaml_config(attempt.folder / "files" / "config.yaml")
        if facts.started is None:
            facts.started = _started(attempt.folder / "files" / "wandb-metadata.json", match["started"])
    return facts


def _grouped(found: list[tuple[Facts, Attempt]]) -> Iterable[list[tuple[Facts, Attempt]]]:
    """Put the attempts of each run together.

    Ids are unique in a project only; a log too broken to name its project belongs to the one project that has a run of
    its id.
    """
    projects: dict[str, set[tuple[str, str]]] = {}
    for facts, _ in found:
        if facts.project:
            projects.setdefault(facts.run_id, set()).add((facts.entity, facts.project))
    runs: dict[tuple[str, str, str], list[tuple[Facts, Attempt]]] = {}
    for facts, attempt in found:
        known = projects.get(facts.run_id, set())
        entity, project = next(iter(known)) if not facts.project and len(known) == 1 else (facts.entity, facts.project)
        runs.setdefault((entity, project, facts.run_id), []).append((facts, attempt))
    return runs.values()


def _age(pair: tuple[Facts, Attempt]) -> tuple[float, str]:
    return pair[0].started or 0.0, pair[1].shown


def _info(address: str, attempts: list[Facts]) -> RunInfo:
    last = attempts[-1]
    config: dict[str, Any] = {}
    for facts in attempts:
        config |= facts.config
    name = next((facts.name for facts in reversed(attempts) if facts.name), last.run_id)
    tags = dict.fromkeys((tag for facts in attempts for tag in facts.tags), "")
    for key in ("project", "group", "job_type", "sweep"):
        value = next((getattr(facts, key) for facts in reversed(attempts) if getattr(facts, key)), "")
        if value:
            tags[f"wandb.{key}"] = value
    state = RunState.UNKNOWN
    if last.exit_code is not None:
        state = RunState.FINISHED if last.exit_code == 0 else RunState.FAILED
    started = next((facts.started for facts in attempts if facts.started is not None), None)
    return RunInfo(
        source=address, id=last.run_id, name=name, state=state, config=config, tags=tags, started=started
    )


def _yaml_config(path: Path) -> dict[str, Any]:
    """Read ``config.yaml``: every key has its value under ``value``; W&B's own entries are left out."""
    try:
        found = _LOADER(path.read_bytes()).get_single_data() if path.stat().st_size < _SMALL else None
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        str(key): item["value"]
        for key, item in found.items()
        if isinstance(item, dict) and "value" in item and not str(key).startswith("_wandb")
    }


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes()) if path.stat().st_size < _SMALL else None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _started(metadata: Path, stamp: str) -> float | None:
    """Return when an attempt began: from its metadata, else from the name of its folder, which is local time."""
    stated = _epoch(_read_json(metadata).get("startedAt"))
    if stated is not None:
        return stated
    try:
        return datetime.strptime(stamp, "%Y%m%d_%H%M%S").astimezone().timestamp()
    except ValueError:
        return None


def _epoch(text: Any) -> float | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _from_summary(attempt: Attempt, log: Log | None, part: LogHistory | None) -> LogHistory | None:
    """Fall back to the last values when an attempt has no history: one point a metric."""
    found: dict[str, Any] = dict(log.summary()) if log is not None else {}
    if not found and attempt.folder is not None:
        raw = _read_json(attempt.folder / "files" / _SUMMARY)
        found = {key: leaf for name, value in raw.items() for key, leaf in flat(value, name)}
    step = found.get("_step")
    tracks = {}
    for name, value in found.items():
        cells = from_objects([value], name)
        if not name.startswith("_") and bool(cells.logged[0]):
            at = step if isinstance(step, int) and abs(step) < 2**62 else 0
            tracks[name] = Track(step=np.array([at], dtype=np.int64), value=cells.value)
    if not tracks:
        return part
    note = f"{attempt.shown} has no history: only the last values in its summary are known"
    return LogHistory(tracks=tracks, first_step=None, rows=0, notes=(*(part.notes if part is not None else ()), note))


def _joined(parts: list[LogHistory]) -> dict[str, Track]:
    if len(parts) == 1:
        return parts[0].tracks
    tracks: dict[str, Track] = {}
    for name in dict.fromkeys(name for part in parts for name in part.tracks):
        pieces = [part.tracks[name] for part in parts if name in part.tracks]
        walls = [piece.wall for piece in pieces if piece.wall is not None]
        first = pieces[0]
        tracks[name] = replace(
            first,
            step=np.concatenate([piece.step for piece in pieces]),
            value=np.concatenate([piece.value for piece in pieces]),
            wall=np.concatenate(walls) if len(walls) == len(pieces) else None,
        )
    return tracks


def _resumes(parts: list[LogHistory]) -> tuple[str, ...]:
    begins = [str(part.first_step) for part in parts[1:] if part.first_step is not None]
    if not begins:
        return ()
    return (f"the run has {len(parts)} attempts; the later ones begin at step {', '.join(begins[:20])}",)

"""An ``mlruns/`` file store read as text, whatever version of MLflow wrote it, without MLflow.

MLflow itself refuses file stores by now, and a cloned store lacks the empty folders MLflow insists on; neither matters
here. Layout: ``EXPERIMENT/RUN/meta.yaml`` and below a run ``params/KEY``, ``tags/KEY`` and ``metrics/KEY``, where a
slash in a key is a folder. A line of a metric file is ``milliseconds value [step [dataset digest]]``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import yaml
from numpy.typing import NDArray

from runtriage.errors import RunNotFoundError, RunReadError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.vocab import RunState
from runtriage.trackers.folder import FolderSource, cursor_of
from runtriage.trackers.mlflow.params import parse_param
from runtriage.trackers.mlflow.wire import seconds

_STATES: dict[str, RunState] = {
    "1": RunState.RUNNING,
    "2": RunState.RUNNING,
    "3": RunState.FINISHED,
    "4": RunState.FAILED,
    "5": RunState.KILLED,
    "RUNNING": RunState.RUNNING,
    "SCHEDULED": RunState.RUNNING,
    "FINISHED": RunState.FINISHED,
    "FAILED": RunState.FAILED,
    "KILLED": RunState.KILLED,
}
_META_LIMIT = 2**20
_SECONDS_BELOW = 1e11
# The safe loader, in C where PyYAML was built with it: ten times faster over thousands of runs.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class MlrunsSource(FolderSource[Path]):
    """The runs of a file store: ``mlflow-local:DIR``, where DIR is ``mlruns``, its parent, or one experiment in it.

    Deleted runs and experiments are left out.
    """

    scheme = "mlflow-local"

    def read(self, info: RunInfo) -> RunHistory:
        """Return every point of every metric of a run, in logged order.

        Raises
        ------
        RunNotFoundError
            The run is gone or deleted.
        RunReadError
            A metric file exists and cannot be opened.
        """
        folder = self._place(info)
        meta = _meta(folder)
        if meta is None or _deleted(meta):
            raise RunNotFoundError(f"the run {info.id} is not there any more", where=self._address)
        notes: list[str] = []
        tracks: dict[str, Track] = {}
        for name, path in _files_below(folder / "metrics"):
            try:
                track = read_metric(path, name, notes)
            except OSError as error:
                raise RunReadError(f"a metric cannot be opened: {error.strerror}", where=str(path)) from error
            if track is not None:
                tracks[name] = track
        return RunHistory(info=_info(self._address, folder, meta, info.id), tracks=tracks, notes=tuple(notes))

    @classmethod
    def _scan(cls, address: str, root: Path) -> Iterator[tuple[RunInfo, Path]]:
        found = []
        for folder in _run_folders(root):
            meta = _meta(folder)
            if meta is not None and not _deleted(meta):
                found.append((_info(address, folder, meta), folder))
        yield from sorted(found, key=lambda pair: (-(pair[0].started or 0.0), pair[0].id))

    @classmethod
    def _run_at(cls, path: Path) -> str | None:
        meta = _meta(path)
        return _info("", path, meta).id if meta is not None and _is_run(meta) else None

    @staticmethod
    def _folder_name(place: Path) -> str:
        return place.name


def read_metric(path: Path, name: str, notes: list[str]) -> Track | None:
    """Read one metric file.

    Parameters
    ----------
    path
        The file.
    name
        Name of the metric, for notes.
    notes
        Sentences about what could not be read are appended.

    Returns
    -------
    Track or None
        None if the file holds no line that can be read.
    """
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):  # MLflow ends every line: this one is being written, or was cut
        notes.append(f"the last line of the metric {name} is cut off and was left out")
        content = content[:whole]
    if not content.strip():
        return None
    columns = _columns(content)
    if columns is None:
        columns, bad = _columns_by_line(content)
        if bad:
            notes.append(f"{bad} lines of the metric {name} cannot be read and were left out")
    stamp, value, step = columns
    if not value.size:
        return None
    wall = np.where(np.abs(stamp) < _SECONDS_BELOW, stamp, stamp / 1000.0)
    return Track(step=step, value=value, wall=wall if bool((wall != 0).all()) else None)


_Columns = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


def _columns(content: bytes) -> _Columns | None:
    """Read a file whose lines all have the fields of the first, or return None."""
    width = len(content[: content.index(b"\n")].split())
    if width not in (2, 3, 5):
        return None
    kinds = [pa.float64(), pa.float64(), pa.int64(), pa.string(), pa.string()][:width]
    names = ["stamp", "value", "step", "dataset", "digest"][:width]
    try:
        table = pacsv.read_csv(
            io.BytesIO(content),
            read_options=pacsv.ReadOptions(use_threads=False, column_names=names),
            parse_options=pacsv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=pacsv.ConvertOptions(
                column_types=dict(zip(names, kinds, strict=True)), null_values=[], include_columns=names[:3]
            ),
        )
    except pa.ArrowException:
        return None
    step = np.array(table.column("step")) if width > 2 else np.zeros(len(table), dtype=np.int64)
    return np.array(table.column("stamp")), np.array(table.column("value")), step


def _columns_by_line(content: bytes) -> tuple[_Columns, int]:
    """Read lines of any shape one by one; returns the columns and the number of lines left out."""
    stamps, values, steps, bad = [], [], [], 0
    for line in content.splitlines():
        fields = line.split()
        if not fields:
            continue
        try:
            stamp, value = float(fields[0]), float(fields[1])
            step = int(fields[2]) if len(fields) > 2 else 0
        except (ValueError, IndexError):
            bad += 1
            continue
        if not -(2**63) <= step < 2**63:
            bad += 1
            continue
        stamps.append(stamp)
        values.append(value)
        steps.append(step)
    return (np.array(stamps, dtype=float), np.array(values, dtype=float), np.array(steps, dtype=np.int64)), bad


def _run_folders(root: Path) -> Iterator[Path]:
    """Yield folders that may be runs: those of ``root``, of ``root/mlruns`` and of the experiments in either."""
    for store in (root, root / "mlruns"):
        for child in _folders(store):
            if (child / "meta.yaml").is_file():
                yield child
                yield from (run for run in _folders(child) if (run / "meta.yaml").is_file())


def _folders(place: Path) -> list[Path]:
    if not place.is_dir():
        return []
    with os.scandir(place) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    return [place / name for name in names]


def _meta(folder: Path) -> dict[str, Any] | None:
    """Return the facts of a run, or None if this is no run."""
    path = folder / "meta.yaml"
    try:
        if path.stat().st_size > _META_LIMIT:
            return None
        meta = _LOADER(path.read_bytes()).get_single_data()
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return {} if (folder / "metrics").is_dir() else None
    return meta if isinstance(meta, dict) and _is_run(meta) else None


def _is_run(meta: dict[str, Any]) -> bool:
    return "run_id" in meta or "run_uuid" in meta or not meta


def _deleted(meta: dict[str, Any]) -> bool:
    return meta.get("lifecycle_stage") == "deleted"


def _info(address: str, folder: Path, meta: dict[str, Any], run_id: str | None = None) -> RunInfo:
    tags = {key: _text(path) for key, path in _files_below(folder / "tags")}
    found = str(meta.get("run_id") or meta.get("run_uuid") or folder.name)
    name = meta.get("run_name") or tags.get("mlflow.runName") or meta.get("name") or found
    started = meta.get("start_time")
    return RunInfo(
        source=address,
        id=run_id or found,
        name=str(name),
        state=_STATES.get(str(meta.get("status")), RunState.UNKNOWN),
        config={key: parse_param(_text(path)) for key, path in _files_below(folder / "params")},
        tags=tags,
        started=seconds(started) if isinstance(started, int) else None,
        cursor=cursor_of([folder / "meta.yaml", *(path for _, path in _files_below(folder / "metrics"))]),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _files_below(top: Path) -> Iterator[tuple[str, Path]]:
    """Yield key and path of every file below a folder; symbolic links to folders are not followed."""
    for folder, children, names in os.walk(top):
        children.sort()
        for name in sorted(names):
            path = Path(folder, name)
            yield path.relative_to(top).as_posix(), path

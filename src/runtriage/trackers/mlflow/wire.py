"""What an MLflow tracking server says, turned into our nouns. Pure: bytes in, nouns out.

Facts of the wire that are settled here and nowhere else:

* NaN travels as the string ``"NaN"``; infinities come back from SQL stores as the largest double.
* Time stamps are meant as milliseconds but are whatever the client sent: below 1e11 they are seconds, 0 is "none".
* Rows come ordered by (time stamp, step, value) in OFFSET pages over a live table, so rows can come twice.
* Parameters are text, whatever they were before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from runtriage.model.history import RunInfo
from runtriage.model.vocab import RunState
from runtriage.trackers.mlflow.params import parse_param
from runtriage.trackers.mlflow.rows import SECONDS_BELOW, Rows, as_logged

_STATES = {
    "RUNNING": RunState.RUNNING,
    "SCHEDULED": RunState.RUNNING,
    "FINISHED": RunState.FINISHED,
    "FAILED": RunState.FAILED,
    "KILLED": RunState.KILLED,
}

class _Pair(msgspec.Struct):
    key: str
    value: str = ""


class _Point(msgspec.Struct, gc=False):
    value: float = 0.0
    timestamp: int = 0
    step: int = 0


class _Latest(msgspec.Struct, gc=False):
    key: str
    value: float = 0.0
    timestamp: int = 0
    step: int = 0


class _HistoryBody(msgspec.Struct):
    metrics: list[_Point] = []
    next_page_token: str | None = None


class _InfoBody(msgspec.Struct):
    run_id: str
    run_name: str = ""
    experiment_id: str = ""
    status: str = ""
    start_time: int | None = None
    end_time: int | None = None
    lifecycle_stage: str = "active"
    artifact_uri: str = ""


class _DataBody(msgspec.Struct):
    metrics: list[_Latest] = []
    params: list[_Pair] = []
    tags: list[_Pair] = []


class _RunBody(msgspec.Struct):
    info: _InfoBody
    data: _DataBody = msgspec.field(default_factory=_DataBody)


class _RunsBody(msgspec.Struct):
    runs: list[_RunBody] = []
    next_page_token: str | None = None


class _OneRunBody(msgspec.Struct):
    run: _RunBody


class _ExperimentInfo(msgspec.Struct):
    experiment_id: str
    name: str = ""
    artifact_location: str = ""
    lifecycle_stage: str = "active"
    tags: list[_Pair] = []


class _ExperimentBody(msgspec.Struct):
    experiment: _ExperimentInfo


class _ExperimentsBody(msgspec.Struct):
    experiments: list[_ExperimentInfo] = []


class _FileInfo(msgspec.Struct):
    path: str
    is_dir: bool = False
    file_size: int = 0


class _FilesBody(msgspec.Struct):
    files: list[_FileInfo] = []
    next_page_token: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """One page of a metric's history and the token of the next, None after the last."""

    rows: Rows
    next_token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as the server describes it.

    Attributes
    ----------
    id, name, experiment_id, artifact_uri
        As given; ``name`` is hostile input.
    state
        Folded state.
    deleted
        True for a run in the bin.
    started
        Seconds since the epoch, or None.
    config, tags
        Parsed parameters and all tags.
    last_steps
        Name of each metric ever logged, in the server's order, to its highest step.
    cursor
        As :attr:`~runtriage.model.history.RunInfo.cursor`.
    """

    id: str
    name: str
    experiment_id: str
    artifact_uri: str
    state: RunState
    deleted: bool
    started: float | None
    config: Mapping[str, Any]
    tags: Mapping[str, str]
    last_steps: Mapping[str, int]
    cursor: str

    def info(self, *, source: str, url: str) -> RunInfo:
        """Return what a listing tells about this run."""
        return RunInfo(
            source=source,
            id=self.id,
            name=self.name,
            state=self.state,
            config=self.config,
            tags=self.tags,
            url=url,
            started=self.started,
            cursor=self.cursor,
        )


@dataclass(frozen=True, slots=True)
class RunsPage:
    """One page of a run search and the token of the next, None after the last."""

    runs: tuple[RunRecord, ...]
    next_token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment as the server describes it; ``name`` and ``tags`` are hostile input."""

    id: str
    name: str
    artifact_location: str
    deleted: bool
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FilesPage:
    """What lies in one folder of artifacts: path below the root to bytes (None: a folder); and the next token."""

    sizes: Mapping[str, int | None]
    next_token: str | None


def decode_history(body: bytes) -> HistoryPage:
    """Read one page of ``metrics/get-history``.

    Raises
    ------
    msgspec.MsgspecError
        If the body is cut short or not of this shape.
    """
    page = _HISTORY.decode(body)
    n = len(page.metrics)
    rows = Rows(
        step=np.fromiter((point.step for point in page.metrics), np.int64, n),
        timestamp=np.fromiter((point.timestamp for point in page.metrics), np.int64, n),
        value=as_logged(np.fromiter((point.value for point in page.metrics), np.float64, n)),
    )
    return HistoryPage(rows, page.next_page_token or None)


def decode_runs(body: bytes) -> RunsPage:
    """Read one page of ``runs/search``; raises ``msgspec.MsgspecError`` on any other shape."""
    page = _RUNS.decode(body)
    return RunsPage(tuple(_record(run) for run in page.runs), page.next_page_token or None)


def decode_run(body: bytes) -> RunRecord:
    """Read ``runs/get``; raises ``msgspec.MsgspecError`` on any other shape."""
    return _record(_ONE_RUN.decode(body).run)


def decode_experiment(body: bytes) -> Experiment:
    """Read ``experiments/get`` and ``get-by-name``; raises ``msgspec.MsgspecError`` on any other shape."""
    return _experiment(_EXPERIMENT.decode(body).experiment)


def decode_experiments(body: bytes) -> tuple[Experiment, ...]:
    """Read ``experiments/search``; raises ``msgspec.MsgspecError`` on any other shape."""
    return tuple(_experiment(found) for found in _EXPERIMENTS.decode(body).experiments)


def decode_files(body: bytes) -> FilesPage:
    """Read ``artifacts/list``; raises ``msgspec.MsgspecError`` on any other shape."""
    page = _FILES.decode(body)
    sizes = {found.path: None if found.is_dir else found.file_size for found in page.files}
    return FilesPage(sizes, page.next_page_token or None)


def seconds(stamp: int | None) -> float | None:
    """Return a time stamp in seconds, or None if there is none."""
    if not stamp:
        return None
    return float(stamp) if stamp < SECONDS_BELOW else stamp / 1000.0


def _record(run: _RunBody) -> RunRecord:
    info, data = run.info, run.data
    return RunRecord(
        id=info.run_id,
        name=info.run_name,
        experiment_id=info.experiment_id,
        artifact_uri=info.artifact_uri,
        state=_STATES.get(info.status, RunState.UNKNOWN),
        deleted=info.lifecycle_stage == "deleted",
        started=seconds(info.start_time),
        config={pair.key: parse_param(pair.value) for pair in data.params},
        tags={pair.key: pair.value for pair in data.tags},
        last_steps={found.key: found.step for found in data.metrics},
        cursor=_cursor(run),
    )


def _cursor(run: _RunBody) -> str:
    """Return a digest of what a listing tells about a run's content.

    Empty for a run that is not over: one resumed below its highest step shows the same latest points as before, so a
    listing cannot tell. That a run was started again, or ended again, does show.
    """
    info, data = run.info, run.data
    if _STATES.get(info.status, RunState.UNKNOWN) in (RunState.RUNNING, RunState.UNKNOWN):
        return ""
    latest = sorted((found.key, found.step, found.timestamp, repr(found.value)) for found in data.metrics)
    params = sorted((pair.key, pair.value) for pair in data.params)
    facts = msgspec.json.encode((info.status, info.start_time, info.end_time, params, latest))
    return f"1:{hashlib.sha256(facts).hexdigest()[:24]}"


def _experiment(found: _ExperimentInfo) -> Experiment:
    return Experiment(
        id=found.experiment_id,
        name=found.name,
        artifact_location=found.artifact_location,
        deleted=found.lifecycle_stage == "deleted",
        tags={pair.key: pair.value for pair in found.tags},
    )


# Lax: some servers send 64-bit integers as strings, all of them send NaN as one.
_HISTORY = msgspec.json.Decoder(_HistoryBody, strict=False)
_RUNS = msgspec.json.Decoder(_RunsBody, strict=False)
_ONE_RUN = msgspec.json.Decoder(_OneRunBody, strict=False)
_EXPERIMENT = msgspec.json.Decoder(_ExperimentBody, strict=False)
_FILES = msgspec.json.Decoder(_FilesBody, strict=False)
_EXPERIMENTS = msgspec.json.Decoder(_ExperimentsBody, strict=False)

"""What an MLflow tracking server says, turned into our nouns. Pure: bytes in, nouns out.

Facts of the wire that are settled here and nowhere else:

* NaN travels as the string ``"NaN"``; infinities come back from SQL stores as the largest double.
* Time stamps are meant as milliseconds but are whatever the client sent: below 1e11 they are seconds, 0 is "none".
* Rows come ordered by (time stamp, step, value) in OFFSET pages over a live table, so rows can come twice.
* Parameters are text, whatever they were before.
"""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from runtriage.model.history import RunInfo, Track
from runtriage.model.vocab import RunState

_DBL_MAX = 1.7976931348623157e308
_SECONDS_BELOW = 100_000_000_000
_LITERAL_LIMIT = 6000
_STATES = {
    "RUNNING": RunState.RUNNING,
    "SCHEDULED": RunState.RUNNING,
    "FINISHED": RunState.FINISHED,
    "FAILED": RunState.FAILED,
    "KILLED": RunState.KILLED,
}
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, Any] = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}


class _Pair(msgspec.Struct):
    key: str
    value: str = ""


class _Point(msgspec.Struct):
    value: float = 0.0
    timestamp: int = 0
    step: int = 0


class _Key(msgspec.Struct):
    key: str


class _HistoryBody(msgspec.Struct):
    metrics: list[_Point] = []
    next_page_token: str | None = None


class _InfoBody(msgspec.Struct):
    run_id: str
    run_name: str = ""
    experiment_id: str = ""
    status: str = ""
    start_time: int | None = None
    lifecycle_stage: str = "active"
    artifact_uri: str = ""


class _DataBody(msgspec.Struct):
    metrics: list[_Key] = []
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


class _TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one metric as the server sent them: three arrays of shape (n,), time stamps as given."""

    step: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.step)

    def part(self, start: int, stop: int | None = None) -> Rows:
        """Return rows ``start`` to ``stop``."""
        return Rows(self.step[start:stop], self.timestamp[start:stop], self.value[start:stop])

    def same_as(self, other: Rows) -> bool:
        """Return True if both hold the same rows in the same order (NaN equals NaN)."""
        return bool(
            np.array_equal(self.step, other.step)
            and np.array_equal(self.timestamp, other.timestamp)
            and np.array_equal(self.value, other.value, equal_nan=True)
        )


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
    metric_keys
        Names of all metrics ever logged, in the server's order.
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
    metric_keys: tuple[str, ...]

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
        value=_finite_or_inf(np.fromiter((point.value for point in page.metrics), np.float64, n)),
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


def track(parts: Sequence[Rows]) -> Track:
    """Join pages into one metric in logged order, each (step, time stamp, value) once.

    Parameters
    ----------
    parts
        Pages in the order they were read; they may overlap.

    Returns
    -------
    Track
        Ordered by time, then by position as read. ``wall`` is None if the client sent no time stamps.
    """
    step = np.concatenate([part.step for part in parts]) if parts else np.empty(0, np.int64)
    stamp = np.concatenate([part.timestamp for part in parts]) if parts else np.empty(0, np.int64)
    value = np.concatenate([part.value for part in parts]) if parts else np.empty(0, np.float64)
    keep = _first_of_each(step, stamp, value)
    step, stamp, value = step[keep], stamp[keep], value[keep]
    wall = np.where(stamp < _SECONDS_BELOW, stamp, stamp / 1000.0).astype(np.float64)
    order = np.argsort(wall, kind="stable")
    for array in (ordered := (step[order], value[order], wall[order])):
        array.flags.writeable = False
    return Track(step=ordered[0], value=ordered[1], wall=ordered[2] if bool(np.any(stamp)) else None)


def offset_token(offset: int) -> str:
    """Return the page token that starts at a row: open-source servers keep nothing else in it."""
    return base64.b64encode(msgspec.json.encode({"offset": offset})).decode("ascii")


def token_offset(token: str) -> int | None:
    """Return the row a page token starts at, or None for a token of another make."""
    try:
        return msgspec.json.decode(base64.b64decode(token, validate=True), type=_TokenBody).offset
    except (binascii.Error, ValueError):
        return None


def seconds(stamp: int | None) -> float | None:
    """Return a time stamp in seconds, or None if there is none."""
    if not stamp:
        return None
    return float(stamp) if stamp < _SECONDS_BELOW else stamp / 1000.0


def parse_param(text: str) -> Any:
    """Return what a parameter was before MLflow made it text, if that is beyond doubt; else the text.

    Clean numbers, booleans, None, and lists or mappings in JSON or Python spelling are read. ``007``, numbers of more
    than 18 digits, ``nan`` and ``inf`` stay text.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) <= _DBL_MAX else text
    if text[:1] in ("{", "[") and len(text) <= _LITERAL_LIMIT:
        return _parse_container(text)
    return text


def _parse_container(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        if "\\" in text:  # Python warns about odd escapes while it parses, and this text is not ours
            return text
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return _plain(found) if _is_plain(found) else text


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, str | bool | int | float)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _finite_or_inf(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Undo the store's stand-in for infinity; make every NaN the same NaN and every zero positive."""
    value[np.abs(value) >= _DBL_MAX] *= np.inf
    value[np.isnan(value)] = np.nan
    return value + 0.0


def _first_of_each(
    step: NDArray[np.int64], stamp: NDArray[np.int64], value: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return the mask, shape (n,), of rows that are the first of their kind."""
    bits = value.view(np.int64)
    order = np.lexsort((bits, step, stamp))  # stable: among equals the first read comes first
    keep = np.ones(len(step), dtype=np.bool_)
    again = np.ones(max(len(step) - 1, 0), dtype=np.bool_)
    for column in (step[order], stamp[order], bits[order]):
        again &= column[1:] == column[:-1]
    keep[order[1:][again]] = False
    return keep


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
        metric_keys=tuple(dict.fromkeys(found.key for found in data.metrics)),
    )


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
_EXPERIMENTS = msgspec.json.Decoder(_ExperimentsBody, strict=False)

"""Runs of one MLflow experiment, read and marked over REST."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from runtriage.errors import RunNotFoundError, RunReadError, SourceError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.marks import Marks, WritePlan
from runtriage.model.vocab import RunState
from runtriage.trackers.mlflow import wire
from runtriage.trackers.mlflow.access import Access, access_to
from runtriage.trackers.mlflow.artifacts import PANEL_PATH, ArtifactStore
from runtriage.trackers.mlflow.client import ApiError, MlflowClient
from runtriage.trackers.mlflow.histories import POINTS_PER_PAGE, MetricReader
from runtriage.trackers.mlflow.marks import RunMarks
from runtriage.trackers.mlflow.project_marks import ProjectMarks
from runtriage.trackers.mlflow.view import VIEW_ID

RUNS_PER_PAGE = 1000
_NAMES_SHOWN = 5


class MlflowSource:
    """The runs of one experiment on a server. Implements ``HistorySource``, ``TailSource`` and ``MarkTarget``.

    Nothing is asked of the server before the first call that needs it. Safe to use from several threads.

    Parameters
    ----------
    access
        Server, experiment and credentials.
    client
        Made from ``access`` if not given.
    runs_per_page, points_per_page
        Sizes of the pages asked for; only tests have a reason to change them.
    """

    def __init__(
        self,
        access: Access,
        *,
        client: MlflowClient | None = None,
        runs_per_page: int = RUNS_PER_PAGE,
        points_per_page: int = POINTS_PER_PAGE,
    ) -> None:
        self._access = access
        self._client = client or MlflowClient(access)
        self._runs_per_page = runs_per_page
        self._metrics = MetricReader(self._client, points_per_page)
        self._lock = threading.Lock()
        self._experiment: wire.Experiment | None = None

    @property
    def address(self) -> str:
        """Canonical address, without credentials."""
        return self._access.address

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs that are not deleted, newest first.

        Raises
        ------
        SourceError
            The server cannot be reached, refuses, or has no such experiment.
        """
        body: dict[str, Any] = {
            "experiment_ids": [self.experiment().id],
            "run_view_type": "ACTIVE_ONLY",
            "max_results": self._runs_per_page,
            "order_by": ["attributes.start_time DESC"],
        }
        seen: set[str] = set()  # runs started meanwhile push old ones onto the next page again
        while True:
            page = self._client.post("runs/search", body, wire.decode_runs)
            for run in page.runs:
                if run.id not in seen and not run.deleted:
                    seen.add(run.id)
                    yield self._info(run)
            if page.next_token is None:
                return
            body["page_token"] = page.next_token

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run by id, or by its name when that is unique.

        Raises
        ------
        RunNotFoundError
            No such run in this experiment, or several of that name.
        SourceError
            As :meth:`list_runs`.
        """
        try:
            run = self._client.get("runs/get", {"run_id": run_id}, wire.decode_run)
        except ApiError as error:
            if not (error.is_missing or error.status == 400):  # 400: a name that cannot be an id
                raise
        else:
            if run.deleted:
                raise RunNotFoundError("the run is deleted", where=self._where(run_id))
            if run.experiment_id != self.experiment().id:
                raise RunNotFoundError("the run belongs to another experiment", where=self._where(run_id))
            return self._info(run)
        return self._find_by_name(run_id)

    def read(self, info: RunInfo) -> RunHistory:
        """Return every point of every metric of a run, in logged order.

        Raises
        ------
        RunNotFoundError
            The run does not exist (any more).
        RunReadError
            The server failed on this run after retries, or its answer is damaged.
        SourceError
            The server cannot be reached or refuses.
        """
        return self._read(info, {})

    def read_tail(self, info: RunInfo, cached: RunHistory) -> RunHistory | None:
        """Return the same as :meth:`read`, pulling of each metric what was logged since; raises as it does."""
        return None if cached.notes else self._read(info, cached.tracks)

    def _read(self, info: RunInfo, known: Mapping[str, Track]) -> RunHistory:
        run = self._get(info.id)
        try:
            found = {key: self._points(run, key, known.get(key)) for key in run.last_steps}
        except ApiError as error:
            self._raise_for_run(error, info.id)
        if not all(len(track.step) for track, _ in found.values()):
            self._get(info.id)  # the server answers a run that is gone with empty lists
        notes = tuple(note for _, note in found.values() if note is not None)
        return RunHistory(info=self._info(run), tracks={key: track for key, (track, _) in found.items()}, notes=notes)

    def read_marks(self, info: RunInfo) -> Marks:
        """Return our marks on a run as they are now; raises as :meth:`read`."""
        try:
            return RunMarks(self._get(info.id), self._client).read()
        except ApiError as error:
            self._raise_for_run(error, info.id)

    def apply(self, info: RunInfo, plan: WritePlan) -> None:
        """Carry out a plan on a run.

        Raises
        ------
        MarkWriteError
            The server refuses, or the plan holds something that is not ours to write.
        RunNotFoundError, RunReadError, SourceError
            As :meth:`read`.
        """
        if plan:
            RunMarks(self._get(info.id), self._client).apply(plan, reread=partial(self._get, info.id))

    def read_project_marks(self) -> Marks:
        """Return our marks on the experiment: the saved view as tag ``runtriage.view``, and the digest as note."""
        return ProjectMarks(self._reread_experiment(), self._client).read()

    def apply_project(self, plan: WritePlan) -> None:
        """Carry out a plan on the experiment; raises as :meth:`apply`."""
        if plan:
            ProjectMarks(self._reread_experiment(), self._client).apply(plan, now_ms=int(time.time() * 1000))

    def panel_url(self, info: RunInfo) -> str | None:
        """Return the image address that makes our panel show inside the run's note, None if files cannot be stored."""
        if self.files_note() is not None:
            return None
        prefix = urlsplit(self._client.base).path
        return f"{prefix}/get-artifact?path={quote(PANEL_PATH, safe='')}&run_uuid={quote(info.id, safe='')}"

    def files_note(self) -> str | None:
        """Return the sentence that says why panels cannot be stored in this experiment, None if they can."""
        return ArtifactStore.reason_against(self.experiment().artifact_location, self._client.base)

    def view_url(self) -> str:
        """Return where a person sees our saved view."""
        return f"{self._experiment_url()}/runs?viewStateShareKey={VIEW_ID}&compareRunsMode=CHART"

    def experiment(self) -> wire.Experiment:
        """Return the experiment; asked for once.

        Raises
        ------
        SourceError
            There is none of that id or name, or it is deleted.
        """
        with self._lock:
            if self._experiment is None:
                self._experiment = self._find_experiment()
            return self._experiment

    def close(self) -> None:
        """Release connections. May be called twice."""
        self._client.close()

    def _points(self, run: wire.RunRecord, key: str, known: Track | None) -> tuple[Track, str | None]:
        found = self._metrics.continued(run.id, key, known) if known is not None else None
        last = None if run.state in (RunState.RUNNING, RunState.UNKNOWN) else run.last_steps[key]
        return (found, None) if found is not None else self._metrics.read(run.id, key, last)

    def _get(self, run_id: str) -> wire.RunRecord:
        try:
            run = self._client.get("runs/get", {"run_id": run_id}, wire.decode_run)
        except ApiError as error:
            self._raise_for_run(error, run_id)
        if run.deleted:
            raise RunNotFoundError("the run was deleted", where=self._where(run_id))
        return run

    def _raise_for_run(self, error: ApiError, run_id: str) -> NoReturn:
        kind = RunNotFoundError if error.is_missing else RunReadError
        what = "the run does not exist" if error.is_missing else error.message
        raise kind(what, where=self._where(run_id), hint=error.hint) from error

    def _find_by_name(self, name: str) -> RunInfo:
        found = [run for run in self._runs_named(name) if run.name == name]
        if len(found) == 1:
            return found[0]
        if not found:
            raise RunNotFoundError("there is no run of this id or name", where=self._where(name))
        ids = ", ".join(run.id for run in found[:_NAMES_SHOWN])
        raise RunNotFoundError(
            f"{len(found)} runs have this name", where=self._where(name), hint=f"use an id, such as {ids}"
        )

    def _runs_named(self, name: str) -> Iterator[RunInfo]:
        """Ask the server if the name can be written in its filter language, else look through all runs."""
        mark = next((mark for mark in "\"'" if mark not in name and "\\" not in name), None)
        if mark is None or not name.isprintable():
            yield from self.list_runs()
            return
        body = {
            "experiment_ids": [self.experiment().id],
            "run_view_type": "ACTIVE_ONLY",
            "max_results": self._runs_per_page,
            "filter": f"attributes.run_name = {mark}{name}{mark}",
        }
        for run in self._client.post("runs/search", body, wire.decode_runs).runs:
            yield self._info(run)

    def _find_experiment(self) -> wire.Experiment:
        asked = self._access.experiment
        found = self._experiment_by("experiments/get", experiment_id=asked) if asked.isdecimal() else None
        found = found or self._experiment_by("experiments/get-by-name", experiment_name=asked)
        if found is None:
            raise SourceError("there is no such experiment", where=self.address, hint=self._names())
        if found.deleted:
            raise SourceError("the experiment is deleted", where=self.address)
        return found

    def _experiment_by(self, path: str, **params: str) -> wire.Experiment | None:
        try:
            return self._client.get(path, params, wire.decode_experiment)
        except ApiError as error:
            if error.is_missing and error.code:
                return None
            raise

    def _names(self) -> str:
        """Return a hint with the experiments that do exist."""
        body = {"max_results": _NAMES_SHOWN, "view_type": "ACTIVE_ONLY"}
        try:
            found = self._client.post("experiments/search", body, wire.decode_experiments)
        except SourceError:
            return ""
        names = [repr(experiment.name) for experiment in found]
        return f"the server has {', '.join(names)}" if names else "the server has none"

    def _reread_experiment(self) -> wire.Experiment:
        return self._client.get("experiments/get", {"experiment_id": self.experiment().id}, wire.decode_experiment)

    def _info(self, run: wire.RunRecord) -> RunInfo:
        return run.info(source=self.address, url=self._run_url(run))

    def _run_url(self, run: wire.RunRecord) -> str:
        return f"{self._client.base}/#/experiments/{quote(run.experiment_id, safe='')}/runs/{quote(run.id, safe='')}"

    def _experiment_url(self) -> str:
        return f"{self._client.base}/#/experiments/{quote(self.experiment().id, safe='')}"

    def _where(self, run: str) -> str:
        return f"{self.address}/{run}"


def open_source(address: str) -> MlflowSource:
    """Return the source of an address; credentials come from the address or from MLflow's environment variables.

    Raises
    ------
    UsageError
        The address, or what it refers to in the environment, names no tracking server or no experiment.
    """
    return MlflowSource(access_to(address, os.environ))

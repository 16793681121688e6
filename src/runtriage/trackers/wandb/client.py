"""The W&B client behind a narrow door: the only module that imports ``wandb``. Needs wandb 0.28 or later.

Everything here was proved with the real client 0.31 against a stand-in server only, never against W&B's own.

The client's own defaults wait for many minutes (twenty retries of each request, scans without any time limit); requests
made here end within :class:`Limits`, and keep to the pace that the server takes. Its cache of histories is never used:
it can be stale and it can hold error pages.
Runs are never written with ``run.update()``, which sends back everything that was read.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runtriage.errors import AccessRefusedError, MissingExtraError, RunNotFoundError, RunReadError, SourceError
from runtriage.trackers.wandb.bounded import Limits, bounded
from runtriage.trackers.wandb.failures import TRIES, again, translated

FIELDS = "id name displayName tags state createdAt notes config summaryMetrics historyLineCount historyKeys projectId"
_RUN = f"""query RuntriageRun($entity: String!, $project: String!, $name: String!) {{
    project(name: $project, entityName: $entity) {{ run(name: $name) {{ {FIELDS} }} }}
}}"""


class WandbClient:
    """One connection to a W&B server, for one project. Safe to use from several threads; made on first need."""

    def __init__(self, entity: str, project: str, *, limits: Limits | None = None) -> None:
        self.entity, self.project = entity, project
        self.where = f"wandb://{entity}/{project}"
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._service: Any = None
        self._api: Any = None
        self._slots = threading.BoundedSemaphore(self._limits.threads)

    @property
    def slots(self) -> threading.BoundedSemaphore:
        """Held while a history is read: W&B's service process has ten requests in flight at most."""
        return self._slots

    def close(self) -> None:
        """Forget the connection; the service process of the client ends with this process."""
        self._service = self._api = None

    def list_runs(
        self, *, filters: Mapping[str, Any] | None = None, per_page: int = 100
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the fields of every run, newest first; config and summary come with the page.

        Raises
        ------
        SourceError
            The server cannot be reached, refuses, or has no such project.
        """
        service = self.service()
        with translated(self.where, whole=True):
            from wandb.apis.public import Runs  # noqa: PLC0415

            fixed: dict[str, Any] = {"order": "-created_at", "per_page": per_page, "lazy": False}
            runs = iter(Runs(service, self.entity, self.project, dict(filters or {}), **fixed))
        while True:
            with translated(self.where, whole=True):
                try:
                    run = again(lambda: _next_run(runs))
                except ValueError as error:
                    if "Could not find project" in str(error):
                        what = "there is no such project, or it is not yours to see"
                        raise SourceError(what, where=self.where) from None
                    raise
            if run is None:
                return
            yield facts_of(run)

    def run(self, run_id: str) -> Any:
        """Return the client's own run object, freshly read.

        Raises
        ------
        RunNotFoundError, RunReadError, SourceError
            As :func:`translated`.
        """
        service = self.service()
        with translated(f"{self.where}/{run_id}"):
            from wandb.apis.public import Run  # noqa: PLC0415

            return again(lambda: Run(service, self.entity, self.project, run_id, lazy=False))

    def fields(self, run_id: str) -> dict[str, Any]:
        """Return the fields of a run as the server sends them: config and summary as text. Raises as :meth:`run`."""
        variables = {"entity": self.entity, "project": self.project, "name": run_id}
        found = self.graphql(_RUN, variables, where=f"{self.where}/{run_id}").get("project") or {}
        if not found.get("run"):
            raise RunNotFoundError("there is no such run", where=f"{self.where}/{run_id}")
        return dict(found["run"])

    def graphql(self, document: str, variables: Mapping[str, Any], *, where: str) -> dict[str, Any]:
        """Send one document; a query whose answer was cut off is sent again. Raises as :func:`translated`."""
        service = self.service()
        tries = TRIES if document.startswith("query") else 1
        with translated(where):
            return dict(again(lambda: service.execute_graphql(document, dict(variables)), tries))

    def opened(self, fields: Mapping[str, Any]) -> Any:
        """Return the client's own run object for fields that were read; nothing is asked."""
        from wandb.apis.public import Run  # noqa: PLC0415

        return Run(self.service(), self.entity, self.project, str(fields["name"]), attrs=dict(fields), lazy=False)

    def page_of(self, run_id: str) -> str:
        """Return the address of the page that shows a run."""
        path = "/".join(quote(part, safe="") for part in (self.entity, self.project, "runs", run_id))
        return f"{self.service().app_url}{path}"

    def upsert(self, storage_id: str, fields: Mapping[str, Any], *, where: str) -> None:
        """Change the named fields of a run (``tags``, ``summaryMetrics``) and nothing else."""
        kinds = {"tags": "[String!]", "summaryMetrics": "JSONString"}
        declared = ", ".join(f"${name}: {kinds[name]}" for name in fields)
        given = ", ".join(f"{name}: ${name}" for name in fields)
        document = (
            f"mutation UpsertBucket($id: String, {declared}) {{ "
            f"upsertBucket(input: {{id: $id, {given}}}) {{ bucket {{ id }} }} }}"
        )
        self.graphql(document, {"id": storage_id, **fields}, where=where)

    def exports(self, run: Any, folder: Path) -> list[Path] | None:
        """Download the complete history of a run as Parquet files; None if there is no complete export.

        What went wrong with a file (an address that has expired, a server error) also means None: the rows can be
        scanned.
        """
        from wandb.apis.public.runhistory import IncompleteRunHistoryError  # noqa: PLC0415
        from wandb.sdk.lib.service.service_connection import WandbApiFailedError  # noqa: PLC0415

        try:
            result = run.download_history_exports(folder, require_complete_history=True)
        except (IncompleteRunHistoryError, WandbApiFailedError, TimeoutError):
            return None
        if result.errors or not result.paths:
            return None
        return sorted(result.paths, key=_partition)

    def scan(self, run: Any, *, stop: int, start: int = 0, page: int = 10_000) -> Iterator[dict[str, Any]]:
        """Yield the rows from step ``start`` up to ``stop``; raises as :meth:`run`.

        ``scan_history`` itself would stop at the server's last step, which is wrong for a run started again under its
        id; the scan it returns is made here with our own end. A page is a window of *steps*.
        """
        with translated(f"{self.where}/{run.id}"):
            from wandb.apis.public import HistoryScan  # noqa: PLC0415

            service = self.service()
            fixed: dict[str, Any] = {"min_step": start, "max_step": stop, "page_size": page, "use_cache": False}
            rows = again(lambda: HistoryScan(run, service_api=service, **fixed))
            while (row := again(lambda: next(rows, None))) is not None:
                yield row

    def files(self, run: Any) -> dict[str, Any]:
        """Return the files of ours on a run, by path. Raises as :meth:`run`."""
        with translated(f"{self.where}/{run.id}"):
            return {file.name: file for file in run.files(pattern="runtriage/%")}

    def content(self, file: Any, where: str) -> bytes:
        """Return the content of a file.

        Raises
        ------
        RunReadError
            It cannot be downloaded; a refusal is that of a signed address.
        """
        try:
            with (
                translated(where),
                tempfile.TemporaryDirectory(prefix="runtriage-") as folder,
                file.download(root=folder, replace=True) as opened,
            ):
                return Path(opened.name).read_bytes()
        except AccessRefusedError as error:
            raise RunReadError("a file of the run cannot be downloaded", where=where) from error

    def put_file(self, run: Any, path: str, content: bytes) -> None:
        """Put a file on a run without touching its state. Raises as :meth:`run`."""
        with translated(f"{self.where}/{run.id}"), tempfile.TemporaryDirectory(prefix="runtriage-") as folder:
            local = Path(folder, *path.split("/"))
            local.parent.mkdir(parents=True, exist_ok=True)
            local.write_bytes(content)
            run.upload_file(str(local), root=folder)

    def delete_files(self, files: Iterable[Any], where: str) -> None:
        """Delete files of a run. Raises as :meth:`run`."""
        with translated(where):
            for file in files:
                file.delete()

    def service(self) -> Any:
        """Return the client's handle on its service process, logged in and bounded in time.

        Raises
        ------
        MissingExtraError
            wandb is not installed.
        SourceError
            No credentials, refused, or not reachable.
        """
        with self._lock:
            if self._service is None:
                self._service = self._connect()
            return self._service

    def api(self) -> Any:
        """Return the client's own ``Api``, bounded in time as :meth:`service` is; raises as that."""
        self.service()
        return self._api

    def _connect(self) -> Any:
        try:
            import wandb  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtraError("wandb is not installed", hint="pip install 'runtriage[wandb]'") from error
        with translated(self.where, whole=True):
            api = wandb.Api(timeout=int(self._limits.call))
            found = getattr(api, "_service_api", None)
            if found is None:
                raise SourceError(f"wandb {wandb.__version__} is too old", where=self.where, hint="it takes 0.28")
            service = bounded(found, self._limits)
            self._api, api._service_api = api, service  # noqa: SLF001  it has no other way to end its calls
            return service


def workspace_modules() -> tuple[Any, Any]:
    """Return the modules of wandb-workspaces for workspaces and for reports.

    Raises
    ------
    MissingExtraError
        It is not installed.
    """
    try:
        import wandb_workspaces.reports.v2 as reports  # noqa: PLC0415
        from wandb_workspaces import workspaces  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("wandb-workspaces is not installed", hint="pip install 'runtriage[wandb]'") from error
    return workspaces, reports


def automation_types() -> Any:
    """Return the client's module of automations; it is installed where there is a connection."""
    from wandb import automations  # noqa: PLC0415

    return automations


def _next_run(runs: Any) -> Any:
    """Return the next run or None.

    If its page cannot be read, the paginator does not step over that page's first run.
    """
    try:
        return next(runs, None)
    except Exception:
        runs.index -= 1
        raise


def facts_of(run: Any) -> dict[str, Any]:
    """Return the fields of a run object by W&B's names, with config and summary decoded."""
    return {
        "id": run.storage_id,
        "name": run.id,
        "displayName": run.name,
        "tags": list(run.tags or ()),
        "state": run.state,
        "createdAt": run.created_at,
        "historyLineCount": getattr(run, "history_line_count", None),
        "historyKeys": getattr(run, "history_keys", None),
        "config": run.config,
        "summaryMetrics": run.summary_metrics,
        "url": run.url,
    }


def _partition(path: Path) -> tuple[int, str]:
    number = path.name.removesuffix(".runhistory.parquet").rpartition("_")[2]
    return (int(number) if number.isdigit() else 0, path.name)

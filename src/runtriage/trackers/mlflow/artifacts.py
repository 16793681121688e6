"""Our files among the artifacts of a run, stored through the server's artifact proxy.

With any other artifact root (a bucket, a shared disk) it is the client that writes, with credentials of its own; that
is not done here: tags and note are written all the same, and the reason is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import normpath
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from runtriage.errors import MarkWriteError
from runtriage.model.marks import content_digest
from runtriage.trackers.mlflow.client import ApiError, MlflowClient
from runtriage.trackers.mlflow.wire import RunRecord, decode_files

FOLDER = "runtriage"
PANEL_PATH = f"{FOLDER}/panel.svg"
OWN_PATHS = frozenset({PANEL_PATH, f"{FOLDER}/panel.html"})
"""Known to be ours even if the record of what was stored is lost; anything else in the folder may be someone else's."""

_TYPES = {"svg": "image/svg+xml", "html": "text/html", "json": "application/json", "md": "text/markdown"}


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    digest: str
    size: int


class ArtifactStore:
    """Files of ours on one run.

    Parameters
    ----------
    run
        The run.
    client
        The server.
    """

    def __init__(self, run: RunRecord, client: MlflowClient) -> None:
        self._run = run
        self._client = client

    @staticmethod
    def reason_against(location: str, base: str) -> str | None:
        """Return why files cannot be stored below an artifact root, None if they can.

        Parameters
        ----------
        location
            ``artifact_uri`` of a run or ``artifact_location`` of an experiment.
        base
            Base address of the tracking server.
        """
        url = urlsplit(location)
        if url.scheme == "mlflow-artifacts" and url.netloc in ("", urlsplit(base).netloc):
            return None
        kind = url.scheme or "file"
        return f"the tracking server does not store artifacts itself (the artifact root is {kind}:)"

    @property
    def reason(self) -> str | None:
        """Why files cannot be stored on this run, None if they can."""
        return self.reason_against(self._run.artifact_uri, self._client.base)

    def found(self, record: Mapping[str, _Kept]) -> dict[str, str]:
        """Return our files, path to content digest; the digest is empty if the content is not known.

        A file that somebody removed counts until our record of it is gone too: clearing leaves no trace.

        Raises
        ------
        SourceError
            As :meth:`MlflowClient.get`.
        """
        if self.reason is not None:
            return {}
        out = dict.fromkeys(record, "")
        for path, size in self._sizes().items():
            kept = record.get(path)
            if kept is not None or path in OWN_PATHS:
                out[path] = kept.digest if kept is not None and kept.size == size else ""
        return out

    def put(self, path: str, content: bytes) -> None:
        """Store a file; raises as :meth:`MlflowClient.get`."""
        kind = _TYPES.get(path.rpartition(".")[2], "application/octet-stream")
        self._client.put_file(self._place(path), content, kind)

    def delete(self, path: str) -> None:
        """Delete a file, or do nothing if it is gone; raises as :meth:`MlflowClient.get`."""
        try:
            self._client.delete_file(self._place(path))
        except ApiError as error:
            if not error.is_missing:
                raise

    def tidy(self) -> None:
        """Delete our folder if nothing is left in it; raises as :meth:`MlflowClient.get`."""
        if not self._listing():
            self.delete(FOLDER)

    def _sizes(self) -> dict[str, int]:
        return {path: size for path, size in self._listing().items() if size is not None}

    def _listing(self) -> dict[str, int | None]:
        params: dict[str, Any] = {"run_id": self._run.id, "path": FOLDER}
        out: dict[str, int | None] = {}
        while True:
            page = self._client.get("artifacts/list", params, decode_files)
            out.update(page.sizes)
            if page.next_token is None:
                return out
            params["page_token"] = page.next_token

    def _place(self, path: str) -> str:
        return quote(f"{urlsplit(self._run.artifact_uri).path.strip('/')}/{path}")


def check_path(path: str) -> None:
    """Refuse a path that does not lie in our folder.

    Raises
    ------
    MarkWriteError
        It does not.
    """
    if not path.startswith(f"{FOLDER}/") or normpath(path) != path or "\\" in path or not path.isprintable():
        raise MarkWriteError(f"the plan touches a file that is not ours: {path!r}")


def read_record(text: str | None) -> dict[str, _Kept]:
    """Return what is recorded about the files stored; nothing if the record is missing or damaged."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, _Kept])
    except (msgspec.MsgspecError, UnicodeError):
        return {}


def write_record(record: Mapping[str, _Kept]) -> str | None:
    """Return the record as text, None if there is nothing to record."""
    return msgspec.json.encode(dict(sorted(record.items()))).decode() if record else None


def kept(content: bytes) -> _Kept:
    """Return what is recorded about a file of this content."""
    return _Kept(digest=content_digest(content), size=len(content))

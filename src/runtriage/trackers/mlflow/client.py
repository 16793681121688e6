"""HTTP to an MLflow tracking server: plain ``requests``, bounded in time, with typed errors.

Not MLflow's own client: that one hides steps and page tokens, costs five times the CPU per point, waits up to minutes
on a dead server, and may migrate a database it opens. Every call here can be repeated without harm (searches, reads,
last-write-wins tags, whole files), so all methods are retried alike.

Messages hold the server's base address, the path asked for and the server's own error code. They never hold
credentials, and never the body of a page that is not MLflow's JSON.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ReadTimeoutError
from urllib3.util.retry import Retry

from runtriage.errors import AccessRefusedError, SourceError, SourceUnreachableError
from runtriage.trackers.mlflow.access import Access
from runtriage.trackers.pace import Pace, asked_wait, pace_of

TIMEOUT = (5.0, 30.0)
"""Seconds to connect, and between two bytes of an answer."""

_TRIES = 3
_STATUSES = (408, 500, 502, 503, 504)
"""Answers that are asked for again. 429 is not among them: how often that is, and when, is the pace's business."""

_CODE_LIMIT = 80
_MESSAGE_LIMIT = 200

T = TypeVar("T")


class ApiError(SourceError):
    """The server answered, and the answer is an error (or no MLflow answer at all).

    Parameters
    ----------
    status
        HTTP status.
    code
        MLflow's ``error_code``, empty if the body holds none.
    """

    def __init__(self, message: str, *, status: int, code: str = "", where: str = "", hint: str = "") -> None:
        super().__init__(message, where=where, hint=hint)
        self.status = status
        self.code = code
        self.at_server = status in _STATUSES

    @property
    def is_missing(self) -> bool:
        """True if the thing asked for does not exist."""
        return self.code == "RESOURCE_DOES_NOT_EXIST" or (self.status == 404 and not self.code)


class _ErrorBody(msgspec.Struct):
    error_code: str = ""
    message: str = ""


class _Bearer(requests.auth.AuthBase):
    """Bearer token as an auth object: a plain header would lose to an entry in ``~/.netrc``."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class MlflowClient:
    """Requests to one server. Safe to share between threads: each gets a session of its own.

    Parameters
    ----------
    access
        Server and credentials.
    timeout
        Seconds to connect, and between two bytes of an answer.
    retries, backoff
        Repetitions after a failure, and half the seconds before the second of them, doubled each time. After refusals
        (429) as many as the pace has patience for.
    pace
        Decides when a request may begin; by default that of all clients of this server in this process.
    """

    def __init__(
        self,
        access: Access,
        *,
        timeout: tuple[float, float] = TIMEOUT,
        retries: int = _TRIES,
        backoff: float = 1.0,
        pace: Pace | None = None,
    ) -> None:
        self.base = access.base
        self._access = access
        self._timeout = timeout
        self._tries = retries
        self._backoff = backoff
        self._pace = pace
        self._retry = Retry(retries, backoff_factor=backoff, allowed_methods=None, respect_retry_after_header=False)
        self._local = threading.local()
        self._lock = threading.Lock()
        self._sessions: list[requests.Session] = []

    def get(self, path: str, params: Mapping[str, Any], decode: Callable[[bytes], T]) -> T:
        """GET below ``/api/2.0/mlflow/`` and decode the answer.

        Raises
        ------
        SourceUnreachableError
            No answer within the time and number of tries.
        AccessRefusedError
            401 or 403.
        ApiError
            Any other error, or an answer that is not the JSON expected.
        """
        return self._decoded("GET", f"/api/2.0/mlflow/{path}", decode, params=params)

    def post(self, path: str, body: Mapping[str, Any], decode: Callable[[bytes], T]) -> T:
        """POST JSON below ``/api/2.0/mlflow/`` and decode the answer; raises as :meth:`get`."""
        return self._decoded("POST", f"/api/2.0/mlflow/{path}", decode, json=body)

    def send(self, path: str, body: Mapping[str, Any]) -> None:
        """POST JSON below ``/api/2.0/mlflow/`` where only success matters; raises as :meth:`get`."""
        self._request("POST", f"/api/2.0/mlflow/{path}", json=body)

    def put_file(self, path: str, content: bytes, content_type: str) -> None:
        """Store a file through the server's artifact proxy; ``path`` is already quoted. Raises as :meth:`get`."""
        self._request(
            "PUT",
            f"/api/2.0/mlflow-artifacts/artifacts/{path}",
            data=content,
            headers={"Content-Type": content_type},
        )

    def delete_file(self, path: str) -> None:
        """Delete a file or folder through the server's artifact proxy; raises as :meth:`get`."""
        self._request("DELETE", f"/api/2.0/mlflow-artifacts/artifacts/{path}")

    def close(self) -> None:
        """Close the sessions of all threads. May be called twice."""
        with self._lock:
            sessions, self._sessions = self._sessions, []
        for session in sessions:
            session.close()
        self._local = threading.local()

    def _decoded(self, method: str, path: str, decode: Callable[[bytes], T], **how: Any) -> T:
        for attempt in range(self._tries + 1):
            response = self._request(method, path, **how)
            try:
                return decode(response.content)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                # A body cut short by a proxy comes right when asked for again; a login page does not.
                if "json" not in response.headers.get("Content-Type", "json") or attempt == self._tries:
                    raise self._not_ours(response, path) from error
        raise AssertionError("the loop above returns or raises")

    def _request(self, method: str, path: str, **how: Any) -> requests.Response:
        failures, waited = 0, 0.0
        while True:
            pace = self._pace or pace_of(self.base)  # a sweep may have joined a cluster meanwhile
            waited += pace.acquire(waited)
            try:
                response = self._timed(pace, method, path, **how)
            except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError):
                # The body broke off: urllib3 retries only what goes wrong before the body.
                if failures == self._tries:
                    raise self._cut_short(path) from None
            else:
                if response.status_code < 300:
                    return response
                if _is_refusal(response):
                    continue  # the pace waits as long as was asked for, and loses patience in time
                if response.status_code not in _STATUSES or failures == self._tries:
                    raise self._refusal(response, path)
            time.sleep(self._backoff * 2.0**failures if failures else 0.0)
            failures += 1

    def _timed(self, pace: Pace, method: str, path: str, **how: Any) -> requests.Response:
        """Send a request, and tell the pace how it went."""
        began, status, wait, size = time.monotonic(), 0, None, 0
        try:
            response = self._exchange(method, path, **how)
            status, wait, size = response.status_code, asked_wait(response.headers), len(response.content)
        finally:
            kind = path.partition("/artifacts/")[0]
            pace.feedback(status, time.monotonic() - began, wait, kind=kind, size=size)
        return response

    def _exchange(self, method: str, path: str, **how: Any) -> requests.Response:
        # ``from None`` throughout: the causes' texts hold full URLs and, behind a proxy, the proxy's credentials.
        try:
            return self._session().request(
                method, self.base + path, timeout=self._timeout, verify=self._access.verify,
                allow_redirects=False, **how,
            )  # fmt: skip
        except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError):
            raise
        except requests.exceptions.SSLError:
            raise SourceUnreachableError(
                "the certificate of the tracking server is not accepted",
                where=self.base,
                hint="set MLFLOW_TRACKING_SERVER_CERT_PATH, or MLFLOW_TRACKING_INSECURE_TLS=true",
            ) from None
        except requests.exceptions.RequestException as error:
            if error.args and isinstance(error.args[0], ReadTimeoutError):  # silence in mid-body: retried as a cut one
                raise requests.exceptions.ChunkedEncodingError from None
            raise self._unreachable(error) from None
        except OSError as error:  # a certificate file that is not there
            raise SourceUnreachableError(f"the tracking server cannot be asked: {error}", where=self.base) from None

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.headers["User-Agent"] = "runtriage"
            session.cert = self._access.client_cert
            if self._access.basic:
                user, password = self._access.basic
                session.auth = requests.auth.HTTPBasicAuth(user.encode(), password.encode())
            elif self._access.token:
                session.auth = _Bearer(self._access.token)
            for scheme in ("http://", "https://"):
                session.mount(scheme, HTTPAdapter(max_retries=self._retry))
            self._local.session = session
            with self._lock:
                self._sessions.append(session)
        return session

    def _unreachable(self, error: requests.exceptions.RequestException) -> SourceUnreachableError:
        slow = isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error)
        what = "did not answer in time" if slow else "cannot be reached"
        return SourceUnreachableError(
            f"the tracking server {what} (tried {self._tries + 1} times)",
            where=self.base,
            hint="is the address right, and is the server up?",
        )

    def _refusal(self, response: requests.Response, path: str) -> SourceError:
        status, where = response.status_code, f"{self.base}{path}"
        if status < 400:
            return ApiError(
                "the tracking server answers with a redirect",
                status=status,
                where=where,
                hint="use the address it redirects to; is it https?",
            )
        if status == 401:
            return AccessRefusedError(
                "the tracking server wants other credentials (401)",
                where=where,
                hint="set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
            )
        if status == 403:
            return AccessRefusedError("these credentials may not do this (403)", where=where)
        try:
            body = msgspec.json.decode(response.content, type=_ErrorBody)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            body = _ErrorBody()
        code = body.error_code[:_CODE_LIMIT]
        said = f": {_one_line(body.message)}" if body.message else ""
        shown = f"{status} {code}".strip()
        return ApiError(f"the tracking server answered {shown}{said}", status=status, code=code, where=where)

    def _not_ours(self, response: requests.Response, path: str) -> ApiError:
        if "json" in response.headers.get("Content-Type", "json"):
            return self._cut_short(path)
        return ApiError(
            "this is not an answer of MLflow",
            status=response.status_code,
            where=f"{self.base}{path}",
            hint="is there a login page or another service at this address?",
        )

    def _cut_short(self, path: str) -> ApiError:
        return ApiError(
            "the answer of the tracking server is cut short or damaged", status=200, where=f"{self.base}{path}"
        )


def _is_refusal(response: requests.Response) -> bool:
    return response.status_code == 429 or (response.status_code == 503 and asked_wait(response.headers) is not None)


def _one_line(text: str) -> str:
    flat = "".join(c if c.isprintable() else " " for c in text)
    return flat if len(flat) <= _MESSAGE_LIMIT else flat[:_MESSAGE_LIMIT] + "…"


"""A server that goes wrong on purpose: it answers from a script, and then with one answer for ever."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    Attributes
    ----------
    status, body, headers
        As sent; a ``body`` that is not bytes is sent as JSON.
    delay
        Seconds before anything is sent.
    cut
        Bytes of the body that are sent before the connection closes, although all are announced; None for all.
    reset
        Close the connection hard instead of answering.
    """

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    reset: bool = False

    def content(self) -> bytes:
        """Return the body as bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(slots=True)
class Seen:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float


class FaultServer:
    """Scripted answers by path.

    Attributes
    ----------
    seen
        Requests in order.
    """

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._scripts: dict[str, list[Answer]] = {}
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self.host = f"127.0.0.1:{self._http.server_address[1]}"

    def script(self, path: str, *answers: Answer) -> None:
        """Answer requests whose path ends in ``path`` one after the other, the last one again and again."""
        self._scripts[path] = list(answers)

    def count(self, path: str = "") -> int:
        """Return how many requests asked for a path that ends so."""
        return sum(urlsplit(seen.path).path.endswith(path) for seen in self.seen)

    def answer(self, seen: Seen) -> Answer:
        """Return what to answer to a request."""
        path = urlsplit(seen.path).path
        with self._lock:
            self.seen.append(seen)
            for end, answers in self._scripts.items():
                if path.endswith(end):
                    return answers.pop(0) if len(answers) > 1 else answers[0]
        return Answer(status=404, body={"error_code": "ENDPOINT_NOT_FOUND"})

    @contextmanager
    def running(self) -> Iterator[FaultServer]:
        """Answer until the block ends."""
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    owner: FaultServer

    def handle_error(self, request: Any, client_address: Any) -> None:  # a client that hangs up is no news
        del request, client_address


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server: Any = self.server
        answer = server.owner.answer(Seen(self.command, self.path, dict(self.headers), body, time.monotonic()))
        time.sleep(answer.delay)
        if answer.reset:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        content = answer.content()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: answer.cut])
        if answer.cut is not None:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  http.server's own names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  http.server's own signature
        del format, args

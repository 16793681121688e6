"""A gate before a server: it counts who comes, and sends some away with 429."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Gate:
    """What a gate saw.

    Attributes
    ----------
    target
        ``HOST:PORT`` of the server behind it.
    refuses
        Seconds to ask for, given how many requests began before this one and how many were refused; None lets it pass.
    host
        ``HOST:PORT`` of the gate.
    began, refused
        When requests began, and when some were sent away: seconds of the monotonic clock.
    asked
        Method, path with query, and body of each request.
    most
        Requests in the gate at the same time, at most.
    """

    target: str
    refuses: Callable[[list[float], list[float]], float | None]
    host: str = ""
    began: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    most: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, request: tuple[str, str, bytes]) -> float | None:
        """Let a request in, or return the seconds to ask for."""
        with self._lock:
            asked = self.refuses(self.began, self.refused)
            self.began.append(time.monotonic())
            self.asked.append(request)
            self._now += 1
            self.most = max(self.most, self._now)
            return asked

    def leave(self, *, refused: bool) -> None:
        """Let it out."""
        with self._lock:
            self._now -= 1
            if refused:
                self.refused.append(time.monotonic())


@contextmanager
def gated(gate: Gate) -> Iterator[Gate]:
    """Stand before the server until the block ends."""
    server = _Http(("127.0.0.1", 0), _Handler)
    server.gate = gate
    gate.host = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield gate
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    gate: Gate

    def handle_error(self, request: Any, client_address: Any) -> None:  # a client that hangs up is no news
        del request, client_address


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        server: Any = self.server
        gate: Gate = server.gate
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = gate.enter((self.command, self.path, body))
        try:
            if asked is None:
                self._forward(gate.target, body)
            else:
                self._answer(429, b"{}", {"Retry-After": str(asked), "Content-Type": "application/json"})
        finally:
            gate.leave(refused=asked is not None)

    def _forward(self, target: str, body: bytes) -> None:
        connection = http.client.HTTPConnection(target, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            connection.request(self.command, self.path, body, {**headers, "Accept-Encoding": "identity"})
            answer = connection.getresponse()
            content = answer.read()
            self._answer(answer.status, content, {"Content-Type": answer.headers.get("Content-Type", "")})
        finally:
            connection.close()

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  http.server's own names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  http.server's own signature
        del format, args

"""An HTTP proxy in front of one server, scripted per request. Both trackers are tested through it.

It forwards whole requests and whole answers, so that it can change, cut, hold back, repeat or drop either of them. A
server that puts its own address into its answers (W&B: where to upload to) has it replaced by the proxy's.
"""

from __future__ import annotations

import http.client
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from fault_proxy.faults import Fault, Seen

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server", "host"})
UPSTREAM_LIMIT = 60.0


@dataclass(slots=True)
class _Script:
    where: re.Pattern[str]
    fault: Fault
    times: int
    skip: int
    hits: int = 0


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Proxy:
    """Forwards to one server.

    Parameters
    ----------
    upstream
        Address of the server, ``http://HOST:PORT``; may be changed while it runs.
    name
        Gives a request its name; of a request (method, path without query, body).

    Attributes
    ----------
    counts
        Requests by name.
    on_request
        Called with the name and ``"in"`` before a request is forwarded, and ``"out"`` once the server has answered; the
        connection is dropped there and then if it returns True.
    """

    def __init__(self, upstream: str, name: Callable[[str, str, bytes], str]) -> None:
        self.upstream = upstream
        self.counts: Counter[str] = Counter()
        self.on_request: Callable[[str, str], bool] | None = None
        self._name = name
        self._scripts: list[_Script] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._busy = 0
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self.host = f"127.0.0.1:{self._http.server_address[1]}"
        self.url = f"http://{self.host}"

    def fail(self, where: str, fault: Fault, *, times: int = 1, skip: int = 0) -> None:
        """Let ``times`` requests whose name matches go wrong, after ``skip`` that do not."""
        with self._lock:
            self._scripts.append(_Script(re.compile(where), fault, times, skip))

    def clear(self) -> None:
        """Let all go well from here on; whoever waits is released."""
        with self._lock:
            self._scripts.clear()
            self.counts.clear()
            self.on_request = None
            released, self._released = self._released, threading.Event()
        released.set()

    @property
    def hits(self) -> int:
        """Requests that went wrong since the last :meth:`clear`."""
        with self._lock:
            return sum(script.hits for script in self._scripts)

    def settle(self, limit: float = 30.0) -> None:
        """Wait until no request is on its way any more, as after the death of the client."""
        end = time.monotonic() + limit
        while self._busy:
            assert time.monotonic() < end, "a request is still on its way"
            time.sleep(0.002)

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        """Forward until the block ends."""
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.clear()
            self._http.shutdown()
            self._http.server_close()
            thread.join()

    def seen(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Seen:
        """Name a request and count it."""
        seen = Seen(name=self._name(method, urlsplit(path).path, body), method=method, path=path, headers=headers,
                    body=body)  # fmt: skip
        with self._lock:
            self.counts[seen.name] += 1
        return seen

    def fault_for(self, name: str) -> Fault:
        """Return what goes wrong with a request: the first script that matches and is not used up."""
        with self._lock:
            for script in self._scripts:
                if script.times > 0 and script.where.fullmatch(name):
                    if script.skip > 0:
                        script.skip -= 1
                        continue
                    script.times -= 1
                    script.hits += 1
                    return script.fault
        return Fault()

    def tell(self, name: str, moment: str) -> bool:
        """Tell the test of a request; return whether it is to be dropped."""
        return self.on_request is not None and self.on_request(name, moment)

    def wait(self, seconds: float) -> None:
        """Be silent."""
        self._released.wait(seconds)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count a request that is on its way."""
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:  # a client that hangs up is no news
        del request, client_address


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Http
    _line: http.client.HTTPConnection | None = None
    _to = ""

    def _serve(self) -> None:
        proxy = self.server.owner
        with proxy.busy():
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen = proxy.seen(self.command, self.path, dict(self.headers), body)
            fault = proxy.fault_for(seen.name)
            if proxy.tell(seen.name, "in"):
                self._hang_up(hard=True)
                return
            if fault.ask is not None:
                seen = fault.ask(seen)
            if fault.cut is None and fault.hang:
                proxy.wait(fault.hang)
            if fault.reset and fault.cut is None:
                self._hang_up(hard=True)
                return
            answer = self._answered(seen, fault)
            dropped = proxy.tell(seen.name, "out")
        if answer is None or dropped:  # the server is not there: to the client it looks like this
            self._hang_up(hard=True)
        else:
            self._send(answer, fault)

    def _answered(self, seen: Seen, fault: Fault) -> _Answer | None:
        made = None if fault.status is None else _Answer(fault.status, {"Content-Type": "application/json"}, fault.body)
        if made is not None and not fault.late:
            return made
        found = self._forward(seen)
        if made is not None or found is None:
            return made
        return found if fault.answer is None else replace(found, body=fault.answer(seen, found.body))

    def _forward(self, seen: Seen) -> _Answer | None:
        upstream = self.server.owner.upstream
        headers = {name: value for name, value in seen.headers.items() if name.lower() not in _HOP}
        if seen.body or seen.method in ("POST", "PUT"):
            headers["Content-Length"] = str(len(seen.body))
        for fresh in (False, True):  # a line kept open may have been closed meanwhile
            if self._line is None or self._to != upstream or fresh:
                self._line = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=UPSTREAM_LIMIT)
                self._to = upstream
            try:
                self._line.request(seen.method, seen.path, body=seen.body or None, headers=headers)
                response = self._line.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException):
                self._line.close()
                self._line = None
                continue
            kept = {name: value for name, value in response.getheaders() if name.lower() not in _HOP}
            return _Answer(response.status, kept, self._readdressed(body, kept))
        return None

    def _readdressed(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        proxy = self.server.owner
        if "json" not in headers.get("Content-Type", headers.get("content-type", "")):
            return body
        return body.replace(proxy.upstream.encode(), proxy.url.encode())

    def _send(self, answer: _Answer, fault: Fault) -> None:
        self.send_response_only(answer.status)
        head = {"Date": self.date_time_string(), **answer.headers, **fault.headers}
        for name, value in {**head, "Content-Length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if fault.cut is None:
            self.wfile.write(answer.body)
            return
        self.wfile.write(answer.body[: int(len(answer.body) * fault.cut)])
        self.wfile.flush()
        if fault.hang:
            self.server.owner.wait(fault.hang)
        self._hang_up(hard=fault.reset)

    def _hang_up(self, *, hard: bool) -> None:
        self.close_connection = True
        if hard:  # with a reset, as a process that dies and a firewall that forgets do
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        if self._line is not None:
            self._line.close()
        super().finish()

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815  http.server's own names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  http.server's own signature
        del format, args

"""The HTTP side of the stand-in: routes, faults, latency, counting."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from wandb_server import filestream, graphql
from wandb_server.state import Behaviour, World

_NAMED = re.compile(r"(?:query|mutation)\s+(\w+)")


@dataclass
class Fault:
    """Something going wrong with the next matching requests.

    ``where``: an operation name, or ``export``, ``upload``, ``download``, ``file_stream``; a regular expression.
    ``kind``: an HTTP status, ``"hang"``, ``"cut"`` (half a body) or ``"late"`` (done, but the answer is a 500).
    ``times``: how many requests; ``skip``: let so many through first.
    """

    where: str
    kind: int | str
    times: int = 1
    skip: int = 0
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    stand_in: StandIn

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hangs up; anything else is a fault of the stand-in."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class StandIn:
    """A running server. Use as a context manager.

    Attributes
    ----------
    world
        What it holds; tests read and change it behind the client's back.
    counts
        Requests by operation name or route.
    latency
        Seconds every answer is held back.
    """

    def __init__(self, behaviour: Behaviour | None = None, *, latency: float = 0.0) -> None:
        self.world = World(behaviour)
        self.counts: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self.latency = latency
        self.read_only = False
        self.in_flight = 0
        self.most_in_flight = 0
        self.on_request: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.stand_in = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> StandIn:  # noqa: PYI034
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._released.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def total(self) -> int:
        """All requests so far."""
        return sum(self.counts.values())

    def fail(
        self, where: str, kind: int | str, *, times: int = 1, skip: int = 0, body: str = "", **headers: str
    ) -> None:
        """Let the next matching requests go wrong; an underscore in a header's name stands for a hyphen."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self._lock:
            self.faults.append(Fault(where, kind, times, skip, body, named))

    def clear_faults(self) -> None:
        """Let all go well again; requests that hang are released."""
        with self._lock:
            self.faults.clear()
        self._released.set()
        self._released = threading.Event()

    def fault_for(self, name: str) -> Fault | None:
        """Count a request and return its fault, if any."""
        with self._lock:
            self.counts[name] += 1
            for fault in self.faults:
                if fault.times > 0 and re.fullmatch(fault.where, name):
                    if fault.skip > 0:
                        fault.skip -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Note a request in flight."""
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self._lock:
                self.in_flight -= 1

    def hang(self) -> None:
        """Wait until somebody releases us."""
        self._released.wait(120)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # head and body in one segment: a second one would wait for a delayed acknowledgement
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        del format, args

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        if path == "/graphql":
            document = json.loads(body)
            match = _NAMED.search(document["query"])
            name = match[1] if match else "anonymous"
            self._serve(name, lambda: self._graphql(name, document))
        elif path.endswith("/file_stream"):
            self._serve("file_stream", lambda: self._stream(path, json.loads(body)))
        else:
            self._serve(path, lambda: (404, b"{}"))

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._serve("upload", lambda: self._upload(body))

    def do_GET(self) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/")[1:]]
        world = self.server.stand_in.world
        if parts[0] == "export":
            self._serve("export", lambda: self._file(world.by_id(parts[1]), int(parts[2])))
        elif parts[0] == "storage":
            self._serve("download", lambda: self._file(world.by_id(parts[1]), "/".join(parts[2:])))
        else:
            self._serve("GET", lambda: (404, b"{}"))

    def _serve(self, name: str, answer: Any) -> None:
        stand_in = self.server.stand_in
        fault = stand_in.fault_for(name)
        with stand_in.busy():
            if stand_in.latency:
                time.sleep(stand_in.latency)
            if hook := stand_in.on_request.get(name):
                hook()
            if fault is not None and fault.kind == "hang":
                stand_in.hang()
                self.close_connection = True
                return
            if fault is not None and isinstance(fault.kind, int):
                message = json.dumps({"errors": [{"message": fault.body or f"injected {fault.kind}"}]}).encode()
                self._send(fault.kind, fault.body.encode() or message, headers=fault.headers)
                return
            status, content = answer()
            if fault is not None and fault.kind == "late":
                self._send(500, b'{"errors": [{"message": "injected after the fact"}]}')
                return
            self._send(status, content, cut=fault is not None and fault.kind == "cut")

    def _send(
        self, status: int, content: bytes, *, cut: bool = False, headers: Mapping[str, str] | None = None
    ) -> None:
        ranged = self.headers.get("Range") if status == 200 else None
        self.send_response(206 if ranged else status)
        if ranged:
            first, _, last = ranged.removeprefix("bytes=").partition("-")
            total = len(content)
            start = int(first) if first else total - int(last)
            stop = int(last) + 1 if first and last else total
            content = content[start:stop]
            self.send_header("Content-Range", f"bytes {start}-{start + len(content) - 1}/{total}")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.wfile.flush()
        if cut:
            self.close_connection = True

    def _graphql(self, name: str, document: dict[str, Any]) -> tuple[int, bytes]:
        stand_in = self.server.stand_in
        if stand_in.read_only and document["query"].lstrip().removeprefix("#graphql").lstrip().startswith("mutation"):
            return 403, b'{"errors": [{"message": "permission denied"}]}'
        return graphql.answer(stand_in.world, name, document["query"], document.get("variables") or {}, stand_in.url)

    def _stream(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        _, entity, project, run, _ = [unquote(part) for part in path.split("/")[1:]]
        return filestream.write(self.server.stand_in.world, (entity, project, run), body)

    def _upload(self, body: bytes) -> tuple[int, bytes]:
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/")[1:]]
        world = self.server.stand_in.world
        run = world.by_id(parts[1])
        if parts[0] != "storage" or run is None:
            return 404, b""
        with world.lock:
            run.files["/".join(parts[2:])] = body
            run.pending_files.add("/".join(parts[2:]))
        return 200, b""

    def _file(self, run: Any, which: int | str) -> tuple[int, bytes]:
        try:
            return 200, run.partitions[which] if isinstance(which, int) else run.files[which]
        except (AttributeError, IndexError, KeyError):
            return 404, b"<Error>NoSuchKey</Error>"

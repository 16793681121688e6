"""``runtriage serve``: the exporter. One thread looks at the source, others answer with what it saw last."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any, ClassVar

from runtriage.cli import door
from runtriage.cli.console import clean, note, out
from runtriage.cli.rules import read_rules
from runtriage.errors import RuntriageError, UsageError
from runtriage.outputs.prometheus import CONTENT_TYPE, Health, render_exposition
from runtriage.sweep.watch import Watch

_PATIENCE = 10.0
"""Seconds after which a client that does not finish its request is dropped."""


def run(
    address: str, *, rules: str | None, baselines: str | None, host: str, port: int, every: float, limit: int,
    once: bool, flags: Mapping[str, Any],
) -> int:
    """Serve until interrupted, or print the page once; return the exit code.

    Raises
    ------
    UsageError
        The port cannot be listened on.
    """
    settings = door.settings(flags).settings
    watched = read_rules(rules).rules if rules is not None else ()
    learned = door.read_baselines(baselines)
    with door.opened(address) as opened, door.cached(opened, settings) as source:
        watch = Watch(
            source=source, rules=watched, params=door.params(settings), baselines=learned, limit=limit,
            readers=settings.sweep.readers,
        )
        page = render_exposition(*watch.look(time.time()))
        if once:
            out(page.rstrip("\n"))
            return 0
        with _listening(host, port, page) as server:
            _until_stopped(watch, server, every)
    return 0


def _until_stopped(watch: Watch, server: _Server, every: float) -> None:
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    answering = threading.Thread(target=server.serve_forever, name="exporter", daemon=True)
    answering.start()
    host, port = server.server_address[:2]
    out(f"serving http://{host!s}:{port}/metrics, a look every {every:g} s; Ctrl-C ends it")
    try:
        while not stop.wait(every):
            _look(watch, server)
    finally:
        server.shutdown()
        answering.join()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _look(watch: Watch, server: _Server) -> None:
    """Look again; a source that does not answer leaves the old page, whose time of reading then tells."""
    try:
        server.page = render_exposition(*watch.look(time.time())).encode()
    except RuntriageError as error:
        note(f"the source could not be read: {clean(str(error))}")
    except Exception as error:  # noqa: BLE001  the job boundary: one look never ends the exporter
        note(f"a look failed: unexpected {type(error).__name__}: {clean(str(error))}")


def _listening(host: str, port: int, page: str) -> _Server:
    try:
        server = _Server((host, port), _Answer)
    except OSError as error:
        hint = "--port 0 takes a free one"
        raise UsageError(f"cannot listen: {error.strerror}", where=f"{host}:{port}", hint=hint) from None
    server.page = page.encode()
    return server


class _Server(ThreadingHTTPServer):
    """Holds the page that is served."""

    daemon_threads = True
    page: bytes = render_exposition([], Health()).encode()


class _Answer(BaseHTTPRequestHandler):
    """Answers one request; nothing it is sent has any effect."""

    timeout: ClassVar[float] = _PATIENCE
    server_version = "runtriage"
    sys_version = ""
    server: _Server

    def do_GET(self) -> None:
        """Answer with the page."""
        self._send(body=True)

    def do_HEAD(self) -> None:
        """Answer without the page."""
        self._send(body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the parent's name
        """Say nothing about requests: they come every few seconds."""

    def _send(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        known = path in {"/", "/metrics"}
        content = self.server.page if path == "/metrics" else b"runtriage exporter: see /metrics\n"
        self.send_response(HTTPStatus.OK if known else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", CONTENT_TYPE if path == "/metrics" else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

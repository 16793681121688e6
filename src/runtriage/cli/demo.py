"""``runtriage demo``: the whole loop, on a real server and real runs."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from runtriage.cli.console import note, out, progress
from runtriage.cli.demo_load import Loader
from runtriage.cli.demo_server import Server, served
from runtriage.cli.sweep_ask import Ask
from runtriage.cli.sweep_perform import perform
from runtriage.cli.sweep_tell import tell
from runtriage.errors import UsageError
from runtriage.model.history import RunHistory
from runtriage.model.report import Report
from runtriage.model.vocab import Lang, Level, at_least
from runtriage.settings import CacheSettings, Settings, SweepSettings
from runtriage.settings.schema import ReportSettings
from runtriage.trackers.files import FilesSource
from runtriage.trackers.mlflow.source import open_source

EXPERIMENT = "pretraining"
_RUNS = Path(__file__).resolve().parent.parent / "demo_data" / "runs"


def run(*, keep: bool, port: int, lang: Lang | None = None) -> int:
    """Start a server, fill it, sweep it, say where to look, and return the exit code.

    Raises
    ------
    MissingExtraError
        MLflow is not installed.
    UsageError
        The bundled runs are not there.
    SourceError
        The server does not start.
    """
    histories = _bundled()
    _avoid_proxies()
    folder = tempfile.TemporaryDirectory(prefix="runtriage-demo-", ignore_cleanup_errors=True)
    with _ending_on_signals(), folder as name, served(Path(name), port) as server:
        _load(server, histories)
        source = f"mlflow://{server.place}/{EXPERIMENT}"
        said = f" --lang {lang.value}" if lang is not None else ""
        out(f"$ runtriage sweep {source} --write all{said}")
        report = ReportSettings(lang=lang or Lang.EN)
        settings = Settings(sweep=SweepSettings(write=("all",)), cache=CacheSettings(address="off"), report=report)
        with perform(Ask(source=source), settings) as swept:
            code = tell(swept, Ask(source=source), settings)
            _tell_addresses(source, [entry.report for entry in swept.entries()], said)
        _stay(server, keep=keep)
    return code


def _bundled() -> list[RunHistory]:
    if not _RUNS.is_dir():
        raise UsageError("the bundled runs are not part of this installation", where=str(_RUNS))
    with closing(FilesSource(f"files:{_RUNS}")) as source:
        return [source.read(info) for info in source.list_runs()]


def _load(server: Server, histories: list[RunHistory]) -> None:
    points = sum(track.step.size for history in histories for track in history.tracks.values())
    note(f"runtriage: logging {len(histories)} public training runs with {points:,} points to it")
    with closing(Loader(server.place, EXPERIMENT)) as loader, progress("logging", len(histories)) as bar:
        for history in bar.over(histories):
            loader.log(history)


def _tell_addresses(address: str, reports: list[Report], said: str) -> None:
    out()
    with closing(open_source(address)) as source:
        lines = [("flagged runs in MLflow", source.view_url())]
    flagged = [report.run for report in reports if at_least(report.verdict, Level.SUSPICIOUS)]
    lines += [(run.name, run.url) for run in flagged if run.url is not None]
    lines += [("one in the terminal", f"runtriage check {address}/{flagged[0].id}{said}")] if flagged else []
    longest = max(len(title) for title, _ in lines)
    for title, place in lines:
        out(f"{title:<{longest}}  {place}")


def _stay(server: Server, *, keep: bool) -> None:
    if not keep:
        out("The server ends now; `runtriage demo --keep` leaves it up.")
        return
    note("runtriage: the server stays up until Ctrl-C")
    try:
        server.wait()
    except KeyboardInterrupt:
        note("")
    else:
        note("runtriage: the server has ended by itself")


def _avoid_proxies() -> None:
    """Keep requests to the server of our own on this machine, whatever proxy the environment names."""
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1")))


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Treat a polite end like Ctrl-C, so that the server is ended and the folder removed."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # a shell may have switched Ctrl-C off for us
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

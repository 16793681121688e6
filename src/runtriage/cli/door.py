"""What several commands do first and last: settings, opening a source, parsing moments, writing files."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtriage.cli.console import clean, note
from runtriage.errors import CodecError, UsageError
from runtriage.model.baseline import BaselineSet
from runtriage.model.refs import LOCAL_SCHEMES, parse_address, redacted
from runtriage.pipeline import Params
from runtriage.registry import open_source, split_run
from runtriage.settings import Loaded, Settings, load
from runtriage.trackers.base import HistorySource, MarkTarget
from runtriage.trackers.folder import FolderSource

_SPAN = re.compile(r"(\d+)([smhdw])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def settings(flags: Mapping[str, Any]) -> Loaded:
    """Return the settings of this call."""
    return load(Path.cwd(), os.environ, flags)


def params(settings: Settings) -> Params:
    """Return the part of the settings that the analysis takes."""
    chosen = settings.analysis
    return Params(
        false_alarm_budget=chosen.false_alarm_budget, roles=chosen.roles, ignore_keys=chosen.ignore_keys,
        lang=settings.report.lang,
    )


@contextmanager
def opened(address: str) -> Iterator[HistorySource]:
    """Open the source of an address that names no run, and close it.

    Raises
    ------
    UsageError
        The address names a run.
    """
    where, run = split_run(address)
    parsed = parse_address(address)
    if parsed.scheme in LOCAL_SCHEMES and not Path(parsed.location).expanduser().exists():
        where, run = address, None  # a folder that is not there is no run of the folder around it
    if run is not None:
        hint = "give the source, or use `runtriage check`"
        raise UsageError("this is the address of one run", where=redacted(address), hint=hint)
    source = open_source(where)
    try:
        yield source
    finally:
        source.close()


@contextmanager
def cached(source: HistorySource, settings: Settings, *, fresh: bool = False) -> Iterator[HistorySource]:
    """Yield the source to read histories from: through the cache, unless that is off.

    Folders are read where they lie. A cache that does not work is said once, and is no failure.

    Parameters
    ----------
    source
        Where the runs are; it is not closed.
    settings
        Of this call.
    fresh
        Read every run again, and keep what is read.

    Raises
    ------
    UsageError
        The address of the cache makes no sense.
    """
    if settings.cache.address == "off" or isinstance(source, FolderSource):
        yield source
        return
    from runtriage.trackers.cache.source import CachedSource
    from runtriage.trackers.cache.store import HistoryStore

    store = HistoryStore(settings.cache.address, max_bytes=int(settings.cache.max_gb * 1e9))
    try:
        yield CachedSource(source, store, fresh=fresh)
    finally:
        store.close()
        if store.trouble is not None:
            note(f"runtriage: histories are not kept in {clean(store.shown)}: {clean(store.trouble, 300)}")


def markable(source: HistorySource) -> MarkTarget:
    """Return the source as one that marks can hang on.

    Raises
    ------
    UsageError
        It cannot be written to.
    """
    if not isinstance(source, MarkTarget):
        hint = "marks hang on an MLflow server or in a W&B project"
        raise UsageError("this source cannot be written to", where=source.address, hint=hint)
    return source


def moment(text: str | None) -> float | None:
    """Return seconds since the epoch for a date, a date with time, or an age (``30m``, ``12h``, ``7d``, ``2w``).

    Raises
    ------
    UsageError
        It is neither.
    """
    if text is None:
        return None
    if match := _SPAN.fullmatch(text.strip()):
        return time.time() - float(match[1]) * _SECONDS[match[2]]
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        hint = "write 2026-11-30, 2026-11-30T12:00 or 7d"
        raise UsageError(f"{text!r} is no moment", where="--since", hint=hint) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def span(text: str, where: str) -> float:
    """Return the seconds of a span of time (``30s``, ``10m``, ``6h``, ``1d``), at least one.

    Raises
    ------
    UsageError
        It is none.
    """
    match = _SPAN.fullmatch(text.strip())
    if match is None or not int(match[1]):
        raise UsageError(f"{text!r} is no span of time", where=where, hint="write 30s, 10m, 6h or 1d")
    return float(match[1]) * _SECONDS[match[2]]


def read_baselines(path: str | None) -> BaselineSet | None:
    """Return the baselines of a file.

    Raises
    ------
    UsageError
        It cannot be opened.
    CodecError
        It is not a file of baselines.
    """
    if path is None:
        return None
    from runtriage.codec_baselines import decode_baselines

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        what = f"the baselines cannot be read: {error.strerror}"
        raise UsageError(what, where=path, hint="`runtriage learn` writes them") from None
    try:
        return decode_baselines(content)
    except CodecError as error:
        raise CodecError(error.message, where=f"{path} {error.where}".strip(), hint=error.hint) from None


def check_writable(*paths: str | None) -> None:
    """Refuse a file that cannot be written before any work is done.

    Raises
    ------
    UsageError
        The folder does not exist or may not be written.
    """
    for path in paths:
        if path is None or path == "-":
            continue
        folder = Path(path).resolve().parent
        if not folder.is_dir() or Path(path).is_dir() or not os.access(folder, os.W_OK):
            raise UsageError("this file cannot be written", where=path, hint="does its folder exist?")


def write_file(path: str, content: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all, from pieces if they are many; ``-`` is stdout.

    Raises
    ------
    UsageError
        It cannot be written.
    """
    pieces = [content] if isinstance(content, bytes) else content
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.exists() and not target.is_file():  # a pipe or a device
            with target.open("wb") as opened:
                opened.writelines(pieces)
            return
        with beside.open("wb") as opened:
            opened.writelines(pieces)
        beside.replace(target)
    except OSError as error:
        raise UsageError(f"the file cannot be written: {error.strerror}", where=path) from None
    finally:  # also when it is broken off
        beside.unlink(missing_ok=True)

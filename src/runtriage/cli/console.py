"""Streams: results on stdout, progress and complaints on stderr.

Control characters of hostile names never reach a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from runtriage.cli.eta import Estimate, about

T = TypeVar("T")

_NAME_LIMIT = 200


def clean(text: str, limit: int = _NAME_LIMIT) -> str:
    r"""Return text from outside on one line, without control or bidirectional characters, cut to a length.

    Examples
    --------
    >>> clean("a\x1b[31mb\nc")
    'a?[31mb?c'
    """
    flat = "".join(c if c.isprintable() else "?" for c in text)
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def out(text: str = "") -> None:
    """Write a line of result to stdout."""
    sys.stdout.write(_encodable(text, sys.stdout.encoding) + "\n")


def note(text: str) -> None:
    """Write a line to stderr, after what went to stdout before it."""
    sys.stdout.flush()
    sys.stderr.write(_encodable(text, sys.stderr.encoding) + "\n")
    sys.stderr.flush()


def width() -> int:
    """Return the columns to lay out for: those of the terminal, or 120 where there is none."""
    import shutil

    return shutil.get_terminal_size((120, 40)).columns if sys.stdout.isatty() else 120


def colours() -> bool:
    """Tell whether stdout wants colour: a terminal whose user did not set ``NO_COLOR``."""
    import os

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Progress]:
    """Show how far a job is and how long it still takes: a bar on a terminal, otherwise lines, on stderr."""
    estimate = Estimate(total, time.monotonic()) if total else None
    if not sys.stderr.isatty():
        yield Progress(_Lines(what, total, estimate), estimate)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: object) -> Text:
            del task
            return Text(_left(estimate))

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), Left())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield Progress(lambda: bar.advance(task), estimate)


class Progress:
    """Counts what goes by."""

    def __init__(self, step: Callable[[], None], estimate: Estimate | None) -> None:
        self._step, self._estimate = step, estimate

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, counting each."""
        for item in items:
            yield item
            if self._estimate is not None:
                self._estimate.add(time.monotonic())
            self._step()


class _Lines:
    """Plain lines for logs and pipes: one every tenth of the job; none for a job that is done at once."""

    def __init__(self, what: str, total: int | None, estimate: Estimate | None) -> None:
        self._what, self._total, self._done, self._estimate = what, total, 0, estimate
        self._every = max(20, (total or 0) // 10)

    def __call__(self) -> None:
        self._done += 1
        if self._done % self._every == 0:
            of = f" of {self._total}" if self._total is not None else ""
            left = _left(self._estimate) if self._done != self._total else ""
            note(f"{self._what}: {self._done}{of}" + (f", {left}" if left else ""))


def _left(estimate: Estimate | None) -> str:
    seconds = estimate.seconds(time.monotonic()) if estimate is not None else None
    return about(seconds) if seconds is not None else ""


def _encodable(text: str, encoding: str | None) -> str:
    return text.encode(encoding or "utf-8", "replace").decode(encoding or "utf-8", "replace")

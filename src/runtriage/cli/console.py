"""Streams: results on stdout, progress and complaints on stderr.

Control characters of hostile names never reach a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

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
    """Show how far a job is: a bar on a terminal, otherwise a line every tenth of it, on stderr."""
    if not sys.stderr.isatty():
        yield Progress(_Lines(what, total))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield Progress(lambda: bar.advance(task))


class Progress:
    """Counts what goes by."""

    def __init__(self, step: object) -> None:
        self._step = step

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, counting each."""
        for item in items:
            yield item
            if callable(self._step):
                self._step()


class _Lines:
    """Plain lines for logs and pipes; none for a job that is done at once."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total, self._done = what, total, 0
        self._every = max(20, (total or 0) // 10)

    def __call__(self) -> None:
        self._done += 1
        if self._done % self._every == 0:
            of = f" of {self._total}" if self._total is not None else ""
            note(f"{self._what}: {self._done}{of}")


def _encodable(text: str, encoding: str | None) -> str:
    return text.encode(encoding or "utf-8", "replace").decode(encoding or "utf-8", "replace")

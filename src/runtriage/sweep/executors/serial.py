"""One after the other, in the caller's own thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class SerialExecutor:
    """Does each piece when its result is asked for."""

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of each item, in order."""
        return map(work, items)

    def close(self) -> None:
        """Do nothing."""

"""What an executor promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """A way to do many pieces of work.

    Results come in the order of the items. Items are taken lazily and a bounded number is in flight, so that neither a
    long listing nor its histories are ever held at once. What the function raises is raised to the caller; what must
    not stop the others is turned into data by the function.
    """

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of each item, in order."""
        ...

    def close(self) -> None:
        """Stop: what has not begun will not begin. May be called twice."""
        ...

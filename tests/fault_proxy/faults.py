"""What can go wrong with a request, and what is known of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it came in; ``name`` is what scripts know it by."""

    name: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with a request.

    Attributes
    ----------
    status
        Answer with this instead of the server's answer; None for the server's own.
    body, headers
        Of that answer; the headers are also added to the server's own answer.
    late
        With a status: the server has carried the request out before.
    cut
        Part of the body that is sent before the connection closes, although all of it is announced.
    reset
        The connection ends with a reset instead of a close: before the request is forwarded, or after ``cut``.
    hang
        Seconds of silence: before the answer, or after ``cut``; a test that ends ends them.
    ask, answer
        What becomes of the request before it is forwarded, and of the body that comes back.
    """

    status: int | None = None
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    late: bool = False
    cut: float | None = None
    reset: bool = False
    hang: float = 0.0
    ask: Callable[[Seen], Seen] | None = None
    answer: Callable[[Seen, bytes], bytes] | None = None

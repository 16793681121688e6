"""A time limit and a pace for all that the W&B client asks of its service process. Part of the door of :mod:`.client`.

Scans, downloads and uploads of the client wait for ever by design; its service process retries twenty times by default,
each request by itself. Here it retries a few times, as the server's ``Retry-After`` says; what is refused even then is
the business of the pace that all threads keep to, and is asked for again.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

from runtriage.trackers.pace import Pace, pace_of
from runtriage.trackers.wandb.failures import is_refusal, status_of

_NAMED = re.compile(r"\s*(?:query|mutation)\s+(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long to try, and how fast.

    Attributes
    ----------
    attempt, call
        Seconds for one attempt, and for one call in all.
    retries, pause
        Retries of the client's service process, and the longest pause between them where the server does not say.
    threads
        Histories read at the same time.
    pace
        Decides when a request may begin; by default that of all who ask this server in this process.
    """

    attempt: float = 30.0
    retries: int = 3
    pause: float = 10.0
    call: float = 240.0
    threads: int = 8
    pace: Pace | None = None


class _Handle:
    """An answer to come, waited for no longer than the limit."""

    def __init__(self, inner: Any, limit: float) -> None:
        self._inner, self._limit = inner, limit

    async def wait_async(self, *, timeout: float | None) -> Any:  # noqa: ASYNC109
        """Wait for the answer."""
        return await self._inner.wait_async(timeout=self._limit if timeout is None else timeout)


def bounded(service: Any, limits: Limits) -> Any:
    """Return a handle like ``service``, with the same credentials, whose calls end and keep to the pace.

    Exports are downloaded without a pace: they come from a storage of their own.
    """
    settings = service._settings.model_copy()  # noqa: SLF001
    for kind in ("graphql", "file_transfer"):
        setattr(settings, f"x_{kind}_retry_max", limits.retries)
        setattr(settings, f"x_{kind}_retry_wait_min_seconds", min(1.0, limits.pause))
        setattr(settings, f"x_{kind}_retry_wait_max_seconds", limits.pause)
        setattr(settings, f"x_{kind}_timeout_seconds", limits.attempt)
    pace = limits.pace or pace_of(str(service.base_url))

    class Bounded(type(service)):  # type: ignore[misc]
        """The client's handle with a limit where it has none."""

        def send_api_request(self, request: Any, timeout: float | None = None) -> Any:
            kind, waited = _kind(request), 0.0
            while True:
                waited += pace.acquire(waited)
                began, status, size = time.monotonic(), 0, 0
                try:
                    response = super().send_api_request(request, timeout=limits.call if timeout is None else timeout)
                    status, size = 200, response.ByteSize()
                except Exception as error:
                    status = 429 if is_refusal(error) else status_of(error) or 0
                    if status != 429:
                        raise
                    waited += time.monotonic() - began  # the service process has waited and asked again by itself
                else:
                    return response
                finally:
                    pace.feedback(status, time.monotonic() - began, kind=kind, size=size)

        async def send_api_request_async(self, request: Any) -> Any:
            return _Handle(await super().send_api_request_async(request), limits.call)

    return Bounded(settings=settings, timeout=limits.call)


def _kind(request: Any) -> str:
    """Return which question a request is: answer times are only compared with those of the same one."""
    kind = str(request.WhichOneof("request"))
    named = _NAMED.match(request.graphql_request.query) if kind == "graphql_request" else None
    return named[1] if named else kind

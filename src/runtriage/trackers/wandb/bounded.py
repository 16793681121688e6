"""A time limit on everything the W&B client asks of its service process. Part of the door of :mod:`.client`.

Scans, downloads and uploads of the client wait for ever by design; its service process retries twenty times by default.
"""

from __future__ import annotations

from typing import Any


class _Handle:
    """An answer to come, waited for no longer than the limit."""

    def __init__(self, inner: Any, limit: float) -> None:
        self._inner, self._limit = inner, limit

    async def wait_async(self, *, timeout: float | None) -> Any:  # noqa: ASYNC109
        """Wait for the answer."""
        return await self._inner.wait_async(timeout=self._limit if timeout is None else timeout)


def bounded(service: Any, attempt: float, retries: int, pause: float, call: float) -> Any:
    """Return a handle like ``service``, with the same credentials, whose calls end.

    Parameters
    ----------
    service
        The client's handle.
    attempt, retries, pause, call
        As in :class:`runtriage.trackers.wandb.client.Limits`.
    """
    settings = service._settings.model_copy()  # noqa: SLF001
    for kind in ("graphql", "file_transfer"):
        setattr(settings, f"x_{kind}_retry_max", retries)
        setattr(settings, f"x_{kind}_retry_wait_min_seconds", min(1.0, pause))
        setattr(settings, f"x_{kind}_retry_wait_max_seconds", pause)
        setattr(settings, f"x_{kind}_timeout_seconds", attempt)

    class Bounded(type(service)):  # type: ignore[misc]
        """The client's handle with a limit where it has none."""

        def send_api_request(self, request: Any, timeout: float | None = None) -> Any:
            return super().send_api_request(request, timeout=call if timeout is None else timeout)

        async def send_api_request_async(self, request: Any) -> Any:
            return _Handle(await super().send_api_request_async(request), call)

    return Bounded(settings=settings, timeout=call)

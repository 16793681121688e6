"""What the workers of a Dask cluster share to spare a tracker: turns, and the pace of a server.

The scheduler keeps the pace, for all its workers and for whoever sweeps with it. A process asks it before each request
and tells it afterwards how that went, so that a refusal which one worker got holds all of them back at once. Two small
messages a request, of which one is waited for. Where the scheduler does not answer any more, each process goes on with
a pace of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from distributed import Client, SchedulerPlugin, Semaphore, Worker, get_worker
from distributed.utils import sync

from runtriage import __version__
from runtriage.errors import SourceUnreachableError
from runtriage.trackers.pace import AdaptivePace

_ANSWER_SECONDS = 30.0
_ASK, _TELL = "runtriage_pace_ask", "runtriage_pace_tell"


class PacePlugin(SchedulerPlugin):  # type: ignore[misc]
    """Keeps one pace a server. There is one of it in a scheduler, whoever sweeps, and it stays."""

    name = f"runtriage-pace-{__version__}"
    idempotent = True

    def __init__(self) -> None:
        self._paces: dict[str, AdaptivePace] = {}

    def __reduce__(self) -> tuple[type[PacePlugin], tuple[()]]:
        """Send a plugin that has seen nothing."""
        return PacePlugin, ()

    async def start(self, scheduler: Any) -> None:
        """Answer the two questions of :class:`ClusterPace`."""
        scheduler.handlers.update({_ASK: self.ask, _TELL: self.tell})

    async def ask(self, server: str, waited: float, *, placed: bool) -> tuple[float, str, str]:
        """Return the seconds to wait before a request, and why it will not be sent at all, with a hint."""
        try:
            return self._of(server).ask(waited, placed=placed), "", ""
        except SourceUnreachableError as error:
            return 0.0, error.message, error.hint

    async def tell(
        self, server: str, status: int, seconds: float, retry_after: float | None, kind: str, size: int
    ) -> None:
        """Learn from a request."""
        self._of(server).feedback(status, seconds, retry_after, kind=kind, size=size)

    def _of(self, server: str) -> AdaptivePace:
        return self._paces.setdefault(server, AdaptivePace(server))


class ClusterPace:
    """The pace of a server for a process that belongs to a cluster; see :class:`runtriage.trackers.pace.Pace`.

    Parameters
    ----------
    member
        Connection to the scheduler: that of a worker or of a client.
    server
        Its address.
    """

    def __init__(self, member: Worker | Client, server: str) -> None:
        self._member, self._server = member, server
        self._alone = AdaptivePace(server)
        self._lost = False

    def acquire(self, waited: float = 0.0) -> float:
        """Wait until a request may begin."""
        spent = pause = 0.0
        while not self._lost:
            try:
                answer = self._sent(_ASK, waited=waited + spent, placed=pause > 0.0)
                pause, refused, hint = sync(self._member.loop, answer, callback_timeout=_ANSWER_SECONDS)
            except Exception:  # noqa: BLE001  whatever happened to the scheduler: the pace is not what fails
                self._lost = True
                break
            if refused:
                raise SourceUnreachableError(refused, where=self._server, hint=hint)
            if not pause:
                return spent
            time.sleep(pause)
            spent += pause
        return spent + self._alone.acquire(waited + spent)

    def feedback(
        self, status: int, seconds: float, retry_after: float | None = None, *, kind: str = "", size: int = 0
    ) -> None:
        """Tell how the request went."""
        facts = {"status": status, "seconds": seconds, "retry_after": retry_after, "kind": kind, "size": size}
        if self._lost:
            self._alone.feedback(status, seconds, retry_after, kind=kind, size=size)
        else:
            self._member.loop.add_callback(self._told, self._sent(_TELL, **facts))

    def _sent(self, what: str, **facts: Any) -> Callable[[], Any]:
        return partial(getattr(self._member.scheduler, what), server=self._server, **facts)

    async def _told(self, send: Callable[[], Any]) -> None:
        with suppress(Exception):  # the next question finds out
            await asyncio.wait_for(send(), _ANSWER_SECONDS)


@dataclass(frozen=True, slots=True)
class SharedTurn:
    """Makes, in a worker, what at most so many threads of all workers together can hold at once.

    Attributes
    ----------
    name
        What those who share it call it.
    most
        Holders at the same time. Whoever dies with it loses it after a while.
    """

    name: str
    most: int

    def __call__(self) -> AbstractContextManager[object]:
        """Return it; to be kept, since each one keeps a clock running."""
        return cast("AbstractContextManager[object]", Semaphore(self.most, self.name))


@dataclass(frozen=True, slots=True)
class WorkerPaces:
    """Makes, in a thread of a worker, what makes the paces of its process."""

    def __call__(self) -> Callable[[str], ClusterPace]:
        """Return it."""
        return partial(ClusterPace, get_worker())


def register(client: Client) -> bool:
    """Have the scheduler keep paces; return False if it cannot, such as one without runtriage."""
    try:
        client.register_plugin(PacePlugin(), name=PacePlugin.name)
    except Exception:  # noqa: BLE001  whatever it says: then each worker has a pace of its own
        return False
    return True

"""A Dask cluster behind the same ordered, bounded map: only ``dask*`` modules import ``distributed``.

A piece of work may be done more than once (a worker died, its result was lost with it) and must bear that; what has an
effect outside, such as writing marks, stays in the caller's process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from runtriage.errors import ClusterError, MissingExtraError, UsageError
from runtriage.model.refs import redacted

try:
    from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, Security, Semaphore, wait
    from distributed.core import rpc
except ModuleNotFoundError as error:
    raise MissingExtraError("distributed is not installed", hint="pip install 'runtriage[dask]'") from error

from runtriage.sweep.executors.dask_local import own_cluster
from runtriage.sweep.executors.dask_shared import ClusterPace, SharedTurn, WorkerPaces, register
from runtriage.trackers.pace import share

T = TypeVar("T")
R = TypeVar("R")

CONNECT_SECONDS = 15
PATIENCE_SECONDS = 300.0
"""Time without a single worker after which nothing more is expected of a cluster."""

GIVE_UP_AFTER = 3
"""Pieces in a row over which workers died, each twice, after which the others are not tried any more."""

AHEAD = 8
"""Pieces begun and not yet taken, a thread of the cluster: a slow one at the head must not leave workers idle."""

_GONE = "not tried: the Dask scheduler went away"
_LOOK_SECONDS = 2.0
_CLOSE_SECONDS = 20
_REMOTE = re.compile(r"(tcp|tls|ws|wss)://[\w.:\[\]-]+", re.ASCII)
_FILE_LIMIT = 1 << 22
_FORMS = "dask, dask:tcp://HOST:PORT, dask:tls://HOST:PORT or dask:SCHEDULER_FILE"


class DaskExecutor:
    """Does work on a Dask cluster: one that is there, or one of its own on this machine.

    Parameters
    ----------
    where
        Address of a scheduler (``tcp://HOST:PORT``, ``tls://…``) or path of a scheduler file; empty to start workers
        here, listening on the loopback interface only.
    workers
        Processes to start where there is no cluster.
    lost
        Makes the result of a piece that got none, of the piece and the reason; None raises the reason instead.
    patience
        Seconds without a single worker after which the cluster counts as lost.

    Raises
    ------
    UsageError
        ``where`` is neither an address nor a scheduler file.
    ClusterError
        No scheduler answers, or its workers run another Python or another runtriage.
    """

    def __init__(
        self,
        where: str = "",
        *,
        workers: int = 2,
        lost: Callable[[Any, str], Any] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        if not os.environ.get("RUNTRIAGE_DEBUG"):
            logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is said once, in outcomes
        self._lost = lost
        self._patience = patience
        self._over: str | None = None
        self._killers = 0
        self._turns: list[str] = []
        self._paced: bool | None = None
        self._cluster = None if where else own_cluster(workers)
        try:
            self._client = _connected(self._cluster if self._cluster is not None else scheduler_address(where))
        except BaseException:
            self._close_cluster()
            raise
        try:
            _check_workers(self._client)
        except BaseException:
            self.close()
            raise

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of each item, in order.

        A piece whose workers died is tried again by the scheduler (``distributed.scheduler.allowed-failures``), then
        once more alone, since the workers may have died over its neighbours; then it is lost.
        """
        begun: deque[tuple[T, Future[R] | None]] = deque()
        for item in items:
            begun.append((item, self._begin(work, item)))
            if len(begun) > AHEAD * self._threads():
                yield self._take(work, begun)
        while begun:
            yield self._take(work, begun)

    def shared_turn(self, name: str, most: int) -> SharedTurn:
        """Return what at most so many threads of all workers together can hold at once, under a name of its own."""
        self._turns.append(name)
        return SharedTurn(name, most)

    def shared_paces(self) -> WorkerPaces | None:
        """Return what gives workers the pace of a server that all of them share; None if the scheduler cannot."""
        if self._paced is None:
            self._paced = self._client.status == "running" and register(self._client)
        return WorkerPaces() if self._paced else None

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Keep to the pace of the workers in this process too."""
        try:
            if self.shared_paces() is not None:
                share(partial(ClusterPace, self._client))
            yield
        finally:
            share()

    def close(self) -> None:
        """Stop: what has not begun will not begin. A cluster of our own ends."""
        if self._cluster is None and self._client.status == "running":
            with suppress(Exception), self._client.as_current():
                for name in self._turns:
                    Semaphore(name=name).close()  # or the scheduler of others keeps it for ever
        self._turns.clear()
        with suppress(Exception):  # a lost cluster cannot be told
            self._client.close(timeout=_CLOSE_SECONDS)
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close(timeout=_CLOSE_SECONDS)

    def _begin(self, work: Callable[[T], R], item: T) -> Future[R] | None:
        if self._over is not None or self._client.status != "running":
            return None
        return cast("Future[R]", self._client.submit(work, item, pure=False))

    def _take(self, work: Callable[[T], R], begun: deque[tuple[T, Future[R] | None]]) -> Any:
        item, future = begun.popleft()
        self._settle(future)
        if _killed(future) and self._killers < GIVE_UP_AFTER:
            for _, other in begun:
                self._settle(other)
            future = self._begin(work, item)
            self._settle(future)
        if self._over is not None or future is None:
            return self._without(item, self._over or _GONE)
        if _killed(future):
            self._killers += 1
            if self._killers >= GIVE_UP_AFTER:
                self._over = "not tried: workers died over one piece of work after the other"
            return self._without(item, "the workers that tried it died, again and again (out of memory?)")
        self._killers = 0
        if future.status == "error" and self._lost is not None:
            error = future.exception()
            return self._without(item, f"unexpected {type(error).__name__} on a worker: {error}")
        return future.result()

    def _settle(self, future: Future[Any] | None) -> None:
        """Wait until a piece is done or nothing can be expected any more."""
        alone_since: float | None = None
        while future is not None and self._over is None and not future.done():
            try:
                with self._client.as_current():
                    wait(future, timeout=_LOOK_SECONDS)
            except TimeoutError:
                if self._client.status != "running":
                    self._over = _GONE
                elif self._threads():
                    alone_since = None
                else:
                    alone_since = alone_since or time.monotonic()
                    if time.monotonic() - alone_since > self._patience:
                        self._over = f"not tried: the cluster had no worker for {self._patience:.0f} s"
            except CancelledError:
                pass
        if future is not None and future.status in ("cancelled", "lost"):
            self._over = self._over or _GONE

    def _without(self, item: T, why: str) -> Any:
        if self._lost is None:
            raise ClusterError(why)
        return self._lost(item, why)

    def _threads(self) -> int:
        """Return the threads of all workers; 0 if the scheduler does not tell."""
        if self._client.status != "running":
            return 0
        try:
            return sum(self._client.nthreads().values())
        except (OSError, TimeoutError, CancelledError):
            return 0


def scheduler_address(where: str) -> str:
    """Return the address of a scheduler, given itself or by a scheduler file.

    Raises
    ------
    UsageError
        It is neither.
    """
    if "://" in where:
        return _checked(where, where)
    try:
        path = Path(where).expanduser()
        if not path.is_file() or path.stat().st_size > _FILE_LIMIT:
            raise UsageError("this is neither a scheduler's address nor a file", where=where, hint=_FORMS)
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError("the scheduler file cannot be read", where=where, hint=_FORMS) from error
    address = found.get("address") if isinstance(found, dict) else None
    return _checked(address if isinstance(address, str) else "", where)


def _checked(address: str, where: str) -> str:
    if _REMOTE.fullmatch(address) is None:
        raise UsageError("this is not the address of a Dask scheduler", where=redacted(where), hint=_FORMS)
    return address


def _connected(to: LocalCluster | str) -> Client:
    where = to if isinstance(to, str) else to.scheduler_address
    try:
        kind = asyncio.run(asyncio.wait_for(_kind(where), CONNECT_SECONDS))
        if kind == "Scheduler":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # other versions of numpy or tornado are no fault; see _check_workers
                return Client(to, timeout=CONNECT_SECONDS, name="runtriage", set_as_default=False)
    except Exception as error:
        hint = f"{type(error).__name__} within {CONNECT_SECONDS} s; is it running, is it really tcp or tls?"
        raise ClusterError("no Dask scheduler answers", where=where, hint=hint) from error
    raise ClusterError(f"this is not a Dask scheduler but a {kind}", where=where)


async def _kind(address: str) -> str:
    """Ask who is there, before a client that can hardly be stopped is made: strangers answer anything."""
    async with rpc(address, connection_args=Security().get_connection_args("client")) as there:
        return str((await there.identity())["type"])


def _check_workers(client: Client) -> None:
    """Refuse workers that would not understand what they are sent.

    Raises
    ------
    ClusterError
        One runs another Python or another runtriage.
    """
    found = client.get_versions(packages=["runtriage"])
    for worker, theirs in sorted(found["workers"].items()):
        for package, name in (("python", "Python"), ("runtriage", "runtriage")):
            ours, its = (_version(facts, package) for facts in (found["client"], theirs))
            if ours != its:
                what = f"the worker {worker} has {f'{name} {its}' if its else f'no {name}'}, this is {ours}"
                raise ClusterError(what, hint="install the same version here and on all workers")


def _version(facts: Any, package: str) -> str:
    version = str(facts["packages"].get(package) or "")
    return ".".join(version.split(".")[:2]) if package == "python" else version


def _killed(future: Future[Any] | None) -> bool:
    return future is not None and future.status == "error" and isinstance(future.exception(), KilledWorker)

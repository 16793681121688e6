"""An empty experiment on the real server, and a client that is interrupted between two pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mlflow_server.real import T0, RealServer
from runtriage.trackers.mlflow.access import access_to
from runtriage.trackers.mlflow.client import MlflowClient
from runtriage.trackers.mlflow.source import MlflowSource


class Interrupted(MlflowClient):
    """A client in whose calls something happens between the first page and the second."""

    between: Callable[[], None] | None = None

    def get(self, path: str, params: Any, decode: Any) -> Any:
        return self._then(super().get(path, params, decode), path)

    def post(self, path: str, body: Any, decode: Any) -> Any:
        return self._then(super().post(path, body, decode), path)

    def _then(self, answer: Any, path: str) -> Any:
        if self.between is not None and path in ("metrics/get-history", "runs/search"):
            happen, self.between = self.between, None
            happen()
        return answer


class World:
    """An empty experiment and ways to open it."""

    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.experiment = server.experiment()
        self.address = server.address(self.experiment)
        self._opened: list[MlflowSource] = []

    def source(self, **sizes: int) -> MlflowSource:
        access = access_to(self.address, {})
        source = MlflowSource(access, client=Interrupted(access), **sizes)
        self._opened.append(source)
        return source

    def interrupted(self, between: Callable[[], None], **sizes: int) -> MlflowSource:
        source = self.source(**sizes)
        cast("Interrupted", source._client).between = between
        return source

    def close(self) -> None:
        for source in self._opened:
            source.close()


def line(count: int, *, start: int = 0, stamp: int = T0) -> list[tuple[int, float, int]]:
    return [(start + i, float(start + i), stamp + i) for i in range(count)]

"""Which code opens which address: a table of strings, so that nothing is imported before it is needed.

Other distributions add schemes through the entry-point group ``runtriage.sources``; they are looked up only when a
scheme is not in the table, so a plugin can neither slow the start nor take over a scheme of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

from runtriage.errors import MissingExtraError, UsageError
from runtriage.model.refs import meant_hint, parse_address, redacted

if TYPE_CHECKING:
    from runtriage.trackers.base import HistorySource

GROUP = "runtriage.sources"

SOURCES: dict[str, str] = {
    "files": "runtriage.trackers.files:FilesSource",
    "mlflow": "runtriage.trackers.mlflow.source:open_source",
    "mlflow+https": "runtriage.trackers.mlflow.source:open_source",
    "mlflow-local": "runtriage.trackers.mlflow.local:MlrunsSource",
    "mlflow-sql": "runtriage.trackers.mlflow_sql.source:open_source",
    "wandb": "runtriage.trackers.wandb.source:WandbSource",
    "wandb-local": "runtriage.trackers.wandb.local:WandbFilesSource",
}
"""Scheme to ``module:attribute``; the attribute is called with the address and returns a source."""


def open_source(address: str) -> HistorySource:
    """Return the source of an address. Nothing is read yet.

    Parameters
    ----------
    address
        Address of a source; a run at its end is the business of :func:`split_run`.

    Raises
    ------
    UsageError
        Not an address, an unknown scheme, or a scheme that two plugins claim.
    MissingExtraError
        The code behind the scheme needs a package that is not installed.
    """
    return cast("HistorySource", _factory(address)(address))


def split_run(address: str) -> tuple[str, str | None]:
    """Split ``SOURCE/RUN`` into the address of the source and the run, or None if no run is named.

    For a local source the folder decides: ``files:DIR/RUN`` is split if ``DIR/RUN`` is itself a run. The address
    returned is meant for :func:`open_source` and still holds any credentials typed by the user; show
    :attr:`HistorySource.address`.

    Raises
    ------
    UsageError
        As :func:`open_source`.
    """
    parsed = parse_address(address)
    if parsed.run is not None:
        return address.strip().rstrip("/").rpartition("/")[0], parsed.run
    split = getattr(_factory(address), "split_run", None)
    return cast("tuple[str, str | None]", split(address)) if split is not None else (address, None)


def known_schemes() -> tuple[str, ...]:
    """Return every scheme that can be opened, plugins included, sorted."""
    return tuple(sorted({*SOURCES, *(point.name for point in entry_points(group=GROUP))}))


def _factory(address: str) -> Callable[[str], Any]:
    scheme = parse_address(address).scheme
    target = SOURCES.get(scheme)
    if target is None:
        return _plugin(scheme, address)
    module, _, attribute = target.partition(":")
    return cast("Callable[[str], Any]", getattr(import_module(module), attribute))


def _plugin(scheme: str, address: str) -> Callable[[str], Any]:
    points = [point for point in entry_points(group=GROUP) if point.name.lower() == scheme]
    if not points:
        raise UsageError(f"nothing here opens {scheme}: addresses", where=redacted(address), hint=meant_hint(address))
    if len({point.value for point in points}) > 1:
        claims = " and ".join(sorted(_claim(point) for point in points))
        raise UsageError(f"two plugins open {scheme}: addresses: {claims}", where=redacted(address), hint="remove one")
    try:
        return cast("Callable[[str], Any]", points[0].load())
    except (ImportError, AttributeError) as error:
        raise MissingExtraError(
            f"the plugin for {scheme}: addresses cannot be loaded: {error}", where=_claim(points[0])
        ) from error


def _claim(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name if point.dist is not None else 'an unnamed distribution'}"

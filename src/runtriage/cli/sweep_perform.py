"""What ``runtriage sweep`` does between reading its settings and telling what came of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from typing import TYPE_CHECKING

from runtriage.cli import door
from runtriage.cli.console import note
from runtriage.cli.sweep_ask import Ask, Swept
from runtriage.cli.sweep_where import executor
from runtriage.cli.sweep_work import Work
from runtriage.errors import UsageError
from runtriage.outputs.plan import PANEL
from runtriage.settings import Settings
from runtriage.settings.schema import MARK_KINDS
from runtriage.sweep.journal import Journal, open_journal, open_spool
from runtriage.sweep.state import InUseError, held, identity, name_of, state_folder
from runtriage.sweep.unchanged import Basis, basis_of
from runtriage.trackers.base import HistorySource

if TYPE_CHECKING:
    from runtriage.cli.sweep_alerts import Alerts
    from runtriage.sweep.write import Writer


def perform(
    ask: Ask, settings: Settings, *, shield: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Swept:
    """Sweep; return what came of it.

    Parameters
    ----------
    ask, settings
        What to do.
    shield
        Entered while one run is marked or somebody told, which should not be broken off.
    """
    baselines = door.read_baselines(ask.baselines)
    kinds = frozenset(settings.sweep.write)
    kinds = frozenset(MARK_KINDS) if "all" in kinds else kinds
    with ExitStack() as stack:
        alerts = _alerts(ask, settings) if settings.sweep.rules else None
        source = stack.enter_context(door.opened(ask.source))
        analysis = stack.enter_context(closing(executor(ask.source, settings)))
        writer = _writer(source, kinds, dry=ask.dry_run, shield=shield) if kinds else None
        if writes(ask, settings):
            hold(stack, "sweep", source.address)
        files = writer is not None and writer.without_files is None
        basis = basis_of(door.params(settings), baselines, kinds, files=files)
        journal = _journal(ask, source.address, basis)
        work = Work(
            ask=ask, settings=settings, baselines=baselines, basis=basis, writer=writer, journal=journal,
            alerts=alerts, shield=shield,
        )
        try:
            return work.through(source, analysis)
        except BaseException:
            journal.close(complete=False)
            raise


def _alerts(ask: Ask, settings: Settings) -> Alerts:
    from runtriage.cli.sweep_alerts import alerts_of

    if settings.sweep.executor.startswith("dask"):  # or rules would be replayed on nothing, without a word
        hint = "use `runtriage rules notify`, or another executor"
        raise UsageError("rules are replayed where runs are read, not on a cluster", where="--rules", hint=hint)
    return alerts_of(ask, settings)


def _journal(ask: Ask, address: str, basis: Basis) -> Journal:
    """Return the journal of a sweep that is asked for in just this way.

    Raises
    ------
    InUseError
        Another process is doing it, and this one was to go on with it.
    UsageError
        It cannot be gone on with, since the folder for state cannot be used.
    """
    asked = (ask.since, ask.limit, ask.only, ask.dry_run, ask.html is not None)
    facts = {"started_after": door.moment(ask.since), "source": address}
    try:
        path = state_folder() / "journals" / f"{name_of(identity(address), basis.digest, asked)}.jsonl"
        journal = open_journal(path, facts, resume=ask.resume)
    except InUseError as error:
        if ask.resume:
            raise InUseError(error.message, where=address, hint=error.hint) from None
        return open_spool(facts)
    except OSError as error:
        if ask.resume:
            what = f"the folder for state cannot be used: {error.strerror}"
            raise UsageError(what, where=str(state_folder())) from None
        return open_spool(facts)
    if ask.resume and not journal.resumed:
        note("runtriage: no sweep was cut short that was asked for like this; every run is read")
    return journal


def writes(ask: Ask, settings: Settings) -> bool:
    """Tell whether a sweep leaves anything at its source: marks, or what people were told."""
    return bool(settings.sweep.write or settings.sweep.rules) and not ask.dry_run


def hold(stack: ExitStack, kind: str, address: str) -> None:
    """Keep other processes of a kind (``sweep``, ``watch``) away from a source until the stack is left.

    Raises
    ------
    InUseError
        There is one.
    """
    try:
        stack.enter_context(held(kind, address, f"runtriage {kind}"))
    except OSError as error:
        note(f"runtriage: others are not kept away from this source: {state_folder()}: {error.strerror}")


def _writer(
    source: HistorySource, kinds: frozenset[str], *, dry: bool, shield: Callable[[], AbstractContextManager[None]]
) -> Writer:
    from runtriage.sweep.write import Writer

    target = door.markable(source)
    against = getattr(source, "files_note", None) if PANEL in kinds else None
    without_files = against() if against is not None else None
    return Writer(target=target, what=kinds, dry=dry, without_files=without_files, shield=shield)

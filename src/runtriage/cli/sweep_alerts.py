"""``runtriage sweep --rules``: alert rules on the runs that a sweep reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from runtriage.cli import door
from runtriage.cli.rules import note_expired, read_rules
from runtriage.cli.rules_notify import URLS_VARIABLE
from runtriage.cli.sweep_ask import Ask
from runtriage.errors import UsageError
from runtriage.model.history import RunInfo
from runtriage.model.rule import AlertRule
from runtriage.notify.send import Sender
from runtriage.pipeline import Params
from runtriage.settings import Settings
from runtriage.sweep.alerts import OnTheRun, Summary
from runtriage.sweep.journal import Journal
from runtriage.sweep.listen import Listener
from runtriage.sweep.run import read_all
from runtriage.trackers.base import HistorySource, MarkTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """Rules to replay in a sweep, and who is told; nobody in a dry run."""

    rules: Sequence[AlertRule]
    params: Params
    sender: Sender | None

    def listening(self, reading: HistorySource, source: HistorySource) -> Listener:
        """Return the source to read through.

        Raises
        ------
        UsageError
            Nothing can be remembered on its runs.
        """
        if not isinstance(source, MarkTarget):
            hint = "use `runtriage rules notify --state FILE`"
            raise UsageError("this source cannot hold what was told", where=source.address, hint=hint)
        return Listener(reading, self.rules, self.params, OnTheRun(source))

    def catch_up(self, listener: Listener, infos: Sequence[RunInfo], readers: int) -> None:
        """Read runs that are judged already for what is new on them, as far as there can be anything new."""
        for read in read_all(listener, [info for info in infos if listener.is_due(info)], readers=readers):
            if read.history is None:
                listener.summary.failures.append(f"{read.info.id}: {read.failure}")

    def told(self, listener: Listener, journal: Journal) -> Summary:
        """Tell what is new, with the verdicts of the journal."""
        return listener.tell(lambda ids: {e.report.run.id: e.report for e in journal.entries(ids)}, self.sender)


def alerts_of(ask: Ask, settings: Settings) -> Alerts:
    """Return what a sweep is to do about rules.

    Raises
    ------
    UsageError
        Nobody to tell, an address that is none, or rules that cannot be read.
    """
    whole = read_rules(settings.sweep.rules)
    note_expired(whole)
    urls = [*settings.sweep.notify, *os.environ.get(URLS_VARIABLE, "").split()]
    if not urls and not ask.dry_run:
        hint = f"give --notify URL, a setting or {URLS_VARIABLE}, or --dry-run to see what would be sent"
        raise UsageError("nobody to tell", where="--notify", hint=hint)
    sender = Sender(urls) if not ask.dry_run else None
    return Alerts(rules=whole.rules, params=door.params(settings), sender=sender)

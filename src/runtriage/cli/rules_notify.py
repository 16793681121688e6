"""``runtriage rules notify``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runtriage.cli import door
from runtriage.cli.console import clean, note, out
from runtriage.cli.rules import note_expired, read_rules
from runtriage.cli.tell import PARTLY
from runtriage.errors import UsageError
from runtriage.model.texts import text
from runtriage.model.vocab import Lang
from runtriage.notify.message import Message
from runtriage.notify.send import Sender
from runtriage.sweep.alerts import InAFile, Memory, OnTheRun, tell
from runtriage.sweep.select import Selection, choose
from runtriage.trackers.base import HistorySource, MarkTarget

URLS_VARIABLE = "RUNTRIAGE_NOTIFY_URLS"


def run(
    path: str, address: str, *, to: Sequence[str], state: str | None, dry: bool, since: str | None, limit: int | None,
    flags: Mapping[str, Any],
) -> int:
    """Tell what is new about the rules of a source, and return the exit code.

    Raises
    ------
    UsageError
        No address is given, or nowhere to remember what was told.
    """
    whole = read_rules(path)
    note_expired(whole)
    rules = whole.rules
    settings = door.settings(flags).settings
    urls = [*to, *os.environ.get(URLS_VARIABLE, "").split()]
    if not urls and not dry:
        hint = f"give --to URL or {URLS_VARIABLE}, or --dry-run to see what would be sent"
        raise UsageError("nobody to tell", where="--to", hint=hint)
    sender = Sender(urls) if not dry else None
    with door.opened(address) as source, door.cached(source, settings) as reading:
        chosen = choose(source.list_runs(), Selection(since=door.moment(since), limit=limit))
        done = tell(
            reading, chosen, rules, params=door.params(settings), memory=_memory(source, state), sender=sender,
            readers=settings.sweep.readers,
        )
    for message in done.sent:
        show(message, whole=dry)
    for failure in done.failures:
        note(clean(failure, 400))
    verb = "would be sent" if dry else "sent"
    ended = text("tally.ended", Lang.EN) if not done.looked_at and chosen else ""
    out(f"{len(done.sent)} messages {verb}, {done.looked_at} of {len(chosen)} runs looked at{ended}")
    return PARTLY if done.failures else 0


def _memory(source: HistorySource, state: str | None) -> Memory:
    if state is not None:
        door.check_writable(state)
        return InAFile(Path(state))
    if isinstance(source, MarkTarget):
        return OnTheRun(source)
    raise UsageError(
        "this source cannot hold what was told", where=source.address, hint="give --state FILE to remember it in"
    )


def show(message: Message, *, whole: bool, say: Callable[[str], None] = out) -> None:
    """Print a message: its title, or all of it."""
    say(f"[{message.severity}] {clean(message.title)}")
    if whole:
        for line in message.body.splitlines():
            say(f"  {clean(line, 400)}")
        say("")

"""``runtriage watch``: sweep after sweep by the clock, for those who have no scheduler."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from runtriage.cli import door
from runtriage.cli.console import clean, note, out
from runtriage.cli.stop import Stop, Stopped, stoppable
from runtriage.cli.sweep import settled
from runtriage.cli.sweep_ask import Ask
from runtriage.cli.sweep_files import write_files
from runtriage.cli.sweep_perform import hold, perform, writes
from runtriage.cli.sweep_tell import tell
from runtriage.errors import RuntriageError, UsageError
from runtriage.model.report import Report
from runtriage.model.vocab import Level
from runtriage.settings import Settings
from runtriage.sweep.schedule import next_due
from runtriage.sweep.state import InUseError

_QUIET = frozenset({Level.HEALTHY, Level.WITHHELD})


def run(ask: Ask, flags: Mapping[str, Any], every: str) -> int:
    """Sweep again and again until a signal comes; return the exit code.

    Raises
    ------
    UsageError
        Something in what is asked for makes no sense, or another process watches this source.
    """
    seconds = door.span(every, "--every")
    if flags.get("sweep.fail_on"):
        hint = "use `runtriage sweep`, or tell people with --rules and --notify"
        raise UsageError("a watch does not end with a verdict", where="--fail-on", hint=hint)
    settings = settled(ask, flags)
    if settings is None:
        return 0
    with suppress(Stopped), stoppable() as stop, ExitStack() as stack:
        if writes(ask, settings):
            with door.opened(ask.source) as source:
                hold(stack, "watch", source.address)
        _Rounds(ask=ask, settings=settings, stop=stop).keep_on(seconds)
    note("runtriage: stopped")
    return 0


@dataclass(slots=True, kw_only=True, eq=False)
class _Rounds:
    """Sweeps of one source, one after the other."""

    ask: Ask
    settings: Settings
    stop: Stop
    count: int = 0
    verdicts: dict[str, Level] = field(default_factory=dict)

    def keep_on(self, every: float) -> None:
        """Begin a round at every beat of the clock."""
        start = time.monotonic()
        while True:
            began = time.monotonic()
            self.count += 1
            say = note if self.ask.takes_stdout else out
            say(f"{_now()} round {self.count}")
            self._round()
            sys.stdout.flush()
            self.stop.check()
            now = time.monotonic()
            due = next_due(start, every, now)
            if (missed := round((due - began) / every) - 1) > 0:
                note(f"runtriage: the round took {now - began:.0f} s: {missed} that were due meanwhile are left out")
            time.sleep(due - now)

    def _round(self) -> None:
        """Sweep once. A round that fails is told, except that the first one tells whether the command makes sense."""
        try:
            with perform(self._asked(), self.settings, shield=self.stop.shield) as swept:
                write_files(swept, self.ask, self.settings.report.lang)
                tell(swept, self.ask, self.settings, shows=self._is_news)
                self.verdicts = {entry.report.run.id: entry.report.verdict for entry in swept.entries()}
        except RuntriageError as error:
            if self.count == 1 and error.exit_code == 2 and not isinstance(error, InUseError):
                raise
            self._failed(str(error))
        except Exception as error:  # the job boundary: one round never ends the watch
            if os.environ.get("RUNTRIAGE_DEBUG"):
                raise
            self._failed(f"unexpected {type(error).__name__}: {error}")

    def _asked(self) -> Ask:
        """Return what to do: only the first round can go on with a sweep that was cut short."""
        return self.ask if self.count == 1 else replace(self.ask, resume=False)

    def _is_news(self, report: Report) -> bool:
        """Tell whether a run is shown: its verdict has changed, to or from one that people should see."""
        before = self.verdicts.get(report.run.id, Level.HEALTHY)
        return before != report.verdict and not {before, report.verdict} <= _QUIET

    def _failed(self, why: str) -> None:
        note(f"runtriage: round {self.count} failed, the next one is made all the same: {clean(why, 300)}")


def _now() -> str:
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")

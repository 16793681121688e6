"""``runtriage sweep``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtriage.cli import door
from runtriage.cli.console import note, out
from runtriage.cli.sweep_ask import Ask
from runtriage.cli.sweep_files import write_files
from runtriage.cli.sweep_perform import perform
from runtriage.cli.sweep_tell import tell
from runtriage.errors import UsageError
from runtriage.settings import Settings


def run(ask: Ask, flags: Mapping[str, Any]) -> int:
    """Sweep and return the exit code.

    Raises
    ------
    UsageError
        As :func:`settled`, or marks on a source that cannot carry them.
    SourceError
        The source cannot be used at all.
    """
    settings = settled(ask, flags)
    if settings is None:
        return 0
    with perform(ask, settings) as swept:
        write_files(swept, ask, settings.report.lang)
        code = tell(swept, ask, settings)
        if swept.journal.is_lasting and (swept.tally.failed or swept.tally.unwritten):
            note("runtriage: the same command with --resume reads what failed, and the runs that it is compared with")
        return code


def settled(ask: Ask, flags: Mapping[str, Any]) -> Settings | None:
    """Return the settings of sweeps, once it is clear that what is asked for makes sense; None if they were shown.

    Raises
    ------
    UsageError
        A dry run of nothing, somebody to tell and nothing to tell of, or a file that cannot be written.
    """
    loaded = door.settings(flags)
    if ask.show_settings:
        for line in loaded.lines():
            out(line)
        return None
    chosen = loaded.settings.sweep
    door.check_writable(ask.json, ask.html, ask.digest)
    if ask.json == ask.digest == "-":
        raise UsageError("two files cannot both go to stdout", where="--digest", hint="give one of them a FILE")
    if ask.dry_run and not chosen.write and not chosen.rules:
        raise UsageError("there is nothing to plan", where="--dry-run", hint="say what to write, as in --write all")
    if flags.get("sweep.notify") and not chosen.rules:
        raise UsageError("there is nothing to tell of", where="--notify", hint="say by which rules, as in --rules FILE")
    return loaded.settings

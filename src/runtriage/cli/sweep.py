"""``runtriage sweep``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtriage.cli import door
from runtriage.cli.console import out
from runtriage.cli.sweep_ask import Ask
from runtriage.cli.sweep_files import write_files
from runtriage.cli.sweep_perform import perform
from runtriage.cli.sweep_tell import tell
from runtriage.errors import UsageError


def run(ask: Ask, flags: Mapping[str, Any]) -> int:
    """Sweep and return the exit code.

    Raises
    ------
    UsageError
        A dry run of nothing, a file that cannot be written, or marks on a source that cannot carry them.
    SourceError
        The source cannot be used at all.
    """
    loaded = door.settings(flags)
    if ask.show_settings:
        for line in loaded.lines():
            out(line)
        return 0
    door.check_writable(ask.json, ask.html, ask.digest)
    if ask.json == ask.digest == "-":
        raise UsageError("two files cannot both go to stdout", where="--digest", hint="give one of them a FILE")
    if ask.dry_run and not loaded.settings.sweep.write and ask.rules is None:
        raise UsageError("there is nothing to plan", where="--dry-run", hint="say what to write, as in --write all")
    with perform(ask, loaded.settings) as swept:
        write_files(swept, ask)
        return tell(swept, ask, loaded.settings)

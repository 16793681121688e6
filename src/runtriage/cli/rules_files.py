"""``runtriage rules plan``, ``apply`` and ``prune`` for targets that are files: only files of ours are ever changed."""

from __future__ import annotations

from pathlib import Path

from runtriage.cli import door
from runtriage.cli.console import clean, note, out
from runtriage.cli.rules import read_rules
from runtriage.cli.rules_targets import Compiled, FileTarget
from runtriage.errors import UsageError


def plan(path: str, folder: str, target: FileTarget) -> Compiled:
    """Return file name to content for what differs from what is there.

    Raises
    ------
    UsageError
        A file of another origin stands where ours would go.
    """
    found = {name: _present(Path(folder) / name, target) for name in target.names}
    present = {name: content for name, content in found.items() if content is not None}
    whole = target.compile(read_rules(path), present)
    changed = {name: content for name, content in whole.files.items() if present.get(name) != content}
    return Compiled(files=changed, notes=whole.notes)


def run_plan(path: str, folder: str, target: FileTarget) -> int:
    """Print what ``apply`` would write, and return the exit code."""
    changes = plan(path, folder, target)
    _tell(changes)
    for name in changes.files:
        out(f"would {'change' if (Path(folder) / name).exists() else 'make'} {Path(folder) / name}")
    if not changes.files:
        out("nothing to do")
    return 0


def run_apply(path: str, folder: str, target: FileTarget) -> int:
    """Write what differs, and return the exit code.

    Raises
    ------
    UsageError
        The folder cannot be written to, or holds a foreign file of the same name.
    """
    changes = plan(path, folder, target)
    _tell(changes)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder cannot be made: {error.strerror}", where=folder) from None
    for name, content in changes.files.items():
        door.write_file(str(Path(folder) / name), content)
        out(f"wrote {Path(folder) / name}")
    out(target.hint if changes.files else "nothing to do")
    return 0


def run_prune(folder: str, target: FileTarget, *, dry: bool) -> int:
    """Remove our files from a folder, and return the exit code; where the target must be told first, tell it."""
    ours = {name: Path(folder) / name for name in target.names if _is_ours(Path(folder) / name, target)}
    last = target.farewell({name: file.read_bytes() for name, file in ours.items()})
    for name, file in ours.items():
        if name in last:
            out(f"{'would change' if dry else 'changed'} {file}: it now has its rules deleted")
            out("once the target has read it, prune again to remove the file")
            if not dry:
                door.write_file(str(file), last[name])
            continue
        out(f"{'would remove' if dry else 'removed'} {file}")
        if not dry:
            file.unlink()
    if not ours:
        out("nothing to do")
    return 0


def _tell(changes: Compiled) -> None:
    for text in changes.notes:
        note(clean(text, 400))


def _present(file: Path, target: FileTarget) -> bytes | None:
    if not file.exists() and not file.is_symlink():
        return None
    if not _is_ours(file, target):
        hint = "give another folder, or move the file"
        raise UsageError("a file that runtriage did not write is in the way", where=str(file), hint=hint)
    return file.read_bytes()


def _is_ours(file: Path, target: FileTarget) -> bool:
    try:
        return file.is_file() and not file.is_symlink() and file.read_bytes().startswith(target.mark.encode())
    except OSError:
        return False

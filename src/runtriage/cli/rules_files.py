"""``runtriage rules plan``, ``apply`` and ``prune`` for targets that are files: only files of ours are ever changed."""

from __future__ import annotations

from pathlib import Path

from runtriage.cli import door
from runtriage.cli.console import out
from runtriage.cli.rules import read_rules
from runtriage.errors import UsageError
from runtriage.outputs.prometheus_rules import FILES, MARK, render_prometheus


def plan(path: str, folder: str, *, target: str) -> dict[str, bytes]:
    """Return file name to content for what differs from what is there.

    Raises
    ------
    UsageError
        A file of another origin stands where ours would go.
    """
    wanted = {name: content.encode() for name, content in render_prometheus(read_rules(path), target).items()}
    return {name: content for name, content in wanted.items() if _present(Path(folder) / name) != content}


def run_plan(path: str, folder: str, *, target: str) -> int:
    """Print what ``apply`` would write, and return the exit code."""
    changes = plan(path, folder, target=target)
    for name in changes:
        out(f"would {'change' if (Path(folder) / name).exists() else 'make'} {Path(folder) / name}")
    if not changes:
        out("nothing to do")
    return 0


def run_apply(path: str, folder: str, *, target: str) -> int:
    """Write what differs, and return the exit code.

    Raises
    ------
    UsageError
        The folder cannot be written to, or holds a foreign file of the same name.
    """
    changes = plan(path, folder, target=target)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder cannot be made: {error.strerror}", where=folder) from None
    for name, content in changes.items():
        door.write_file(str(Path(folder) / name), content)
        out(f"wrote {Path(folder) / name}")
    out("nothing to do" if not changes else "check them with: promtool test rules runtriage_rules_test.yml")
    return 0


def run_prune(folder: str, *, dry: bool) -> int:
    """Remove our files from a folder, and return the exit code."""
    ours = [Path(folder) / name for name in FILES if _is_ours(Path(folder) / name)]
    for file in ours:
        out(f"{'would remove' if dry else 'removed'} {file}")
        if not dry:
            file.unlink()
    if not ours:
        out("nothing to do")
    return 0


def _present(file: Path) -> bytes | None:
    if not file.exists() and not file.is_symlink():
        return None
    if not _is_ours(file):
        hint = "give another folder, or move the file"
        raise UsageError("a file that runtriage did not write is in the way", where=str(file), hint=hint)
    return file.read_bytes()


def _is_ours(file: Path) -> bool:
    try:
        return file.is_file() and not file.is_symlink() and file.read_bytes().startswith(MARK.encode())
    except OSError:
        return False

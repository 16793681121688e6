"""What must not be in any file of the repository, and how long a file may be."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK = "requirements/dev.txt"

PLACES = ("root", "home", "work", "opt", "Users")
REGISTRIES = ("pypi", "pythonhosted", "npmjs", "anaconda", "artifactory", "nexus", "devpi")
FORBIDDEN = {
    "a machine's path": r"(?<![\w.])/(?:" + "|".join(PLACES) + r")/[\w.]+",
    "a registry's host": r"(?i)\b(?:" + "|".join(REGISTRIES) + r")\.(?:org|com|net|io|[a-z0-9.-]+/simple)",
    "an index option": r"(?m)^\s*--(?:(?:extra-)?index-url|trusted-host|find-links)",
    "a key": r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|wandb_v1_[A-Za-z0-9]{20,}|xox[bp]-[A-Za-z0-9-]{20,})\b",
    "a private key": "-----BEGIN " + r"(?:[A-Z]+ )?PRIVATE KEY",
}

LONGEST = 300
LONGER = {
    # module -> (lines allowed, why it is one piece)
    "src/runtriage/analysis/segment.py": (380, "the search and its cost share their recurrences"),
    "src/runtriage/analysis/significance.py": (340, "one test and the null tables it reads"),
}


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files that are committed or about to be."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git work tree: what belongs to the repository cannot be told")
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


def texts() -> Iterator[tuple[str, str]]:
    """Yield name and content of every text file."""
    for path in tracked():
        raw = path.read_bytes()
        if b"\0" not in raw[:4096]:
            yield path.relative_to(ROOT).as_posix(), raw.decode("utf-8", "replace")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    """Nothing in the repository names this machine, its package registry, or a secret."""
    pattern = re.compile(FORBIDDEN[what])
    found = [f"{name}: {hit.group()}" for name, text in texts() for hit in pattern.finditer(text)]
    assert not found


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a machine's path", "x = '/" + "root/secret'"),
        ("a machine's path", "cd /" + "work/main"),
        ("a registry's host", "https://pypi." + "org/simple"),
        ("an index option", "--index-" + "url x"),
        ("a key", "AKIA" + "A" * 16),
        ("a private key", "-----BEGIN RSA " + "PRIVATE KEY-----"),
    ],
)
def test_the_search_finds_it(what: str, text: str) -> None:
    """Each pattern finds an example of what it looks for."""
    assert re.search(FORBIDDEN[what], text)


def test_modules_are_short() -> None:
    """A module has at most 300 lines, or a named reason."""
    found = {
        name: lines
        for name, text in texts()
        if name.startswith(("src/", "tests/")) and name.endswith(".py")
        if (lines := len(text.splitlines())) > LONGER.get(name, (LONGEST, ""))[0]
    }
    assert not found


def test_reasons_for_length_are_still_needed() -> None:
    """No exception outlives its module's length."""
    sizes = {name: len(text.splitlines()) for name, text in texts() if name in LONGER}
    assert not {name for name in LONGER if sizes.get(name, 0) <= LONGEST}


def test_no_room_is_a_lumber_room() -> None:
    """No module is called after the fact that it is useful."""
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "handler"}
    assert not [name for name, _ in texts() if name.endswith(".py") and Path(name).stem in vague]


def test_the_lock_pins_every_package_with_hashes() -> None:
    """Each requirement of the lock has one exact version and at least one hash."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / LOCK).read_text(encoding="utf-8"))
    blocks = re.findall(r"(?m)^([A-Za-z0-9._-]+)(==\S+)?(.*(?:\n[ \t]+.*)*)", text)
    assert len(blocks) > 50
    assert not [name for name, pin, rest in blocks if not pin or "--hash=sha256:" not in rest]

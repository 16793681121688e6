"""What the help pages cost: the command line loads nothing that computes before a command runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("jinja2", "mlflow", "numpy", "pandas", "plotext", "pyarrow", "requests", "scipy", "wandb", "yaml")
COMMANDS = ((), ("sweep",), ("check",), ("learn",), ("marks",), ("doctor",), ("demo",), ("rules",), ("serve",))

PROGRAM = f"""
import sys
from runtriage.cli.app import main
try:
    main(sys.argv[1:])
finally:
    print("LOADED", *sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a new interpreter; the last line of stderr names the heavy modules that it loaded."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words) or "runtriage")
def test_help_loads_nothing_heavy(command: tuple[str, ...]) -> None:
    """Help is shown without numpy, scipy or any vendor's client."""
    done = run(*command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "LOADED"


def test_a_wrong_option_loads_nothing_heavy() -> None:
    """Usage errors are answered as fast as help."""
    done = run("sweep", "--no-such-option")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "LOADED")


def test_the_front_door_imports_nothing() -> None:
    """`import runtriage` loads the package and no other module of it."""
    code = "import sys, runtriage; print(*sorted(m for m in sys.modules if m.startswith('runtriage.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not done.stdout.strip()

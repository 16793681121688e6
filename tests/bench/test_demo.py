"""How long a new user waits for a first look."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]
MOST_SECONDS = 90.0


def test_the_demo_takes_less_than_90_seconds() -> None:
    """Nobody waits longer, the start of a server included."""
    begin = time.monotonic()
    subprocess.run([sys.executable, "-m", "runtriage", "demo"], capture_output=True, check=True, timeout=600)
    assert time.monotonic() - begin < MOST_SECONDS

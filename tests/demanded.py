"""Programs that tests need: a person may lack them, the CI may not."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def absent(why: str) -> NoReturn:
    """Skip a test whose program is not there; in the CI, fail."""
    if os.environ.get("CI"):
        pytest.fail(f"the CI must have it: {why}")
    pytest.skip(why)

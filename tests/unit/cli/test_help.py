"""What the help of commands says."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from runtriage.cli.app import app
from runtriage.registry import SOURCES


@pytest.mark.parametrize("scheme", sorted(SOURCES))
def test_help_of_sweep_names_every_scheme(scheme: str) -> None:
    """Whoever asks how to name a source sees each form there is."""
    assert f"{scheme}:" in CliRunner().invoke(app, ["sweep", "--help"]).output

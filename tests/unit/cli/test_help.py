"""What the help of commands says."""

from __future__ import annotations

import pytest
import typer.main
from typer.testing import CliRunner

from runtriage.cli.app import app
from runtriage.registry import SOURCES


@pytest.mark.parametrize("scheme", sorted(SOURCES))
def test_help_of_sweep_names_every_scheme(scheme: str) -> None:
    """Whoever asks how to name a source sees each form there is."""
    assert f"{scheme}:" in CliRunner().invoke(app, ["sweep", "--help"]).output


def test_watch_takes_the_options_of_sweep() -> None:
    """What one of them learns the other knows; only the period is its own."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    sweep, watch = ({one.name for one in commands[name].params} for name in ("sweep", "watch"))
    assert watch - sweep == {"every"}
    assert not sweep - watch


def test_watch_does_not_offer_what_it_refuses() -> None:
    """A watch does not end with a verdict; `sweep` may."""
    offered = {name: "--fail-on <" in CliRunner().invoke(app, [name, "--help"]).output for name in ("sweep", "watch")}
    assert offered == {"sweep": True, "watch": False}

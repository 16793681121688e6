"""What README.md promises exists."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer.main

from runtriage import errors
from runtriage.cli.app import app
from runtriage.model.refs import parse_address
from runtriage.settings import load

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the code blocks of one language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", README)


LINES = [line.lstrip("$ ") for text in blocks("sh") + blocks("console") for line in text.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("runtriage ")]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line: str) -> None:
    """Each command line is one that the program takes, with an address of a known form."""
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    while (inner := getattr(command, "commands", {}).get(words[0])) is not None:
        command, words = inner, words[1:]
    context = command.make_context("runtriage", words)
    address = context.params.get("source") or context.params.get("run_address")
    if address is None:  # compiling rules looks at no run
        assert context.params["rules"]
    else:
        assert parse_address(address).scheme


def test_there_are_commands_to_check() -> None:
    """The pattern that finds commands still finds them."""
    assert len(COMMANDS) > 8


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([a-z-]+)", README))))
def test_make_targets_exist(target: str) -> None:
    """Each `make` command that is named is a target with a description."""
    assert re.search(rf"(?m)^{target}:.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"))


def test_exit_codes_of_the_errors_are_listed() -> None:
    """The table of exit codes has a row for every code that an error carries."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.RuntriageError)}
    assert {int(code) for code in re.findall(r"(?m)^\| (\d) \|", README)} == codes | {0, 1}


@pytest.mark.parametrize("text", blocks("toml"))
def test_settings_are_valid(text: str) -> None:
    """The example of a settings file loads as it stands."""
    Path("runtriage.toml").write_text(text, encoding="utf-8")
    assert load(Path.cwd(), {}, {}).settings.sweep.fail_on == tomllib.loads(text)["sweep"]["fail_on"]


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|requirements|tests)/[\w./-]+)`", README))))
def test_paths_exist(path: str) -> None:
    """Each file that is named is there."""
    assert (ROOT / path).exists()

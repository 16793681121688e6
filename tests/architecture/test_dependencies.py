"""What is imported is declared, what is declared is imported, and the lists agree."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MODULE_OF = {"pyyaml": "yaml", "mlflow-skinny": "mlflow", "psycopg": "psycopg", "wandb-workspaces": "wandb_workspaces"}
COMES_WITH = {"urllib3": "requests", "click": "typer"}  # part of the other's public interface
# Extras whose rooms are not built yet.
DECLARED_FOR_LATER = {"wandb", "wandb_workspaces"}
RUN_NOT_IMPORTED = {"mlflow", "psycopg"}  # the demo starts one as a program; SQLAlchemy loads the other by its name


def bare(requirement: str) -> str:
    """Return the normalised name of a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return found.group().lower().replace("_", "-")


def modules(requirements: list[str]) -> set[str]:
    """Return the modules that requirements install."""
    return {MODULE_OF.get(name, name) for name in map(bare, requirements)}


def imported(folder: Path) -> dict[str, set[str]]:
    """Return every outside module that the code under `folder` imports, with the files that do."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for name in names:
                found.setdefault(name.split(".")[0], set()).add(path.relative_to(folder).as_posix())
    return {name: files for name, files in found.items() if name not in sys.stdlib_module_names and name != "runtriage"}


RUNTIME = PROJECT["project"]["dependencies"]
EXTRAS = {key: value for key, value in PROJECT["project"]["optional-dependencies"].items() if key != "all"}


def test_every_import_is_declared() -> None:
    """The package imports nothing that its metadata does not name."""
    allowed = modules(RUNTIME) | modules([line for lines in EXTRAS.values() for line in lines])
    found = {COMES_WITH.get(name, name): files for name, files in imported(ROOT / "src/runtriage").items()}
    assert not {name: files for name, files in found.items() if name not in allowed}


@pytest.mark.parametrize("requirement", RUNTIME, ids=bare)
def test_every_requirement_is_used(requirement: str) -> None:
    """Nothing is installed with the package that it does not import."""
    assert modules([requirement]) <= set(imported(ROOT / "src/runtriage"))


def test_extras_are_used_or_named_as_coming() -> None:
    """An extra without code behind it is on the list of what comes later."""
    wanted = modules([line for lines in EXTRAS.values() for line in lines])
    assert wanted - set(imported(ROOT / "src/runtriage")) <= DECLARED_FOR_LATER | RUN_NOT_IMPORTED


def test_all_is_all() -> None:
    """The extra `all` names every other extra."""
    (line,) = PROJECT["project"]["optional-dependencies"]["all"]
    assert set(line.partition("[")[2].rstrip("]").split(",")) == set(EXTRAS)


def test_the_lock_starts_from_what_is_declared() -> None:
    """requirements/dev.in holds the package's requirements and every group, word for word."""
    lines = (ROOT / "requirements/dev.in").read_text(encoding="utf-8").splitlines()
    wanted = [line for lines in PROJECT["dependency-groups"].values() for line in lines] + RUNTIME
    assert {line for line in lines if line and not line.startswith("#")} == set(wanted)


def test_the_version_is_said_once() -> None:
    """The distribution takes its version from the package."""
    text = (ROOT / "src/runtriage/__init__.py").read_text(encoding="utf-8")
    assert re.findall(r'(?m)^__version__ = "([^"]+)"', text) == [PROJECT["project"]["version"]]

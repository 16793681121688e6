"""Every public function says what it takes and gives; every test says which fact it states."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CORE = sorted((ROOT / "src/runtriage/analysis").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


def name_of(path: Path) -> str:
    """Return a path as it is known in the repository."""
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module and the methods of its classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from (item for item in inside if isinstance(item, ast.FunctionDef))


@pytest.mark.parametrize("path", CORE, ids=name_of)
def test_public_functions_of_the_core_have_numpydoc_docstrings(path: Path) -> None:
    """A public function of the analysis has a docstring, and one with arguments to explain has a section for them."""
    bare = []
    for function in functions(path):
        text = ast.get_docstring(function) or ""
        arguments = [a.arg for a in function.args.args + function.args.kwonlyargs if a.arg not in {"self", "cls"}]
        sections = ("Parameters\n", "Returns\n", "Raises\n", "Notes\n", "Examples\n")
        explained = any(section in text for section in sections) or (text and len(arguments) <= 2)
        if not function.name.startswith("_") and not explained:
            bare.append(f"{function.name}:{function.lineno}")
    assert not bare


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_every_test_states_its_fact(path: Path) -> None:
    """A test has a docstring and something that can fail."""
    mute = [f.name for f in functions(path) if f.name.startswith("test_") and not ast.get_docstring(f)]
    assert not mute


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_no_assertion_hides_in_an_except_block(path: Path) -> None:
    """An assertion inside `except` passes when nothing is raised."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    assert not [n.lineno for handler in handlers for n in ast.walk(handler) if isinstance(n, ast.Assert)]

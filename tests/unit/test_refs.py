"""Addresses: what is read, what is shown, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtriage.errors import UsageError
from runtriage.model.refs import FORMS, parse_address, redacted
from runtriage.testing.strategies import names


@pytest.mark.parametrize(
    ("text", "canonical", "run"),
    [
        ("files:runs/", "files:runs", None),
        ("files:/", "files:/", None),
        ("FILES:x", "files:x", None),
        ("mlflow://host:5000/exp", "mlflow://host:5000/exp", None),
        ("mlflow://host/exp/r1", "mlflow://host/exp", "r1"),
        ("mlflow+https://[::1]:5000/e", "mlflow+https://[::1]:5000/e", None),
        ("mlflow://host/a%2Fb/r1", "mlflow://host/a%2Fb", "r1"),
        ("mlflow:exp/r1", "mlflow:exp", "r1"),
        ("mlflow-sql:sqlite:///a b/m.db#exp/r1", "mlflow-sql:sqlite:///a b/m.db#exp", "r1"),
        ("mlflow-sql:sqlite:///at@home/m.db#a%2Fb%23", "mlflow-sql:sqlite:///at@home/m.db#a%2Fb%23", None),
        ("mlflow-sql:postgresql://h/db?sslmode=require&x=1#e", "mlflow-sql:postgresql://h/db?sslmode=require#e", None),
        ("wandb://team/proj/r1", "wandb://team/proj", "r1"),
    ],
)
def test_forms(text: str, canonical: str, run: str | None) -> None:
    """Every form has one canonical text, and its run apart."""
    found = parse_address(text)
    assert (found.canonical, found.run) == (canonical, run)


@pytest.mark.parametrize(
    "text",
    [
        *("", "runs", "files:", "mlflow://host", "mlflow:///e", "mlflow://h/e/r/x", "wandb://team", "mlflow://h:x/e"),
        *("mlflow-sql:m.db#e", "mlflow-sql:sqlite:///m.db", "mlflow-sql:sqlite:///m.db#", "mlflow-sql:sqlite:///m#e/r/x"),
    ],
)
def test_refused(text: str) -> None:
    """What is no address, or half of one, is refused with the list of forms."""
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert FORMS[0] in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        *("mlflow://me:secret@host/e", "wandb://me:secret@team/p", "plugin://me:secret@host/e"),
        *("mlflow-sql:postgresql://me:a/secret@h/d#e", "mlflow-sql:postgresql+psycopg://h/d?user=me&password=secret#e"),
    ],
)
def test_secrets_are_never_shown(text: str) -> None:
    """User and password are neither in the canonical text nor in the repr."""
    found = parse_address(text)
    assert "secret" not in found.canonical + repr(found) + redacted(text)


def test_secrets_are_kept_for_the_client() -> None:
    """User and password of a server are there for who connects."""
    assert parse_address("mlflow://me:s%40cret@host/e").credentials == ("me", "s@cret")


def test_secrets_are_not_in_errors() -> None:
    """A refused address is shown without its password."""
    with pytest.raises(UsageError) as caught:
        parse_address("mlflow://me:secret@host/a/b/c/d")
    assert "secret" not in str(caught.value)


@given(names().filter(str.strip), names())
def test_canonical_text_reads_back(experiment: str, run: str) -> None:
    """An address of any experiment and run survives being written and read."""
    address = parse_address("mlflow://h/" + _quoted(experiment) + "/" + _quoted(run))
    again = parse_address(address.with_run)
    assert (again.parts, again.run) == ((experiment,), run)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    """No text makes anything but an address or a typed error."""
    try:
        found = parse_address(text).canonical
    except UsageError:
        found = ""
    assert isinstance(found, str)


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())

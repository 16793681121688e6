"""From an address and MLflow's environment variables to a server, an experiment and credentials."""

from __future__ import annotations

import pytest

from runtriage.errors import UsageError
from runtriage.trackers.mlflow.access import access_to

URI = "MLFLOW_TRACKING_URI"


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("mlflow://host/e", "http://host:5000"),
        ("mlflow://host:80/e", "http://host:80"),
        ("mlflow://[::1]/e", "http://[::1]:5000"),
        ("mlflow://[::1]:81/e", "http://[::1]:81"),
        ("mlflow+https://host/e", "https://host"),
        ("mlflow+https://host:8443/e/run", "https://host:8443"),
    ],
)
def test_the_server_of_an_address(address: str, base: str) -> None:
    """Without a port, plain HTTP means MLflow's own port, and https its usual one."""
    assert access_to(address, {URI: "http://elsewhere"}).base == base


@pytest.mark.parametrize(
    ("uri", "base", "address"),
    [
        ("http://host:5000", "http://host:5000", "mlflow://host:5000/e"),
        ("http://host/", "http://host", "mlflow://host:80/e"),
        ("https://me:pw@host", "https://host", "mlflow+https://host/e"),
        ("https://host/below/it/", "https://host/below/it", "mlflow:e"),
    ],
)
def test_the_server_of_the_environment(uri: str, base: str, address: str) -> None:
    """``mlflow:`` asks MLFLOW_TRACKING_URI, and goes by an address that opens the same server."""
    access = access_to("mlflow:e", {URI: uri})
    assert (access.base, access.address) == (base, address)


@pytest.mark.parametrize("variable", ["MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"])
def test_the_experiment_of_the_environment(variable: str) -> None:
    """``mlflow:`` alone takes the experiment from MLflow's own variables."""
    assert access_to("mlflow:", {URI: "http://h", variable: "x y"}).experiment == "x y"


@pytest.mark.parametrize(
    ("address", "environ", "why"),
    [
        ("mlflow:e", {}, "MLFLOW_TRACKING_URI is not set"),
        ("mlflow:", {URI: "http://h"}, "names no experiment"),
        ("mlflow:e", {URI: "sqlite:///mlflow.db"}, "not the address of a tracking server"),
        ("mlflow:e", {URI: "databricks"}, "not the address of a tracking server"),
        ("mlflow:e", {URI: "http://h:port"}, "not the address of a tracking server"),
        ("mlflow://h", {}, "names no experiment"),
        ("mlflow:///e", {}, "names no server"),
    ],
)
def test_what_is_missing_is_said(address: str, environ: dict[str, str], why: str) -> None:
    """An address or environment that does not lead to an experiment is one clear sentence."""
    with pytest.raises(UsageError, match=why):
        access_to(address, environ)


@pytest.mark.parametrize(
    ("address", "environ", "basic", "token"),
    [
        ("mlflow://h/e", {}, None, None),
        ("mlflow://u:p%40@h/e", {}, ("u", "p@"), None),
        ("mlflow://h/e", {"MLFLOW_TRACKING_TOKEN": "t"}, None, "t"),
        ("mlflow://h/e", {"MLFLOW_TRACKING_USERNAME": "u"}, None, None),
        (
            "mlflow://h/e",
            {"MLFLOW_TRACKING_USERNAME": "u", "MLFLOW_TRACKING_PASSWORD": "p", "MLFLOW_TRACKING_TOKEN": "t"},
            ("u", "p"),
            None,
        ),
        ("mlflow://a:b@h/e", {"MLFLOW_TRACKING_USERNAME": "u", "MLFLOW_TRACKING_PASSWORD": "p"}, ("a", "b"), None),
        ("mlflow:e", {URI: "http://u:p@h", "MLFLOW_TRACKING_TOKEN": "t"}, ("u", "p"), None),
    ],
)
def test_which_credentials_win(
    address: str, environ: dict[str, str], basic: tuple[str, str] | None, token: str | None
) -> None:
    """Those of the address, then user and password, then the token."""
    access = access_to(address, environ)
    assert (access.basic, access.token) == (basic, token)


@pytest.mark.parametrize("address", ["mlflow://u:hunter2@h/e", "mlflow:e"])
def test_credentials_are_not_shown(address: str) -> None:
    """Neither the repr nor the addresses hold a password."""
    access = access_to(address, {URI: "http://u:hunter2@h"})
    assert not [text for text in (repr(access), access.base, access.address) if "hunter2" in text]


def test_a_bad_uri_is_shown_without_its_password() -> None:
    """An error about MLFLOW_TRACKING_URI does not quote the credentials in it."""
    with pytest.raises(UsageError) as caught:
        access_to("mlflow:e", {URI: "ftp://u:hunter2@h"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "verify"),
    [
        ({}, True),
        ({"MLFLOW_TRACKING_INSECURE_TLS": "true"}, False),
        ({"MLFLOW_TRACKING_SERVER_CERT_PATH": "ca.pem"}, "ca.pem"),
    ],
)
def test_how_certificates_are_checked(environ: dict[str, str], verify: bool | str) -> None:  # noqa: FBT001
    """MLflow's variables say whether, and against what."""
    assert access_to("mlflow+https://h/e", environ).verify == verify

"""The tests' own walls: what a test cannot reach, whoever runs it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from pytest_socket import SocketConnectBlockedError

SOMEWHERE = "192.0.2.1"  # reserved for documentation: nobody answers there


def test_other_hosts_cannot_be_reached() -> None:
    """A connection beyond loopback fails at once and says so."""
    with socket.socket() as plug, pytest.raises(SocketConnectBlockedError, match="192"):
        plug.connect((SOMEWHERE, 80))


def test_a_server_on_loopback_can_be_reached() -> None:
    """Stand-in servers work."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, timeout=5) as plug:
            assert plug.getpeername() == address


def test_the_environment_names_no_tracker_or_proxy() -> None:
    """Addresses and keys of the person who runs the tests are gone."""
    alien = {name for name in os.environ if name.startswith(("MLFLOW_", "WANDB_", "RUNTRIAGE_", "AWS_"))}
    proxies = {name for name in os.environ if name.upper().endswith("_PROXY")}
    # WANDB_SERVICE is set by the client itself for its own process, in tests that use the real one
    assert alien | proxies <= {"MLFLOW_DISABLE_TELEMETRY", "WANDB_MODE", "WANDB_SERVICE"}


def test_home_and_working_folder_are_empty() -> None:
    """No settings file of anyone is found by accident."""
    assert not list(Path.home().iterdir())
    assert not list(Path.cwd().iterdir())

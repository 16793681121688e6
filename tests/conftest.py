"""What holds for every test: no network, no home, no tracker of the person who runs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
CORPORA_VARIABLE = "RUNTRIAGE_CORPORA"
_CORPORA = os.environ.get(CORPORA_VARIABLE, "../shared")  # read before a test's environment is emptied
ALIEN_PREFIXES = ("MLFLOW_", "WANDB_", "RUNTRIAGE_", "DATABRICKS_", "AWS_", "AZURE_", "GOOGLE_")
ALIEN_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC", "FORCE_COLOR", "NO_COLOR", "COLUMNS")

# No deadline anywhere: on two shared cores it measures the neighbours. `ci` draws the same examples each time.
settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True, print_blob=True)
settings.register_profile("dev", deadline=None, max_examples=25)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=1000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_report_header() -> list[str]:
    """Name the versions that decide what is tested."""
    names = ("numpy", "scipy", "pyarrow", "msgspec", "mlflow", "wandb")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return [f"with {versions}", f"hypothesis profile {settings.get_current_profile_name()}"]


@pytest.fixture(scope="session", autouse=True)
def _clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Empty the environment of trackers, proxies and credentials, for the servers of a whole session too."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith(ALIEN_PREFIXES) or name.upper() in ALIEN_NAMES:
                patch.delenv(name)
        _move_home(patch, tmp_path_factory.mktemp("home"))
        # wandb and mlflow must neither phone home nor wait for a network that is not there.
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("DO_NOT_TRACK", "true")
        patch.setenv("WANDB_MODE", "offline")
        yield


@pytest.fixture(autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty home and an empty working folder."""
    _move_home(monkeypatch, tmp_path_factory.mktemp("home"))
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))


def _move_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        patch.setenv(name, str(home))


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """Return the folder that holds pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Return the folder of labelled runs, or skip: it is larger than this repository and lives beside it."""
    folder = (ROOT / _CORPORA).resolve()
    if not (folder / "data").is_dir():
        pytest.skip(f"no labelled runs at {_CORPORA}: set {CORPORA_VARIABLE} to the folder that holds data/")
    return folder


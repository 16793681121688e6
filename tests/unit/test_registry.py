"""The table of sources: what opens what, without importing what is not asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from runtriage.errors import MissingExtraError, UsageError
from runtriage.registry import SOURCES, known_schemes, open_source, split_run

PLUGIN = """
class Source:
    def __init__(self, address):
        self.address = address
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install distributions for one test: ``NAME/entry_points.txt`` below the folder returned."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "some_plugin_module.py").write_text(PLUGIN)
    return tmp_path


def distribution(root: Path, name: str, points: str) -> None:
    """Write the metadata of an installed distribution."""
    info = root / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[runtriage.sources]\n{points}\n")


@pytest.mark.parametrize("scheme", sorted(SOURCES))
def test_every_entry_exists(scheme: str) -> None:
    """Every string of the table names something that can be called."""
    module, _, attribute = SOURCES[scheme].partition(":")
    assert callable(getattr(import_module(module), attribute))


def test_unknown_scheme_lists_the_known() -> None:
    """An unknown scheme is refused with the supported forms."""
    with pytest.raises(UsageError) as caught:
        open_source("nope:x")
    assert "files:DIR" in caught.value.hint


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("http://127.0.0.1:5000", "mlflow://127.0.0.1:5000/EXPERIMENT"),
        ("https://me:pw@ml.example/#/experiments/1", "mlflow+https://ml.example/EXPERIMENT"),
        ("./runs", "files:./runs"),
    ],
)
def test_what_people_paste_is_understood_in_the_hint(address: str, meant: str) -> None:
    """The address of MLflow's page and a bare folder are refused with the form that was probably meant."""
    with pytest.raises(UsageError) as caught:
        open_source(address)
    assert meant in caught.value.hint
    assert "pw" not in f"{caught.value} {caught.value.hint}"


def test_plugin_opens_its_scheme(install: Path) -> None:
    """A scheme of an installed plugin is opened by the plugin."""
    distribution(install, "one", "myruns = some_plugin_module:Source")
    assert open_source("myruns:x").address == "myruns:x"


def test_plugin_is_known(install: Path) -> None:
    """Schemes of plugins are listed."""
    distribution(install, "one", "myruns = some_plugin_module:Source")
    assert "myruns" in known_schemes()


def test_plugin_cannot_take_over(install: Path, tmp_path: Path) -> None:
    """A plugin that claims a scheme of ours is not asked."""
    distribution(install, "one", "files = some_plugin_module:Source")
    assert type(open_source(f"files:{tmp_path}")).__module__ == "runtriage.trackers.files"


def test_two_claims_are_refused(install: Path) -> None:
    """Two plugins for one scheme are named and refused."""
    distribution(install, "one", "myruns = some_plugin_module:Source")
    distribution(install, "two", "myruns = other_module:Source")
    with pytest.raises(UsageError, match="other_module:Source of two and some_plugin_module:Source of one"):
        open_source("myruns:x")


def test_broken_plugin_is_named(install: Path) -> None:
    """A plugin that cannot be imported is a typed error that names it."""
    distribution(install, "one", "myruns = no_such_module:Source")
    with pytest.raises(MissingExtraError, match="one"):
        open_source("myruns:x")


def test_server_address_is_split() -> None:
    """The run of a server address is cut off."""
    assert split_run("mlflow://h/e/r1") == ("mlflow://h/e", "r1")


def test_registry_imports_no_source() -> None:
    """Knowing the table costs none of the libraries behind it."""
    code = "import sys, runtriage.registry; print(sorted({'numpy', 'pyarrow', 'requests'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"

"""The floors of the house hold, and each contract would notice if they did not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# Contract -> (module that misbehaves, what it imports). Several rows for one contract guard its separate clauses.
PLANTED = [
    ("floors", "errors.py", "from runtriage.model import vocab"),
    ("floors", "model/vocab.py", "from runtriage.analysis import robust"),
    ("floors", "registry.py", "from runtriage.trackers import base"),
    ("floors", "analysis/robust.py", "from runtriage import pipeline"),
    ("floors", "pipeline.py", "from runtriage.trackers import base"),
    ("floors", "pipeline.py", "from runtriage.sweep import job"),
    ("floors", "analysis/robust.py", "from runtriage.settings import schema"),
    ("floors", "outputs/__init__.py", "from runtriage.trackers import base"),
    ("floors", "sweep/outcome.py", "from runtriage.cli import app"),
    ("floors", "brand_new_room.py", ""),
    ("shore", "trackers/base.py", "from runtriage.analysis import robust"),
    ("shore", "outputs/__init__.py", "from runtriage.settings import schema"),
    ("pure", "analysis/robust.py", "import os"),
    ("pure", "analysis/robust.py", "import logging"),
    ("pure", "analysis/judge.py", "def now():\n    import time\n    return time.time()"),
    ("pure", "model/report.py", "from pathlib import Path"),
    ("pure", "pipeline.py", "import random"),
    ("pure", "outputs/__init__.py", "import socket"),
    ("timeless", "pipeline.py", "import datetime"),
    ("light", "model/history.py", "import numpy as np"),
    ("light", "errors.py", "import requests"),
    ("light", "cli/app.py", "import rich.table"),
    ("vendors", "cli/console.py", "import wandb"),
    ("vendors", "trackers/mlflow/wire.py", "import requests"),
    ("vendors", "trackers/mlflow_sql/source.py", "import sqlalchemy"),
    ("vendors", "sweep/job.py", "from mlflow.tracking import MlflowClient"),
    ("kit", "sweep/job.py", "from runtriage import testing"),
    ("blind-detectors", "analysis/detectors/spike.py", "from runtriage.analysis.detectors import resume"),
    ("blind-trackers", "trackers/wandb/__init__.py", "from runtriage.trackers.mlflow import wire"),
]


def lint_imports(source: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """Check the package under `source` against the contracts of this repository."""
    command = [
        sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()",
        str(ROOT / "pyproject.toml"), "--cache-dir", str(cache),
    ]
    # PYTHONPATH stands before the editable install, so that the copy is what is looked at.
    return subprocess.run(
        command, env={"PYTHONPATH": str(source), "PATH": "", "COLUMNS": "200"}, cwd=source,
        capture_output=True, text=True, timeout=120, check=False,
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder where the import graph of unchanged modules is remembered."""
    return tmp_path_factory.mktemp("graph")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return the parent folder of a copy of the package's code."""
    data = shutil.ignore_patterns("__pycache__", "runs")
    shutil.copytree(ROOT / "src/runtriage", tmp_path / "runtriage", ignore=data)
    return tmp_path


def test_every_contract_holds(cache: Path) -> None:
    """The package as it stands keeps all its contracts."""
    done = lint_imports(ROOT / "src", cache)
    assert done.returncode == 0, done.stdout + done.stderr


IDS = [f"{contract}-{module}-{number}" for number, (contract, module, _) in enumerate(PLANTED)]


@pytest.mark.parametrize(("contract", "module", "line"), PLANTED, ids=IDS)
def test_a_planted_import_breaks_its_contract(
    contract: str, module: str, line: str, copied: Path, cache: Path
) -> None:
    """Each contract notices the import that it forbids."""
    path = copied / "runtriage" / module
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(f"{before}\n{line}\n", encoding="utf-8")
    done = lint_imports(copied, cache)
    broken = [text for text in done.stdout.splitlines() if " BROKEN" in text]
    assert done.returncode == 1
    assert any(text.startswith(names()[contract]) for text in broken), done.stdout + done.stderr


def test_every_contract_has_a_planted_violation() -> None:
    """A contract without a negative control could be empty."""
    assert set(names()) == {contract for contract, _, _ in PLANTED}


def names() -> dict[str, str]:
    """Return the title of each contract by its id."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return {entry["id"]: entry["name"] for entry in tools["importlinter"]["contracts"]}

"""Offline runs written by the real W&B client keep the contract."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from runtriage.registry import open_source
from runtriage.testing.contracts import MissingSourceContract, SourceContract
from runtriage.trackers.base import HistorySource

# In a process of its own: the client leaves threads and a server behind that outlive the run.
WRITER = """
import sys
import wandb
from runtriage.testing.contracts import sample
for run in sample():
    made = wandb.init(project="p", dir=sys.argv[1], id=run.info.id, name=run.info.name, config=dict(run.info.config))
    steps = sorted({int(s) for track in run.tracks.values() for s in track.step})
    for step in steps:
        row = {n: float(v) for n, t in run.tracks.items() for s, v in zip(t.step, t.value) if s == step}
        made.log(row, step=step)
    made.finish()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of offline runs; nothing changes it."""
    root = tmp_path_factory.mktemp("wandb")
    subprocess.run([sys.executable, "-c", WRITER, str(root)], check=True, capture_output=True, timeout=120)
    return root


@pytest.mark.integration
class TestWandbLocal(SourceContract, MissingSourceContract):
    keeps_order = False  # the client drops steps that go back before anyone can write them

    @pytest.fixture
    def source(self, folder: Path) -> HistorySource:
        return open_source(f"wandb-local:{folder}")

    @pytest.fixture
    def missing(self, tmp_path: Path) -> HistorySource:
        return open_source(f"wandb-local:{tmp_path / 'absent'}")

    def test_hard_values_survive(self, source: HistorySource) -> None:
        """Infinities, huge and tiny numbers arrive as logged; of two values of one step W&B keeps the last."""
        found = source.read(self.info(source, "hard")).tracks["train/loss"]
        assert found.step.tolist() == [0, 1, 3, 7, 2**40]
        assert found.value.tolist() == [1.5, math.inf, 1e300, -math.inf, 5e-324]

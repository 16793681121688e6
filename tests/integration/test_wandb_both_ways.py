"""One run of the real client, read from the server it logged to and from the files it left on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("wandb")

from wandb_server import StandIn

from runtriage.model.history import RunHistory
from runtriage.pipeline import fingerprint
from runtriage.registry import open_source
from runtriage.sweep.select import group
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
CONFIG: dict[str, Any] = {
    "lr": 1e-3, "steps": 100_000, "whole": 1.0, "flag": True, "nothing": None, "text": "adamw", "sizes": (1, 2.0),
    "model": {"layers": 12, "inner": {"act": "gelu", "rate": 0.1}}, "a.b": 3, "value": {"value": 1, "desc": None},
    "odd": {"value": 7}, "seed": 1, "big": 2**60, "ü": "é",
}  # fmt: skip

TRAINING = f"""
import math, wandb
run = wandb.init(entity="team", project="p", id="both", config={CONFIG!r})
for value in (1.0, math.nan, 3.5):
    run.log({{"loss": value, "group": {{"inner": 2}}}})
run.config.update({{"late": 1e-5}})
run.config.update({{"steps": 3}}, allow_val_change=True)
run.finish()
"""  # a process of its own: the client writes the end of its file when it ends


@pytest.fixture
def both(server: StandIn, source: WandbSource, tmp_path: Path) -> tuple[RunHistory, RunHistory]:
    """Log a run whose config is changed once while it runs; return it as the server and as the disk has it."""
    environ = {name: value for name, value in os.environ.items() if not name.endswith("WANDB_SERVICE")}
    subprocess.run([sys.executable, "-c", TRAINING], cwd=tmp_path, env={**environ, "WANDB_DIR": "."}, check=True)
    local = open_source(f"wandb-local:{tmp_path}")
    (info,) = local.list_runs()
    return source.read(source.find_run("both")), local.read(info)


def test_same_config(both: tuple[RunHistory, RunHistory]) -> None:
    """The configs are equal, without what the client keeps there for itself."""
    live, disk = both
    assert live.info.config == disk.info.config
    assert (set(live.info.config), live.info.config["steps"]) == ({*CONFIG, "late"}, 3)


def test_same_cohort(both: tuple[RunHistory, RunHistory]) -> None:
    """Both have one fingerprint, so a sweep compares them with each other."""
    live, disk = both
    assert fingerprint(live.info.config) == fingerprint(disk.info.config) != ""
    assert len(group([live.info, disk.info])) == 1


def test_same_curves(both: tuple[RunHistory, RunHistory]) -> None:
    """Names, steps and values are the same."""
    live, disk = both
    assert set(live.tracks) == set(disk.tracks) == {"loss", "group.inner"}
    for name, track in live.tracks.items():
        np.testing.assert_array_equal(track.step, disk.tracks[name].step)
        np.testing.assert_array_equal(track.value, disk.tracks[name].value)

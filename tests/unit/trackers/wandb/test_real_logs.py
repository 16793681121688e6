"""Public ``.wandb`` files of many client versions, two of them cut off by a kill."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from runtriage.registry import open_source
from runtriage.trackers.base import HistorySource

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def real(corpora: Path) -> HistorySource:
    """Return the real files."""
    return open_source(f"wandb-local:{corpora / 'data' / 'real'}")


def test_every_real_file_reads(real: HistorySource) -> None:
    """All 15 public files, of eight client versions, have curves."""
    assert [bool(real.read(info).tracks) for info in real.list_runs()] == [True] * 15


def test_broken_real_files_say_so(real: HistorySource) -> None:
    """The two that were cut off are the ones with notes."""
    assert {info.id for info in real.list_runs() if real.read(info).notes} == {"rqje5t40", "argq0i8h"}


@pytest.mark.parametrize(("metric", "column"), [("train/loss", "loss"), ("train/grad_norm", "grad_norm")])
@pytest.mark.parametrize("run_id", ["xl12wixt", "co8g63ut", "tlb4sybk"])
def test_real_files_equal_their_tables(
    real: HistorySource, corpora: Path, run_id: str, metric: str, column: str
) -> None:
    """The log and the table that someone else made of it agree to the table's nine digits."""
    table = open_source(f"files:{corpora / 'data' / 'real'}")
    wanted = table.read(table.find_run(f"hf_{run_id}")).tracks[column]
    np.testing.assert_allclose(real.read(real.find_run(run_id)).tracks[metric].value, wanted.value, rtol=1e-8)

"""Folders of runs keep the contract, in each of their three formats."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from runtriage.model.history import RunHistory
from runtriage.registry import open_source
from runtriage.testing.contracts import MissingSourceContract, SourceContract, sample
from runtriage.trackers.base import HistorySource


def table_of(run: RunHistory) -> pa.Table:
    """Return one row a logged step of the first metric."""
    columns: dict[str, object] = {}
    for name, track in run.tracks.items():
        columns["step"] = pa.array(track.step)
        columns[name] = pa.array(track.value)
    return pa.table(columns)


def write_run(folder: Path, run: RunHistory, form: str) -> None:
    """Write a run as the folder format wants it."""
    folder.mkdir(parents=True)
    facts = {"id": run.info.id, "name": run.info.name, "state": run.info.state.value, "config": dict(run.info.config)}
    (folder / "run.json").write_text(json.dumps(facts))
    table = table_of(run)
    if not table.num_columns:
        return
    path = folder / f"history.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "csv":
        pacsv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


class TestFiles(SourceContract, MissingSourceContract):
    @pytest.fixture(params=["csv", "jsonl", "parquet"])
    def source(self, request: pytest.FixtureRequest, tmp_path: Path) -> HistorySource:
        for run in sample():
            write_run(tmp_path / run.info.id, run, request.param)
        return open_source(f"files:{tmp_path}")

    @pytest.fixture
    def missing(self, tmp_path: Path) -> HistorySource:
        return open_source(f"files:{tmp_path / 'absent'}")

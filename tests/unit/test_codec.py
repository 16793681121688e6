"""What the report codec refuses, and what it promises to readers in other languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtriage.codec import decode_report, encode_report, report_json_schema
from runtriage.errors import CodecError
from runtriage.model.report import BaselineUse, Finding, Report, RunSummary
from runtriage.model.vocab import BaselineKind, FindingKind, Level, RunState, Severity


def report() -> Report:
    """Return a small report with a number that is not finite."""
    finding = Finding(
        kind=FindingKind.NON_FINITE, metric="loss", role="loss", start_step=3, peak_step=3, severity=Severity.CRITICAL,
        z=float("inf"),
    )
    return Report(
        run=RunSummary(source="files:x", id="a", name="a", state=RunState.FINISHED), verdict=Level.BROKEN,
        reason="NaN.", baseline=BaselineUse(kind=BaselineKind.SELF), findings=(finding,),
    )


def changed(**values: Any) -> bytes:
    """Return a report line with top-level values replaced."""
    return json.dumps(json.loads(encode_report(report())) | values).encode()


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (b"", "$"),
        (b"[]", "$"),
        (b"\xff", "$"),
        (b"[" * 100_000, "$"),
        (b"{}", "$.schema"),
        (changed(schema="mlflow/1"), "$.schema"),
        (changed(verdict="fine"), "$.verdict"),
        (changed(run={"source": "x"}), "$.run"),
        (changed(p_false_alarm="nan"), "$.p_false_alarm"),
        (changed(phases=[{"name": "main", "start_step": "NaN", "end_step": 3}]), "$.phases[0].start_step"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(line: bytes, where: str) -> None:
    """A document that is no report raises the typed error with the place."""
    with pytest.raises(CodecError) as caught:
        decode_report(line)
    assert caught.value.where == where


def test_a_later_schema_version_is_refused_by_name() -> None:
    """A report of the future is not misread as one of today."""
    with pytest.raises(CodecError, match=r"runtriage\.report/2.*reads 'runtriage\.report/1'") as caught:
        decode_report(changed(schema="runtriage.report/2"))
    assert caught.value.hint


def test_unknown_keys_are_ignored() -> None:
    """A minor addition does not lock older readers out."""
    assert decode_report(changed(novelty=[1])) == report()


def test_numpy_scalars_are_numbers() -> None:
    """A number fresh from an array is written as the number it is."""
    finding = Finding(
        kind=FindingKind.PLATEAU, metric="loss", role="loss", start_step=np.int64(3), peak_step=3,
        severity=Severity.INFO, z=np.float64(1.5),
    )
    made = Report(
        run=report().run, verdict=Level.WATCH, reason="", baseline=report().baseline, findings=(finding,),
    )
    assert decode_report(encode_report(made)).findings[0].z == 1.5


def test_the_published_schema_is_up_to_date(repo_root: Path) -> None:
    """`examples/report.schema.json` says what the code does; regenerate it from `report_json_schema()`."""
    published = json.loads((repo_root / "examples/report.schema.json").read_text(encoding="utf-8"))
    assert published == report_json_schema()

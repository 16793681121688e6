"""What is said of failures."""

from __future__ import annotations

import pytest

from runtriage.cli.tell import tell_failures


def test_one_line_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that failed for the same reason share a line that names the first of them and counts the others."""
    tell_failures("failed", [("a", "no answer"), *((f"r{i}", "not tried") for i in range(7)), ("z", "no answer")])
    assert capsys.readouterr().err.splitlines() == [
        "runtriage: failed: a, z: no answer",
        "runtriage: failed: r0, r1, r2, r3, r4 and 2 more: not tried",
    ]


def test_many_reasons_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The lines behind the tenth are one."""
    tell_failures("failed", [(f"r{i}", f"why {i}") for i in range(12)])
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[-1]) == (11, "runtriage: failed: … and 2 more")

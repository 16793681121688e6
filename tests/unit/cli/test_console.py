"""What reaches a terminal, and how far a job is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtriage.cli import console


@given(st.text(max_size=300))
def test_cleaned_text_is_one_printable_line(text: str) -> None:
    """Whatever a name holds, what is shown has no control characters and fits."""
    shown = console.clean(text, 50)
    assert (shown.isprintable(), len(shown) <= 50) == (True, True)


@given(st.text(st.characters(categories=["L", "N"]), max_size=50))
def test_ordinary_names_are_shown_as_they_are(text: str) -> None:
    """Letters and digits of any script are left alone."""
    assert console.clean(text, 50) == text


def test_lines_tell_how_far_a_long_job_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no terminal, a line is written every tenth of the job."""
    with console.progress("reading", 300) as bar:
        list(bar.over(range(300)))
    lines = capsys.readouterr().err.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("reading: 30 of 300", "reading: 300 of 300", 10)


def test_a_short_job_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A job that is done at once needs no line."""
    with console.progress("reading", 9) as bar:
        list(bar.over(range(9)))
    assert capsys.readouterr().err == ""


def test_a_pipe_has_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    """Colours are for terminals."""
    console.out("x")
    assert (console.colours(), capsys.readouterr().out) == (False, "x\n")


def test_lines_tell_how_long_it_takes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in the middle of a long job says about how much is left, the last one does not."""
    now = 0.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    with console.progress("judging", 300) as bar:
        for _ in bar.over(range(300)):
            now += 1.0
    lines = capsys.readouterr().err.splitlines()
    assert (lines[4], lines[-1]) == ("judging: 150 of 300, about 2 min left", "judging: 300 of 300")

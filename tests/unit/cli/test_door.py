"""What commands share: moments, files, baselines."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runtriage.cli import door
from runtriage.errors import CodecError, SourceError, UsageError
from runtriage.trackers.files import FilesSource


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-11-30", datetime(2026, 11, 30, tzinfo=UTC)),
        ("2026-11-30T12:00", datetime(2026, 11, 30, 12, tzinfo=UTC)),
        ("2026-11-30T12:00+02:00", datetime(2026, 11, 30, 10, tzinfo=UTC)),
    ],
)
def test_dates_are_universal_time_unless_they_say_otherwise(text: str, when: datetime) -> None:
    """A date without a zone means UTC, wherever the command runs."""
    assert door.moment(text) == when.timestamp()


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)])
def test_an_age_counts_back_from_now(text: str, seconds: float) -> None:
    """Minutes, hours, days and weeks."""
    assert door.moment(text) == pytest.approx(time.time() - seconds, abs=5)


@pytest.mark.parametrize("text", ["yesterday", "", "7y", "-3d", "2026-13-01"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    """The error says how a moment is written."""
    with pytest.raises(UsageError, match="is no moment"):
        door.moment(text)


def test_no_moment_is_none() -> None:
    """An option that was not given stays so."""
    assert door.moment(None) is None


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    """What was there is replaced, and nothing is left beside it."""
    (tmp_path / "a").write_text("before")
    door.write_file(str(tmp_path / "a"), b"after")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"after")]


def test_a_pipe_can_be_written_to(tmp_path: Path) -> None:
    """A named pipe is not replaced by a file."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    door.write_file(str(tmp_path / "pipe"), b"words")
    assert os.read(reader, 10) == b"words"
    os.close(reader)


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    """It is refused before any work is done."""
    with pytest.raises(UsageError, match="cannot be written"):
        door.check_writable(str(tmp_path))


def test_a_file_of_something_else_is_no_baselines(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "x").write_bytes(b"{}")
    with pytest.raises(CodecError) as caught:
        door.read_baselines(str(tmp_path / "x"))
    assert str(tmp_path / "x") in caught.value.where


def test_marks_need_a_source_that_can_carry_them(tmp_path: Path) -> None:
    """A folder cannot be written to, and the error says where marks can hang."""
    with pytest.raises(UsageError, match="cannot be written to"):
        door.markable(FilesSource(f"files:{tmp_path}"))


def test_a_folder_that_is_missing_is_no_run_of_the_folder_around_it() -> None:
    """Where the working folder itself holds runs, a mistyped folder is still said to be missing."""
    Path("a").mkdir()
    Path("a/history.csv").write_text("step,loss\n0,1\n")
    with pytest.raises(SourceError, match="no such folder"), door.opened("files:nowhere") as source:
        list(source.list_runs())

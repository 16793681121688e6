"""The journal of a sweep: what it gives back, and what a killed process leaves of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runtriage.codec import encode_report
from runtriage.model.history import RunInfo
from runtriage.model.report import BaselineUse, Report, RunSummary
from runtriage.model.vocab import BaselineKind, Level, RunState
from runtriage.pipeline import Params
from runtriage.sweep.journal import Entry, Journal, not_done, open_journal, open_spool
from runtriage.sweep.state import InUseError
from runtriage.sweep.unchanged import Basis, basis_of

RUNS = [f"r{i}" for i in range(6)]


def report(run_id: str) -> Report:
    run = RunSummary(source="files:runs", id=run_id, name=f"name of\n{run_id}\u202e", state=RunState.FINISHED)
    return Report(run=run, verdict=Level.HEALTHY, reason="Fine.", baseline=BaselineUse(kind=BaselineKind.SELF))


def filled(path: Path, runs: list[str] = RUNS) -> None:
    """Leave a journal of these runs, as a process that was killed would."""
    journal = open_journal(path, {"started_after": 5.0}, resume=False)
    for run_id in runs:
        journal.add(run_id, Entry(report=report(run_id), made_of="m"))
    journal.close(complete=False)


def again(path: Path) -> Journal:
    return open_journal(path, {"started_after": 9.0}, resume=True)


def test_an_entry_comes_back_whole(tmp_path: Path) -> None:
    """Everything that is said of a run survives the journal, the report byte for byte."""
    given = Entry(
        report=report("a"), made_of="m", done=False, failure="f\n", write_failure="w", kept=True, plan=("set x",),
        pictures=("<svg/>", "é"),
    )
    journal = open_spool({})
    journal.add("a", given)
    found = journal.find("a")
    journal.close(complete=True)
    assert found is not None
    assert encode_report(found.report) == encode_report(given.report)
    names = ("made_of", "done", "failure", "write_failure", "kept", "plan", "pictures")
    assert all(getattr(found, name) == getattr(given, name) for name in names)


def test_entries_come_in_the_order_asked_for() -> None:
    """Of a run that was entered twice only the newest entry counts."""
    journal = open_spool({})
    for run_id, why in (("a", "old"), ("b", None), ("a", None)):
        journal.add(run_id, Entry(report=report(run_id), failure=why))
    found = [(entry.report.run.id, entry.failure) for entry in journal.entries(["b", "nobody", "a"])]
    journal.close(complete=True)
    assert found == [("b", None), ("a", None)]


def test_a_journal_is_gone_after_a_complete_sweep(tmp_path: Path) -> None:
    """Nothing is left behind when nothing is left to do."""
    filled(tmp_path / "j")
    again(tmp_path / "j").close(complete=True)
    assert not (tmp_path / "j").exists()


def test_what_is_not_resumed_is_begun_anew(tmp_path: Path) -> None:
    """Without --resume the journal of the sweep before is dropped."""
    filled(tmp_path / "j")
    journal = open_journal(tmp_path / "j", {}, resume=False)
    found = (journal.resumed, journal.find("r0"))
    journal.close(complete=True)
    assert found == (False, None)


def test_a_resumed_journal_keeps_its_facts(tmp_path: Path) -> None:
    """A moment that was relative when the sweep began stays what it was."""
    filled(tmp_path / "j")
    journal = again(tmp_path / "j")
    journal.close(complete=True)
    assert journal.head["started_after"] == 5.0


def test_every_torn_tail_costs_one_run_at_most(tmp_path: Path) -> None:
    """Wherever the file ends, all lines before are there, and what is added then is read back."""
    filled(tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(ends[-2], len(content) + 1, 7):
        path = tmp_path / "cut"
        path.write_bytes(content[:cut])
        journal = again(path)
        kept = [run_id for run_id in RUNS if journal.is_done(run_id, "m")]
        journal.add("new", Entry(report=report("new"), made_of="m"))
        journal.close(complete=False)
        after = again(path)
        assert kept == RUNS[: sum(end <= cut for end in ends) - 1]
        assert [entry.report.run.id for entry in after.entries([*RUNS, "new"])] == [*kept, "new"]
        after.close(complete=True)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'{"schema":"other/1"}\n', b"[]\n", b'{"schema":"runtriage.jou'])
def test_a_file_that_is_no_journal_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    """Whatever lies there, a sweep goes on without it."""
    (tmp_path / "j").write_bytes(content)
    journal = again(tmp_path / "j")
    journal.add("a", Entry(report=report("a")))
    found = (journal.resumed, journal.find("a") is not None)
    journal.close(complete=True)
    assert found == (False, True)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A journal that is being written is not written by a second sweep."""
    journal = open_journal(tmp_path / "j", {}, resume=False)
    with pytest.raises(InUseError, match=f"process {os.getpid()} on"):
        open_journal(tmp_path / "j", {}, resume=False)
    journal.close(complete=True)


def test_others_cannot_read_it(tmp_path: Path) -> None:
    """Names and reasons of runs are nobody else's business on a shared machine."""
    filled(tmp_path / "j")
    assert (tmp_path / "j").stat().st_mode & 0o077 == 0


def test_journals_that_nobody_went_on_with_are_removed(tmp_path: Path) -> None:
    """A journal a month old makes way when the next one is opened."""
    filled(tmp_path / "old.jsonl")
    os.utime(tmp_path / "old.jsonl", (0, time.time() - 40 * 86400))
    filled(tmp_path / "new.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["new.jsonl"]


def infos(*, cursor: str = "c", config: dict[str, int] | None = None) -> list[RunInfo]:
    made = {"lr": 1} if config is None else config
    return [RunInfo(source="files:runs", id=run_id, cursor=cursor, config=made) for run_id in RUNS]


def left(basis: Basis, done: list[RunInfo], now: list[RunInfo], *, failed: str = "") -> list[str]:
    """Return what is to be read again of a group of which all runs but one were done."""
    made_of = basis.for_journal([done])
    journal = open_spool({})
    for info in done:
        journal.add(info.id, Entry(report=report(info.id), made_of=made_of[info.id], done=info.id != failed))
    rest = not_done([now], journal, basis)
    journal.close(complete=True)
    return [info.id for group in rest for info in group]


BASIS = basis_of(Params(), None, frozenset(), files=False)
ALONE = Basis(digest="d", alone=True)


def test_what_is_done_is_not_read() -> None:
    """A group that is done and has not changed is left out."""
    assert left(BASIS, infos(), infos()) == []


def test_a_failed_run_has_its_siblings_read() -> None:
    """Siblings were judged without it: their verdicts are to be what they would have been."""
    assert left(BASIS, infos(), infos(), failed="r1") == RUNS


def test_runs_judged_alone_are_read_alone() -> None:
    """Against learned baselines, and without a config, only the failed run is read."""
    assert left(ALONE, infos(), infos(), failed="r1") == ["r1"]
    assert left(BASIS, infos(config={}), infos(config={}), failed="r1") == ["r1"]


def test_what_changed_meanwhile_is_read() -> None:
    """A run with another cursor, or a new sibling, makes the verdicts those of another time."""
    assert left(BASIS, infos(), infos(cursor="later")) == RUNS
    assert left(BASIS, infos()[1:], infos()) == RUNS

"""The reference tracker keeps the contracts."""

from __future__ import annotations

import pytest

from runtriage.errors import AccessRefusedError, MarkWriteError
from runtriage.model.history import RunInfo
from runtriage.model.marks import WritePlan
from runtriage.testing.contracts import MarkContract, SourceContract, sample
from runtriage.trackers.base import HistorySource, MarkTarget
from runtriage.trackers.memory import MemorySource


class TestMemorySource(SourceContract):
    @pytest.fixture
    def source(self) -> HistorySource:
        return MemorySource(sample())


class TestMemoryMarks(MarkContract):
    @pytest.fixture
    def target(self) -> MarkTarget:
        return MemorySource(sample())

    def set_foreign(self, target: MarkTarget, info: RunInfo) -> None:
        assert isinstance(target, MemorySource)
        target.set_tag(info.id, "owner", "alice")

    def test_a_plan_for_foreign_tags_is_refused(self, target: MemorySource) -> None:
        """A plan that touches what is not ours is an error, and nothing is written."""
        with pytest.raises(MarkWriteError, match="not ours"):
            target.apply(self.run(target), WritePlan(set_tags={"owner": "me"}))

    def test_read_only_rights_refuse_writing(self, target: MemorySource) -> None:
        """Without the right to write, applying is a typed error."""
        target.writable = False
        with pytest.raises(AccessRefusedError):
            target.apply(self.run(target), WritePlan(set_note="x"))

    def test_project_marks_are_apart_from_runs(self, target: MemorySource) -> None:
        """What hangs on the whole does not hang on a run."""
        target.apply_project(WritePlan(set_note="digest"))
        assert (target.read_project_marks().note, target.read_marks(self.run(target)).note) == ("digest", None)

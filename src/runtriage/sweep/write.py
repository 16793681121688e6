"""Writing back: look at the marks of a run just before, plan the difference, carry it out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import msgspec

from runtriage.errors import AccessRefusedError, RuntriageError
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.model.marks import Marks, WritePlan
from runtriage.outputs import tags
from runtriage.outputs.marks import run_tags, wanted_marks, wanted_project_marks
from runtriage.outputs.plan import PANEL, TAGS, VIEW, plan
from runtriage.sweep.breaker import Breaker
from runtriage.sweep.outcome import Outcome
from runtriage.sweep.unchanged import is_project_sealed, seal, seal_project
from runtriage.trackers.base import MarkTarget

_log = logging.getLogger(__name__)
_RUN_KINDS = frozenset({TAGS, PANEL})
_PROJECT_KINDS = frozenset({VIEW})


@dataclass(slots=True, kw_only=True)
class Writer:
    """Writes the marks of one sweep.

    Attributes
    ----------
    target
        Where the marks hang.
    what
        Kinds of marks: ``tags``, ``panel``, ``view``.
    dry
        Plan only.
    without_files
        Why the tracker cannot store files, or None; notes then go without a picture and a page.
    made_of
        Run id to the digest of what its verdict is made of, from :mod:`runtriage.sweep.unchanged`.
    shield
        Entered while one run, or the experiment, is marked, which should not be broken off.
    refused
        Why the credentials may not write, once they were refused; nothing more is tried then.
    breaker
        Says when nothing more is tried since the source fails for run after run.
    """

    target: MarkTarget
    what: frozenset[str]
    dry: bool = False
    without_files: str | None = None
    made_of: Mapping[str, str] = field(default_factory=dict)
    shield: Callable[[], AbstractContextManager[None]] = nullcontext
    refused: str | None = None
    breaker: Breaker = field(default_factory=Breaker)

    def run(self, info: RunInfo, outcome: Outcome) -> Outcome:
        """Return the outcome with what was written, or why it was not."""
        if self.refused is not None or outcome.failure is not None or not self.what & _RUN_KINDS:
            return outcome
        if (why := self.breaker.reason) is not None:
            return replace(outcome, write_failure=why)
        with self.shield():
            return self._run(info, outcome)

    def _run(self, info: RunInfo, outcome: Outcome) -> Outcome:
        try:
            change = self._plan_run(info, outcome.triage)
            if change and not self.dry:
                self._apply(info, change)
        except AccessRefusedError as error:
            self.refused = str(error)
            return outcome
        except RuntriageError as error:
            self.breaker.count(error)
            return replace(outcome, write_failure=str(error))
        except Exception as error:  # noqa: BLE001  the job boundary: one run never stops the others
            _log.debug("marking %s failed", info.id, exc_info=True)
            return replace(outcome, write_failure=f"unexpected {type(error).__name__} while writing: {error}")
        self.breaker.count()
        return replace(outcome, plan=change)

    def project(self, triages: Sequence[Triage], *, complete: bool = True) -> tuple[WritePlan | None, str | None]:
        """Write the marks of the experiment as a whole; return the plan and why it failed.

        Parameters
        ----------
        triages
            Of the runs of the experiment.
        complete
            Whether these are all of them; otherwise the next sweep writes these marks again.
        """
        if self.refused is not None or VIEW not in self.what:
            return None, None
        if (why := self.breaker.reason) is not None:
            return None, why
        wanted = wanted_project_marks(triages)
        if complete and self.made_of and wanted.tags:
            cursor = {tags.CURSOR: seal_project(self.made_of, wanted)}
            wanted = msgspec.structs.replace(wanted, tags={**wanted.tags, **cursor})
        with self.shield():
            return self._project(wanted)

    def is_project_unchanged(self) -> bool:
        """Tell whether the experiment is marked as the marks of its runs say, or is not to be marked."""
        if VIEW not in self.what:
            return True
        try:
            return is_project_sealed(self.made_of, self.target.read_project_marks())
        except RuntriageError:  # whoever writes these marks will meet it again, and tell
            return False

    def _project(self, wanted: Marks) -> tuple[WritePlan | None, str | None]:
        try:
            change = plan(wanted, self.target.read_project_marks(), what=_PROJECT_KINDS)
            if change and not self.dry:
                self.target.apply_project(change)
        except AccessRefusedError as error:
            self.refused = str(error)
            return None, None
        except RuntriageError as error:
            return None, str(error)
        return change, None

    def _apply(self, info: RunInfo, change: WritePlan) -> None:
        """Carry out a plan; where files are part of it, the cursor follows only once all the rest is written."""
        if not change.put_files or tags.CURSOR not in change.set_tags:
            self.target.apply(info, change)
            return
        first = {key: value for key, value in change.set_tags.items() if key != tags.CURSOR}
        self.target.apply(info, msgspec.structs.replace(change, set_tags=first))
        self.target.apply(info, WritePlan(set_tags={tags.CURSOR: change.set_tags[tags.CURSOR]}))

    def _plan_run(self, info: RunInfo, triage: Triage) -> WritePlan:
        what = self.what & _RUN_KINDS
        image = None
        if self.without_files is not None:
            triage = Triage(report=triage.report)  # no curves, no files
        elif PANEL in what and (panel_url := getattr(self.target, "panel_url", None)) is not None:
            image = panel_url(info)
        made_of = self.made_of.get(info.id, "")
        cursor = seal(made_of, run_tags(triage.report)) if made_of else ""
        wanted = wanted_marks(triage, what=what, panel_url=image, cursor=cursor)
        return plan(wanted, self.target.read_marks(info), what=what)

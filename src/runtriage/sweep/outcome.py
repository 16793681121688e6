"""What came of each run of a sweep, and of the sweep. Pure nouns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from runtriage import __version__
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.model.marks import WritePlan
from runtriage.model.phrase import phrase
from runtriage.model.report import BaselineUse, Report, RunSummary, Tool, stated
from runtriage.model.texts import say, term, text
from runtriage.model.vocab import BaselineKind, Lang, Level, at_least


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One run of a sweep.

    Attributes
    ----------
    triage
        What is said of it; withheld where it could not be read.
    failure
        Why it could not be read or analysed, or None.
    write_failure
        Why its marks could not be written, or None; the report is good all the same.
    plan
        The changes that were or, in a dry run, would be made; None if nothing was to be written.
    kept
        The run was not read again, since nothing has changed; the report is what its marks say of it, without findings.
    """

    triage: Triage
    failure: str | None = None
    write_failure: str | None = None
    plan: WritePlan | None = None
    kept: bool = False

    @property
    def report(self) -> Report:
        """The report."""
        return self.triage.report

    @property
    def changes(self) -> bool | None:
        """Whether marks were changed; None if nothing was to be written."""
        return None if self.plan is None else bool(self.plan)


class Counted(Protocol):
    """What is counted: an :class:`Outcome`, or what is kept of one."""

    @property
    def report(self) -> Report:
        """The report."""
        ...

    @property
    def failure(self) -> str | None:
        """Why nothing can be said."""
        ...

    @property
    def write_failure(self) -> str | None:
        """Why its marks could not be written."""
        ...

    @property
    def changes(self) -> bool | None:
        """Whether marks were changed; None if nothing was to be written."""
        ...

    @property
    def kept(self) -> bool:
        """Whether it was not read again."""
        ...


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts over a sweep, kept while its outcomes go by."""

    levels: Counter[Level] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)
    unwritten: list[tuple[str, str]] = field(default_factory=list)
    changed: int = 0
    unchanged: int = 0
    explained: int = 0
    kept: int = 0

    def add(self, outcome: Counted) -> None:
        """Count one outcome."""
        report = outcome.report
        self.kept += outcome.kept
        self.explained += any(finding.explained_by is not None for finding in report.findings)
        if outcome.failure is not None:
            self.failed.append((report.run.id, outcome.failure))
        else:
            self.levels[report.verdict] += 1
        if outcome.write_failure is not None:
            self.unwritten.append((report.run.id, outcome.write_failure))
        elif outcome.changes is not None:
            self.changed += outcome.changes
            self.unchanged += not outcome.changes

    @property
    def runs(self) -> int:
        """Runs looked at."""
        return self.levels.total() + len(self.failed)

    def worst_reaches(self, threshold: Level) -> bool:
        """Tell whether any verdict is at or above the threshold."""
        return any(at_least(level, threshold) for level in self.levels)

    def sentence(self, lang: Lang = Lang.EN) -> str:
        """Return the counts in one line."""
        order = (Level.BROKEN, Level.SUSPICIOUS, Level.WATCH, Level.HEALTHY, Level.WITHHELD)
        counts = [(term("level", level, lang), self.levels[level]) for level in order]
        counts.append((text("tally.failed", lang), len(self.failed)))
        parts = [say(phrase("word.tally", count=count, level=name), lang) for name, count in counts if count]
        told = say(phrase("tally.run" if self.runs == 1 else "tally.runs", count=self.runs), lang)
        if parts:
            told += text("word.colon", lang) + text("word.comma", lang).join(parts)
        for key, count in (("tally.explained", self.explained), ("tally.kept", self.kept)):
            told += say(phrase(key, count=count), lang) if count else ""
        return told


def not_read(info: RunInfo, why: str, lang: Lang = Lang.EN) -> Outcome:
    """Return the outcome of a run of which nothing can be said because reading or analysing it failed."""
    run = RunSummary(source=info.source, id=info.id, name=info.name or info.id, state=info.state, url=info.url)
    report = Report(
        run=run,
        verdict=Level.WITHHELD,
        reason=say(phrase("withheld.failed", why=why), lang),
        baseline=BaselineUse(kind=BaselineKind.NONE),
        missing=(why,),
        tool=Tool(version=__version__),
        lang=stated(lang),
    )
    return Outcome(triage=Triage(report=report), failure=why)

"""The nouns of ``runtriage sweep``: what was asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from runtriage.model.marks import WritePlan
from runtriage.model.vocab import RunState
from runtriage.sweep.journal import Entry, Journal
from runtriage.sweep.outcome import Tally

if TYPE_CHECKING:
    from runtriage.outputs.report.html import Shown
    from runtriage.sweep.alerts import Summary
    from runtriage.sweep.write import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What was asked for on the command line, besides settings."""

    source: str
    baselines: str | None = None
    dry_run: bool = False
    json: str | None = None
    html: str | None = None
    digest: str | None = None
    since: str | None = None
    limit: int | None = None
    only: RunState | None = None
    fresh: bool = False
    resume: bool = False
    show_settings: bool = False

    @property
    def needs_reports(self) -> bool:
        """Whether a file is asked for that holds what was found in every run."""
        return any(path is not None for path in (self.json, self.html, self.digest))

    @property
    def takes_stdout(self) -> bool:
        """Whether a file is written to stdout, which then holds nothing else."""
        return "-" in {self.json, self.digest}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """What came of a sweep, for the summary; leave its block to close the journal.

    Attributes
    ----------
    journal, runs
        The outcomes, and their order.
    tally
        Counts.
    writer
        What wrote marks, or None.
    alerts
        What was told of rules, or None without any.
    project, project_failure
        What was changed on the experiment as a whole, and why not.
    """

    journal: Journal
    runs: list[str]
    tally: Tally
    writer: Writer | None
    project: WritePlan | None = None
    project_failure: str | None = None
    alerts: Summary | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.journal.close(complete=self.is_complete and raised[0] is None)

    @property
    def is_complete(self) -> bool:
        """Whether everything that was asked for was done."""
        tally = self.tally
        refused = self.writer is not None and self.writer.refused is not None
        return not (tally.failed or tally.unwritten or self.project_failure is not None or refused)

    def entries(self) -> Iterator[Entry]:
        """Yield what came of each run, one at a time."""
        return self.journal.entries(self.runs)

    def shown(self, place: int) -> Shown:
        """Return what the page needs of the run at a place of the order."""
        from runtriage.outputs.report.html import Shown

        entry = next(self.journal.entries([self.runs[place]]))
        return Shown(report=entry.report, spark=entry.pictures[0], panel=entry.pictures[1])

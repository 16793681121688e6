"""``runtriage marks``: what we wrote to a tracker, and how it goes away again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from runtriage.cli import door
from runtriage.cli.console import clean, out, progress
from runtriage.cli.tell import PARTLY, plan_lines, tell_failures
from runtriage.errors import AccessRefusedError, RuntriageError
from runtriage.model.history import RunInfo
from runtriage.model.marks import Marks, WritePlan
from runtriage.outputs.plan import clear as clearing
from runtriage.sweep.breaker import Breaker
from runtriage.sweep.executors import ThreadExecutor
from runtriage.trackers.base import HistorySource, MarkTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The marks of a run, or why they could not be read or taken away."""

    info: RunInfo
    marks: Marks | None = None
    plan: WritePlan | None = None
    failure: str = ""


def show(address: str) -> int:
    """List our marks and return the exit code."""
    settings = door.settings({}).settings
    marked = 0
    failed: list[Found] = []
    with door.opened(address) as source:
        target = door.markable(source)
        with progress("looking", None) as bar:
            for found in bar.over(_all_found(source, target, settings.sweep.readers)):
                if found.marks is None:
                    failed.append(found)
                elif lines := marks_lines(found.marks):
                    marked += 1
                    out(f"{clean(found.info.name or found.info.id, 60)} ({clean(found.info.id, 40)})")
                    for line in lines:
                        out(f"  {line}")
        project = marks_lines(target.read_project_marks())
    if project:
        out("experiment")
        for line in project:
            out(f"  {line}")
    _complain(failed)
    out(f"{_runs(marked)} with marks of runtriage" + ("; the experiment has some" if project else ""))
    return PARTLY if failed else 0


def clear(address: str, *, dry: bool) -> int:
    """Remove every trace and return the exit code.

    Raises
    ------
    AccessRefusedError
        The credentials may not write.
    """
    settings = door.settings({}).settings
    cleared = 0
    failed: list[Found] = []
    breaker = Breaker()
    with door.opened(address) as source:
        target = door.markable(source)
        with progress("clearing", None) as bar:
            for found in bar.over(_all_found(source, target, settings.sweep.readers)):
                done = _cleared(target, found, breaker, dry=dry)
                if done.failure:
                    failed.append(done)
                elif done.plan:
                    cleared += 1
                    _tell(done.info.name or done.info.id, done.plan, dry=dry)
        project = clearing(target.read_project_marks())
        if project:
            _tell("experiment", project, dry=dry)
            if not dry:
                target.apply_project(project)
    _complain(failed)
    verb = "would be cleared" if dry else "cleared"
    out(f"{_runs(cleared)} {verb}" + (f"; the experiment {'would be' if dry else 'is'} too" if project else ""))
    return PARTLY if failed else 0


def marks_lines(marks: Marks) -> list[str]:
    """Return marks in words, one a line."""
    lines = [f"{key} = {clean(value, 100)}" for key, value in sorted(marks.tags.items())]
    if marks.note is not None:
        rows = marks.note.count("\n") + 1
        lines.append(f"note block of {rows} line{'' if rows == 1 else 's'}")
    return lines + [f"file {clean(path)}" for path in sorted(marks.files)]


def _all_found(source: HistorySource, target: MarkTarget, readers: int) -> Iterator[Found]:
    breaker = Breaker()

    def look(info: RunInfo) -> Found:
        if (why := breaker.reason) is not None:
            return Found(info=info, failure=why)
        try:
            marks = target.read_marks(info)
        except AccessRefusedError:
            raise
        except RuntriageError as error:
            breaker.count(error)
            return Found(info=info, failure=str(error))
        breaker.count()
        return Found(info=info, marks=marks)

    with closing(ThreadExecutor(readers)) as threads:
        yield from threads.map(look, source.list_runs())


def _cleared(target: MarkTarget, found: Found, breaker: Breaker, *, dry: bool) -> Found:
    if found.marks is None:
        return found
    plan = clearing(found.marks)
    if plan and not dry:
        if (why := breaker.reason) is not None:
            return Found(info=found.info, failure=why)
        try:
            target.apply(found.info, plan)
        except AccessRefusedError:
            raise
        except RuntriageError as error:
            breaker.count(error)
            return Found(info=found.info, failure=str(error))
        breaker.count()
    return Found(info=found.info, plan=plan)


def _tell(name: str, plan: WritePlan, *, dry: bool) -> None:
    if dry:
        for line in plan_lines(plan):
            out(f"{clean(name, 60)}: {line}")


def _complain(failed: Sequence[Found]) -> None:
    tell_failures("failed", [(found.info.id, found.failure) for found in failed])


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"

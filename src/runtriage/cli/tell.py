"""What several commands say at their end: failures, and plans in words."""

from __future__ import annotations

from collections.abc import Sequence

from runtriage.cli.console import clean, note
from runtriage.model.marks import WritePlan

FAILURES_SHOWN = 10
PARTLY = 4
"""Exit code of a job that reached its end and in which something failed."""


def tell_failures(title: str, failures: Sequence[tuple[str, str]]) -> None:
    """Say on stderr for which runs something failed, and why."""
    for run_id, why in failures[:FAILURES_SHOWN]:
        note(f"runtriage: {title}: {clean(run_id, 60)}: {clean(why, 300)}")
    if len(failures) > FAILURES_SHOWN:
        note(f"runtriage: {title}: … and {len(failures) - FAILURES_SHOWN} more")


def plan_lines(plan: WritePlan | None) -> list[str]:
    """Return a plan in words, one change a line."""
    if plan is None:
        return []
    lines = [f"set {key} = {clean(value, 80)}" for key, value in sorted(plan.set_tags.items())]
    lines += [f"remove {key}" for key in plan.delete_tags]
    lines += ["write the note block"] if plan.set_note is not None else []
    lines += ["remove the note block"] if plan.delete_note else []
    lines += [f"put {path} ({len(content)} bytes)" for path, content in sorted(plan.put_files.items())]
    return lines + [f"remove {path}" for path in plan.delete_files]

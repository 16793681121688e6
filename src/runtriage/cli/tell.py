"""What several commands say at their end: failures, and plans in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from runtriage.cli.console import clean, note
from runtriage.model.marks import WritePlan

FAILURES_SHOWN, RUNS_NAMED = 10, 5
PARTLY = 4
"""Exit code of a job that reached its end and in which something failed."""


def tell_failures(title: str, failures: Sequence[tuple[str, str]]) -> None:
    """Say on stderr for which runs something failed, and why: one line a reason."""
    reasons: dict[str, list[str]] = {}
    for run_id, why in failures:
        reasons.setdefault(why, []).append(run_id)
    for why, runs in islice(reasons.items(), FAILURES_SHOWN):
        more = f" and {len(runs) - RUNS_NAMED} more" if len(runs) > RUNS_NAMED else ""
        named = ", ".join(clean(run_id, 60) for run_id in runs[:RUNS_NAMED])
        note(f"runtriage: {title}: {named}{more}: {clean(why, 300)}")
    rest = sum(map(len, islice(reasons.values(), FAILURES_SHOWN, None)))
    if rest:
        note(f"runtriage: {title}: … and {rest} more")


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

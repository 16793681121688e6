"""What should hang on a run, and on an experiment, after it was judged. Pure: equal reports give equal bytes.

A healthy run carries its status and nothing that warns. A flagged run carries why, since when, and a panel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from runtriage.model.curve import Triage
from runtriage.model.marks import Marks, content_digest
from runtriage.model.report import Finding, Report
from runtriage.model.vocab import BaselineKind, Level
from runtriage.outputs import tags
from runtriage.outputs.plan import PANEL, TAGS
from runtriage.outputs.report import words
from runtriage.outputs.report.html import render_html
from runtriage.outputs.report.markdown import render_digest, render_note
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.view import render_view

_KINDS_SHOWN = 8


def wanted_marks(triage: Triage, *, what: frozenset[str], panel_url: str | None = None, cursor: str = "") -> Marks:
    """Return the marks a run should have.

    Parameters
    ----------
    triage
        The run's report and curves.
    what
        Kinds wanted, of ``tags`` and ``panel``.
    panel_url
        Address at which the tracker will serve ``runtriage/panel.svg`` of this run, for showing it inside the note.
        None where it cannot; the note then goes without a picture.
    cursor
        The tracker's cursor of the run when it was read; kept as a tag if not empty.
    """
    report = triage.report
    values = run_tags(report) if TAGS in what else {}
    if TAGS in what and cursor:
        values[tags.CURSOR] = cursor
    if PANEL not in what or not words.is_flagged(report):
        return Marks(tags=values)
    contents = panel_files(triage)
    return Marks(
        tags=values,
        note=render_note(report, panel_url=panel_url if contents else None, page_hint=bool(contents)),
        files={path: content_digest(content) for path, content in contents.items()},
        contents=contents,
    )


def wanted_project_marks(triages: Sequence[Triage]) -> Marks:
    """Return the marks an experiment should have: the saved view and the digest; none if there are no runs.

    Parameters
    ----------
    triages
        Of all runs of the experiment, in any order; curves are not needed.
    """
    if not triages:
        return Marks()
    reports = sorted((triage.report for triage in triages), key=lambda report: report.run.id)
    return Marks(tags={tags.VIEW: render_view(reports)}, note=render_digest(reports))


def run_tags(report: Report) -> dict[str, str]:
    """Return the tags of a run, few and short: MLflow shows them as chips."""
    found = words.telling(report)
    values = {
        tags.STATUS: report.verdict.value,
        tags.BASELINE: _baseline(report),
        tags.CONFIG: report.baseline.fingerprint,
        tags.VERSION: report.tool.version,
    }
    if report.verdict == Level.WITHHELD:
        values[tags.REASON] = words.one_line(report.reason, tags.VALUE_LIMIT)
    if words.is_flagged(report) and found:
        kinds = list(dict.fromkeys(finding.kind.value for finding in found))
        values[tags.FINDINGS] = ",".join(kinds[:_KINDS_SHOWN])
        values[tags.FIRST_STEP] = str(min(finding.start_step for finding in found))
        if found[0].causes:
            values[tags.CAUSE] = found[0].causes[0].id.value
        values |= {tags.z_max(role): _number(z) for role, z in sorted(_largest(found).items())}
    return {key: value for key, value in values.items() if value}


def panel_files(triage: Triage) -> dict[str, bytes]:
    """Return the picture and the page of a run, path to content; nothing for a run without curves."""
    if not triage.curves:
        return {}
    page = render_html([triage], triage.report.run.name or triage.report.run.id)
    return {tags.PANEL_HTML: page.encode(), tags.PANEL_SVG: render_svg(triage).encode()}


def _largest(found: Sequence[Finding]) -> dict[str, float]:
    """Return per role the z that is largest in size, with its sign; layers share one."""
    out: dict[str, float] = {}
    for finding in found:
        role = finding.role.partition("/")[0]
        if not math.isnan(finding.z) and abs(finding.z) > abs(out.get(role, 0.0)):
            out[role] = finding.z
    return out


def _number(z: float) -> str:
    return f"{z:.1f}" if math.isfinite(z) else "Infinity" if z > 0 else "-Infinity"


def _baseline(report: Report) -> str:
    use = report.baseline
    return f"{use.kind}:{use.runs}" if use.kind == BaselineKind.COHORT else use.kind.value

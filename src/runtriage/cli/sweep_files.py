"""The files that a sweep leaves: reports as JSON lines, and the page."""

from __future__ import annotations

from collections.abc import Sequence

from runtriage.cli import door
from runtriage.model.curve import Triage
from runtriage.model.report import Report


def json_lines(reports: Sequence[Report]) -> bytes:
    """Return one report a line."""
    from runtriage.codec import encode_report

    return b"".join(encode_report(report) + b"\n" for report in reports)


def write_html(path: str, triages: Sequence[Triage], title: str) -> None:
    """Write the self-contained page."""
    from runtriage.model.refs import redacted
    from runtriage.outputs.report.html import render_html

    door.write_file(path, render_html(triages, redacted(title)).encode())

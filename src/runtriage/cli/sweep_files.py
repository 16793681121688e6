"""The files that a sweep leaves: reports as JSON lines, and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from runtriage.cli import door
from runtriage.cli.sweep_ask import Ask, Swept
from runtriage.model.curve import Triage
from runtriage.model.report import Report
from runtriage.model.vocab import Lang


def json_lines(reports: Iterable[Report]) -> Iterator[bytes]:
    """Yield one report a line."""
    from runtriage.codec import encode_report

    return (encode_report(report) + b"\n" for report in reports)


def write_html(path: str, triages: Sequence[Triage], title: str) -> None:
    """Write the self-contained page about a few runs."""
    from runtriage.model.refs import redacted
    from runtriage.outputs.report.html import render_html

    door.write_file(path, render_html(triages, redacted(title)).encode())


def write_files(swept: Swept, ask: Ask, lang: Lang) -> None:
    """Write the files that were asked for, from the journal: one run at a time is held."""
    if ask.json is not None:
        door.write_file(ask.json, json_lines(entry.report for entry in swept.entries()))
    if ask.html is not None:
        from runtriage.model.refs import redacted
        from runtriage.outputs.report.html import render_page

        page = render_page((entry.report for entry in swept.entries()), swept.shown, redacted(ask.source))
        door.write_file(ask.html, (piece.encode() for piece in page))
    if ask.digest is not None:
        from runtriage.outputs.report.issue import render_issue

        digest = render_issue((entry.report for entry in swept.entries()), lang)
        door.write_file(ask.digest, digest.encode())

"""``runtriage check``: one run among its siblings, in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from runtriage.cli import door
from runtriage.cli.console import colours, note, out, progress, width
from runtriage.cli.sweep_files import json_lines, write_html
from runtriage.errors import RunReadError, UsageError
from runtriage.model.baseline import BaselineSet
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.model.refs import redacted, run_address
from runtriage.model.vocab import at_least
from runtriage.pipeline import Params, fingerprint
from runtriage.registry import open_source, split_run
from runtriage.settings import Settings
from runtriage.sweep.job import Judge, Read
from runtriage.sweep.run import read_all
from runtriage.trackers.base import HistorySource

SIBLINGS = 32
"""Siblings read at most; more make the band hardly any narrower and every check slower."""


def run(
    address: str,
    *,
    baselines: str | None,
    json: str | None,
    html: str | None,
    flags: Mapping[str, Any],
) -> int:
    """Diagnose one run and return the exit code.

    Raises
    ------
    UsageError
        The address names no run, or a file cannot be written.
    RunReadError
        The run cannot be read.
    """
    settings = door.settings(flags).settings
    door.check_writable(json, html)
    learned = door.read_baselines(baselines)
    where, run_id = split_run(address)
    if run_id is None:
        hint = f"add the run, as in {run_address(redacted(where), 'RUN')}; `runtriage sweep` judges all of them"
        raise UsageError("the address names no run", where=redacted(address), hint=hint)
    source = open_source(where)
    try:
        with door.cached(source, settings) as reading:
            triage = _judged(reading, run_id, learned, settings)
    finally:
        source.close()
    if json is not None:
        door.write_file(json, json_lines([triage.report]))
    if html is not None:
        write_html(html, [triage], triage.report.run.name)
    if json != "-":
        _show(triage)
    fail_on = settings.sweep.fail_on
    return 1 if fail_on is not None and at_least(triage.report.verdict, fail_on) else 0


def siblings(infos: Iterable[RunInfo], info: RunInfo, params: Params) -> list[RunInfo]:
    """Return the runs of the same config, in the order of the listing, the run itself left out."""
    name = fingerprint(info.config, params.ignore_keys)
    if not name:
        return []
    alike = (i for i in infos if i.id != info.id and fingerprint(i.config, params.ignore_keys) == name)
    return list(islice(alike, SIBLINGS))


def _judged(source: HistorySource, run_id: str, learned: BaselineSet | None, settings: Settings) -> Triage:
    params = door.params(settings)
    info = source.find_run(run_id)
    history = source.read(info)
    others: list[RunInfo] = []
    if learned is None:
        with progress("listing", None) as bar:
            others = siblings(bar.over(source.list_runs()), info, params)
    with progress("reading siblings", len(others)) as bar:
        reads = list(bar.over(read_all(source, others, readers=settings.sweep.readers)))
    lost = [read for read in reads if read.history is None]
    if lost:
        note(f"runtriage: {len(lost)} of {len(others)} siblings could not be read: {lost[0].failure}")
    judge = Judge(baselines=learned, params=params)
    mine = Read(info=history.info, history=history)
    outcome = judge([mine, *(read for read in reads if read.history is not None)])[0]
    if outcome.failure is not None:
        raise RunReadError(outcome.failure, where=run_address(source.address, info.id))
    return outcome.triage


def _show(triage: Triage) -> None:
    from runtriage.outputs.report.text import render_text

    out(render_text(triage, width=width(), colour=colours()).rstrip("\n"))

"""``runtriage rules test``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runtriage.analysis.prepare import prepare
from runtriage.cli import door
from runtriage.cli.console import clean, out, width
from runtriage.cli.rules import note_expired, read_histories, read_rules
from runtriage.errors import CodecError, UsageError
from runtriage.model.history import RunHistory
from runtriage.model.rule import AlertRule, ZScore
from runtriage.model.vocab import LEVEL_ORDER, Level, Role, Severity
from runtriage.outputs.report.firings import Lane, Shot, render_lanes_svg, render_lanes_text
from runtriage.pipeline import Params, fingerprint, triage_cohort
from runtriage.rules.replay import applies, replay
from runtriage.rules.score import Known, Replayed, Score, decode_known, score

SHOWN = 40
"""Runs with firings that are listed before the rest is only counted."""

WANDB_DEFAULT: tuple[AlertRule, ...] = tuple(
    AlertRule(
        id=f"wandb-z-score-{role.replace('_', '-')}", about="The value is more than 3 deviations off its last 30.",
        role=role, condition=ZScore(window=30, limit=3.0),
    )
    for role in (Role.LOSS, Role.GRAD_NORM)
)
"""The z-score that a W&B automation offers, with its defaults, on the two metrics it would be put on first."""


def run_test(
    path: str, address: str, *, labels: str | None, svg: str | None, compare: bool, flags: Mapping[str, Any]
) -> int:
    """Replay rules over a source, print when each would have fired, and return the exit code.

    Raises
    ------
    UsageError
        A file cannot be read or written, or no rule is for any run.
    """
    whole = read_rules(path)
    note_expired(whole)
    rules = whole.rules
    door.check_writable(svg)
    settings = door.settings(flags).settings
    params = door.params(settings)
    known = read_labels(labels)
    found, where, code = read_histories(address, settings)
    runs = [replayed(rules, history, params) for history in found]
    if not any(run.rules for run in runs):
        hint = "rules are for the configs they were derived from; `runtriage doctor` shows those of a source"
        raise UsageError(f"none of {len(rules)} rules is for any of {len(runs)} runs", where=where, hint=hint)
    if known is None:
        known = _judged(found, params)
    for lines in (_scores(score(rules, runs, known)), _first(rules, runs, known)):
        out("\n".join(lines) + "\n")
    if compare:
        out("W&B's z-score (window 30, |z| > 3) on the same runs:")
        chosen = [history for history, run in zip(found, runs, strict=True) if run.rules]
        out("\n".join(_scores(score(WANDB_DEFAULT, [replayed(WANDB_DEFAULT, h, params) for h in chosen], known))))
    if svg is not None:
        lanes = _lanes(rules, [run for run in runs if run.rules], known)
        door.write_file(svg, render_lanes_svg(lanes, f"When {len(rules)} rules would have fired").encode())
    return code


def read_labels(path: str | None) -> dict[str, Known] | None:
    """Return what a file of labels says, or None without a file.

    Raises
    ------
    UsageError
        It cannot be opened.
    CodecError
        A line is no label.
    """
    if path is None:
        return None
    try:
        return decode_known(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"the labels cannot be read: {error.strerror}", where=path) from None
    except CodecError as error:
        raise CodecError(error.message, where=f"{path} {error.where}", hint=error.hint) from None


def replayed(rules: Sequence[AlertRule], history: RunHistory, params: Params) -> Replayed:
    """Return a run after replay: which of the rules are for it, and when they fired."""
    run = prepare(history, params.roles)
    config = fingerprint(history.info.config, params.ignore_keys)
    steps = [series.step for series in run.by_role.values() if series.step.size]
    return Replayed(
        run_id=history.info.id, name=history.info.name, first_step=min((int(s[0]) for s in steps), default=0),
        last_step=max((int(s[-1]) for s in steps), default=0),
        rules=tuple(rule.id for rule in rules if applies(rule, run, config)),
        firings=replay(rules, history, roles=params.roles, ignore=params.ignore_keys),
    )


def _judged(found: Sequence[RunHistory], params: Params) -> dict[str, Known]:
    """Take runtriage's own verdicts for the truth, where nothing better is known."""
    known = {}
    for triage in triage_cohort(found, params=params):
        report = triage.report
        if report.verdict not in LEVEL_ORDER:
            continue
        healthy = report.verdict in {Level.HEALTHY, Level.WATCH}
        telling = [finding.start_step for finding in report.findings if finding.explained_by is None]
        onset = min(telling, default=None) if not healthy else None
        known[report.run.id] = Known(run_id=report.run.id, healthy=healthy, onset=onset)
    return known


def _scores(scores: Sequence[Score]) -> list[str]:
    head = f"{'rule':<26}{'rules':>6}  {'false alarms':<20}{'faulty runs caught':<20}{'early':>6}"
    lines = [head + "  delay (median, worst)"]
    for one in scores:
        late = f"{one.median_delay:g}, {one.delays[-1]} steps" if one.median_delay is not None else "-"
        lines.append(
            f"{clean(one.kind, 25):<26}{one.rules:>6}  {_rate(one.false_alarms.fired, one.false_alarms.runs):<20}"
            f"{_rate(one.hits.fired, one.hits.runs):<20}{one.early:>6}  {late}"
        )
    return lines


def _rate(fired: int, runs: int) -> str:
    return f"{fired} of {runs} ({fired / runs:.0%})" if runs else "-"


def _first(rules: Sequence[AlertRule], runs: Sequence[Replayed], known: Mapping[str, Known]) -> list[str]:
    """Return the first firing of each run with its step, and the plot beside it."""
    fired = [run for run in runs if run.firings]
    silent = sum(bool(run.rules) and not run.firings for run in runs)
    without = sum(not run.rules for run in runs)
    lines = [f"{len(fired)} runs would have fired, {silent} stay silent, {without} have no rules"]
    for lane, run in zip(_lanes(rules, fired[:SHOWN], known), fired[:SHOWN], strict=True):
        first = run.firings[0]
        others = len({firing.rule for firing in run.firings}) - 1
        more = f" and {others} more rule{'s' if others > 1 else ''}" if others else ""
        lines += [render_lanes_text([lane], min(width(), 110)), f"  step {first.step}: {first.rule}{more}"]
    if len(fired) > SHOWN:
        lines.append(f"… and {len(fired) - SHOWN} more")
    return lines


def _onset(known: Known | None) -> int | None:
    return int(known.onset) if known is not None and known.onset is not None else None


def _lanes(rules: Sequence[AlertRule], runs: Sequence[Replayed], known: Mapping[str, Known]) -> list[Lane]:
    severity = {rule.id: rule.severity for rule in rules}
    return [
        Lane(
            name=run.name, first_step=run.first_step, last_step=run.last_step,
            onset=_onset(known.get(run.run_id)),
            shots=tuple(
                Shot(step=firing.step, severity=severity.get(firing.rule, Severity.WARNING), rule=firing.rule)
                for firing in run.firings
            ),
        )
        for run in runs
    ]

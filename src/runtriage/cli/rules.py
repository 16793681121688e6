"""``runtriage rules derive`` and what the commands on rules share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtriage.analysis.prepare import prepare
from runtriage.cli import door
from runtriage.cli.console import clean, note, out, progress
from runtriage.cli.tell import PARTLY, tell_failures
from runtriage.errors import CodecError, UsageError
from runtriage.model.history import RunHistory
from runtriage.model.rule import RuleSet
from runtriage.model.vocab import Level
from runtriage.pipeline import Params, fingerprint, triage_cohort
from runtriage.rules.codec import decode_rules, encode_rules
from runtriage.rules.derive import LEAST_HEALTHY, NO_RULES, Cohort, derive, merge
from runtriage.rules.recipes import Member
from runtriage.rules.score import kind_of
from runtriage.settings import Settings
from runtriage.sweep.run import histories, read_all
from runtriage.sweep.select import Selection, choose

_GOOD = frozenset({Level.HEALTHY, Level.WATCH})
_BAD = frozenset({Level.SUSPICIOUS, Level.BROKEN})


def run_derive(address: str, output: str, *, budget: float, trusted: bool, flags: Mapping[str, Any]) -> int:
    """Derive rules from a source, write them, and return the exit code.

    Raises
    ------
    UsageError
        No config has enough healthy runs, or the file cannot be written.
    CodecError
        The file exists and holds something else.
    """
    if not 0 < budget < 1:
        raise UsageError(f"{budget:g} is no rate", where="--budget", hint="give a number between 0 and 1, like 0.02")
    settings = door.settings(flags).settings
    door.check_writable(output)
    old = read_rules(output) if output != "-" and Path(output).is_file() and Path(output).stat().st_size else None
    found, where, code = read_histories(address, settings)
    params = door.params(settings)
    rules = derive(cohorts(found, params, trusted=trusted), today=datetime.now(UTC).date(), budget=budget, source=where)
    if not rules.rules:
        reason = rules.dropped[0].reason if rules.dropped else "no run tells its config"
        hint = "`runtriage doctor` shows the cohorts; --all-healthy takes every run as an example"
        raise UsageError(f"no rule could be derived from {len(found)} runs: {clean(reason)}", where=where, hint=hint)
    whole = merge(rules, old) if old is not None else rules
    door.write_file(output, encode_rules(whole))
    if output != "-":
        _tell(whole, output)
    return code


def cohorts(found: Sequence[RunHistory], params: Params, *, trusted: bool) -> list[Cohort]:
    """Group runs by config, healthy ones apart from faulty ones.

    Parameters
    ----------
    found
        The runs.
    params
        Settings of the analysis.
    trusted
        Take every run as healthy instead of judging them.
    """
    verdicts = (
        [Level.HEALTHY] * len(found) if trusted else [t.report.verdict for t in triage_cohort(found, params=params)]
    )
    groups: dict[str, tuple[list[Member], list[Member]]] = {}
    for history, verdict in zip(found, verdicts, strict=True):
        config = fingerprint(history.info.config, params.ignore_keys)
        if not config:
            continue
        healthy, bad = groups.setdefault(config, ([], []))
        member = Member(run=prepare(history, params.roles), history=history)
        if verdict in _GOOD:
            healthy.append(member)
        elif verdict in _BAD:
            bad.append(member)
    return [Cohort(config=config, healthy=healthy, bad=bad) for config, (healthy, bad) in groups.items()]


def read_histories(address: str, settings: Settings) -> tuple[list[RunHistory], str, int]:
    """Read all runs of a source; return them, its canonical address and the exit code so far."""
    with door.opened(address) as opened, door.cached(opened, settings) as source:
        chosen = choose(source.list_runs(), Selection())
        with progress("reading", len(chosen)) as bar:
            reads = list(bar.over(read_all(source, chosen, readers=settings.sweep.readers)))
        where = source.address
    failed = [read for read in reads if read.history is None]
    tell_failures("failed", [(read.info.id, read.failure) for read in failed])
    return histories(reads), where, PARTLY if failed else 0


def read_rules(path: str) -> RuleSet:
    """Return the rules of a file.

    Raises
    ------
    UsageError
        It cannot be opened.
    CodecError
        It holds something else; ``where`` is the file and the path within.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        hint = "`runtriage rules derive` writes them"
        raise UsageError(f"the rules cannot be read: {error.strerror}", where=path, hint=hint) from None
    try:
        return decode_rules(content)
    except CodecError as error:
        raise CodecError(error.message, where=f"{path} {error.where}".strip(), hint=error.hint) from None


def note_expired(rules: RuleSet) -> None:
    """Say on stderr how many rules should be derived again: a rule is only as good as its baseline."""
    today = datetime.now(UTC).date().isoformat()
    expired = sum(bool(rule.expires) and rule.expires <= today for rule in rules.rules)
    if expired:
        note(f"{expired} of {len(rules.rules)} rules have expired: derive them again from recent runs")


def _tell(rules: RuleSet, output: str) -> None:
    kinds: dict[str, list[int]] = {}
    for rule in rules.rules:
        row = kinds.setdefault(kind_of(rule.id, rule.config), [0, 0, 0, 0, 0])
        row[0] += 1
        if rule.measured is not None:
            alarms, hits = rule.measured.false_alarms, rule.measured.hits
            row[1:] = [row[1] + alarms.fired, row[2] + alarms.runs, row[3] + hits.fired, row[4] + hits.runs]
    out(f"{'rule':<24}{'configs':>8}  {'false alarms (left out)':<25}{'hits':<10}")
    for kind, (count, fired, runs, caught, bad) in sorted(kinds.items()):
        out(f"{clean(kind, 24):<24}{count:>8}  {f'{fired} of {runs} healthy runs':<25}{f'{caught} of {bad}':<10}")
    without = [one for one in rules.dropped if one.id.startswith(NO_RULES)]
    if without:
        note(f"no rules for {len(without)} configs with fewer than {LEAST_HEALTHY} healthy runs")
    for one in rules.dropped:
        if one not in without:
            note(f"no {one.id}: {clean(one.reason)}")
    kept = sum(rule.keep for rule in rules.rules)
    out(f"{len(rules.rules)} rules in {output}" + (f", {kept} of them kept as they were" if kept else ""))

"""``runtriage doctor``: what can be done with a source, and what would help."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, islice, zip_longest

from runtriage.analysis.prepare import prepare
from runtriage.cli import door
from runtriage.cli.console import clean, out, progress
from runtriage.cli.tell import PARTLY, tell_failures
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.series import PreparedRun
from runtriage.model.vocab import Role
from runtriage.pipeline import fingerprint
from runtriage.sweep.run import histories, read_all
from runtriage.trackers.base import HistorySource, MarkTarget

CONTRACT = "runtriage.contract"
LISTED = 2000
"""Runs listed at most: enough to see the cohorts, and bounded on a server with a million."""
_ROLES_FIRST = tuple(str(role) for role in Role)
_SHOWN = 8
_USEFUL = (Role.LOSS, Role.GRAD_NORM, Role.LR, Role.VAL_LOSS, Role.CLIP_RATE, Role.LOSS_SCALE, Role.TOKENS)


def run(address: str, *, sample: int) -> int:
    """Look at a source, say what is found, and return the exit code."""
    settings = door.settings({}).settings
    params = door.params(settings)
    with door.opened(address) as source:
        with progress("listing", None) as bar:
            infos = list(islice(bar.over(source.list_runs()), LISTED))
        cohorts = _cohorts(infos, params.ignore_keys)
        _tell_source(source, infos)
        _tell_cohorts(cohorts)
        chosen = spread(cohorts, sample)
        with progress("reading", len(chosen)) as bar:
            reads = list(bar.over(read_all(source, chosen, readers=settings.sweep.readers)))
    failed = [read for read in reads if read.history is None]
    _tell_metrics(histories(reads), params.roles)
    tell_failures("failed", [(read.info.id, read.failure) for read in failed])
    return PARTLY if failed else 0


def spread(cohorts: Mapping[str, Sequence[RunInfo]], count: int) -> list[RunInfo]:
    """Return so many runs, taken from the cohorts in turn."""
    rounds = zip_longest(*cohorts.values())
    return list(islice((info for info in chain.from_iterable(rounds) if info is not None), count))


def _cohorts(infos: Sequence[RunInfo], ignore: tuple[str, ...]) -> dict[str, list[RunInfo]]:
    found: dict[str, list[RunInfo]] = defaultdict(list)
    for info in infos:
        found[fingerprint(info.config, ignore)].append(info)
    return dict(found)


def _tell_source(source: HistorySource, infos: Sequence[RunInfo]) -> None:
    states = Counter(str(info.state) for info in infos)
    counted = ", ".join(f"{count} {state}" for state, count in states.most_common())
    more = " or more" if len(infos) == LISTED else ""
    _line("source", clean(source.address))
    _line("runs", f"{len(infos)}{more}" + (f" ({counted})" if infos else ": there is nothing to judge"))
    for sentence in getattr(source, "advice", tuple)():
        _line("advice", clean(sentence, 300))
    if not isinstance(source, MarkTarget):
        _line("marks", "cannot be written here; reports, --json and --html can")
        return
    against = getattr(source, "files_note", lambda: None)()
    _line("marks", "tags, note and view can be written if the server allows it (not tried)")
    _line("panels", "can be stored" if against is None else f"cannot be stored: {clean(against, 300)}")


def _tell_cohorts(cohorts: Mapping[str, Sequence[RunInfo]]) -> None:
    known = sorted(((len(infos), name, infos) for name, infos in cohorts.items() if name), key=lambda c: -c[0])
    alone = sum(size == 1 for size, _, _ in known)
    unknown = len(cohorts.get("", ()))
    _line("cohorts", f"{len(known)} configs" + (f", {alone} of them with a single run" if alone else ""))
    for size, name, infos in known[:_SHOWN]:
        if size > 1:
            _line("", f"{name}: {size} runs, such as {clean(infos[0].name or infos[0].id, 50)}")
    if len(known) > _SHOWN:
        _line("", f"… and {len(known) - _SHOWN} more")
    if unknown:
        _line("", f"{unknown} runs without a usable config: each is compared with itself only")
    everyone = list(chain.from_iterable(cohorts.values()))
    stated = sum(any(key.startswith(CONTRACT) for key in (*info.tags, *info.config)) for info in everyone)
    if everyone:
        _line("contract", f"{CONTRACT} is stated on {stated} of {len(everyone)} runs")
        if not stated:
            _line("", "(optional: a config key that says how metrics are taken; runs that differ are not compared)")


def _tell_metrics(read: Sequence[RunHistory], roles: Mapping[str, str]) -> None:
    if not read:
        return
    prepared = [prepare(history, roles) for history in read]
    _line("metrics", f"as found in {len(read)} run{'' if len(read) == 1 else 's'}")
    names = _names(prepared)
    for role in sorted(names, key=_rank):
        spelt = ", ".join(f"{clean(name, 50)} ({count})" for name, count in names[role].most_common(3))
        _line("", f"{clean(role, 40):<18} {spelt}")
    missing = [str(role) for role in _USEFUL if role not in names]
    if missing:
        _line("", f"{'not logged':<18} {', '.join(missing)}")
    unread = Counter(series.metric for run in prepared for series in run.others)
    if unread:
        shown = ", ".join(clean(name, 40) for name, _ in unread.most_common(_SHOWN))
        more = f" and {len(unread) - _SHOWN} more" if len(unread) > _SHOWN else ""
        _line("", f"{'without a role':<18} {shown}{more}; [analysis.roles] in runtriage.toml gives them one")
    notes = Counter(sentence for run in prepared for sentence in run.notes)
    for sentence, count in notes.most_common(_SHOWN):
        _line("note", f"{clean(sentence, 300)} ({count} of {len(read)} runs)")


def _names(prepared: Sequence[PreparedRun]) -> dict[str, Counter[str]]:
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for run in prepared:
        for role, series in run.by_role.items():
            names[str(role).partition("/")[0]][series.metric] += 1
    return names


def _rank(role: str) -> int:
    return _ROLES_FIRST.index(role) if role in _ROLES_FIRST else len(_ROLES_FIRST)


def _line(name: str, text: str) -> None:
    out(f"{name:<9} {text}".rstrip())

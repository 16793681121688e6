"""``runtriage rules plan``, ``apply`` and ``prune`` for a tracker that watches by itself: W&B and its automations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from runtriage.cli import door
from runtriage.cli.console import clean, note, out
from runtriage.cli.rules import note_expired, read_rules
from runtriage.cli.tell import PARTLY
from runtriage.errors import AccessRefusedError, RuntriageError, UsageError
from runtriage.model.alert import Alert, Channel, ChannelKind
from runtriage.model.refs import parse_address
from runtriage.outputs.alert_plan import AlertPlan, plan_alerts
from runtriage.outputs.alert_words import channel_words, say
from runtriage.outputs.wandb_automations import NAMELESS, ONCE, Compiled, Left, compile_rules, prefix_of
from runtriage.sweep.watched import find_watched
from runtriage.trackers.base import HistorySource, RuleTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    compiled: Compiled
    plan: AlertPlan


def run_plan(path: str, address: str, *, integration: str | None, approximate: bool) -> int:
    """Print what ``apply`` would change and which rules stay with runtriage; return the exit code.

    Raises
    ------
    UsageError
        The source holds no rules, or the integration is not there.
    """
    with door.opened(address) as source:
        found = _planned(path, source, rule_bearing(source), integration, approximate=approximate)
    for alert in found.plan.make:
        out(f"would make    {_line(alert)}")
    for _, alert in found.plan.change:
        out(f"would change  {_line(alert)}")
    for placed in found.plan.remove:
        out(f"would remove  {clean(placed.name)}")
    _tell(found)
    return PARTLY if found.plan.blocked else 0


def run_apply(path: str, address: str, *, integration: str | None, approximate: bool) -> int:
    """Make, change and remove automations until they are the compiled rules; return the exit code. Raises as a plan."""
    with door.opened(address) as source:
        target = rule_bearing(source)
        found = _planned(path, source, target, integration, approximate=approximate)
        plan = found.plan
        failed = _each(
            [
                *((f"changed  {_line(a)}", a.name, partial(target.put_alert, a, p)) for p, a in plan.change),
                *((f"made     {_line(a)}", a.name, partial(target.put_alert, a)) for a in plan.make),
                *((f"removed  {clean(p.name)}", p.name, partial(target.remove_alert, p)) for p in plan.remove),
            ]
        )
    _tell(found)
    return PARTLY if failed or plan.blocked else 0


def run_prune(address: str, *, dry: bool) -> int:
    """Remove all automations of ours from a project, and nothing else; return the exit code."""
    with door.opened(address) as source:
        target = rule_bearing(source)
        plan = plan_alerts((), target.read_alerts(), prefix=prefix_of(_project(source)))
        if dry:
            for placed in plan.remove:
                out(f"would remove {clean(placed.name)}")
            failed = 0
        else:
            failed = _each(
                [(f"removed {clean(p.name)}", p.name, partial(target.remove_alert, p)) for p in plan.remove]
            )
    if not plan.remove:
        out("nothing to do")
    return PARTLY if failed else 0


def rule_bearing(source: HistorySource) -> RuleTarget:
    """Return the source as one that can hold alert rules.

    Raises
    ------
    UsageError
        Its tracker does not watch by itself.
    """
    if not isinstance(source, RuleTarget):
        hint = "W&B projects do; `rules notify` and `--to prometheus` watch any source"
        raise UsageError("this source holds no alert rules of its own", where=source.address, hint=hint)
    return source


def choose_channel(channels: Sequence[Channel], wanted: str | None, where: str) -> Channel:
    """Return the integration that is asked for: by name, or ``slack:NAME`` or ``webhook:NAME`` where both exist.

    Raises
    ------
    UsageError
        There is none of that name, or several; the hint lists what there is.
    """
    hint = f"there are: {', '.join(map(channel_words, channels))}" if channels else (
        "the team has none; W&B's team settings make them"
    )
    if wanted is None:
        raise UsageError("where should alerts go? Give --integration NAME", where=where, hint=hint)
    kind, colon, rest = wanted.partition(":")
    only = ChannelKind(kind) if colon and kind in set(ChannelKind) else None
    name = (rest if only else wanted).removeprefix("#")
    found = [one for one in channels if one.name.removeprefix("#") == name and only in {None, one.kind}]
    if len(found) != 1:
        what = f"{len(found)} integrations are called" if found else "there is no integration called"
        raise UsageError(f"{what} {clean(wanted, 80)!r}", where=where, hint=hint)
    return found[0]


def _planned(
    path: str, source: HistorySource, target: RuleTarget, integration: str | None, *, approximate: bool
) -> _Planned:
    whole = read_rules(path)
    note_expired(whole)
    settings = door.settings({}).settings
    channel = choose_channel(target.channels(), integration, source.address)
    watched = find_watched(source, whole.rules, params=door.params(settings), readers=settings.sweep.readers)
    project = _project(source)
    compiled = compile_rules(whole.rules, watched, project=project, channel=channel, approximate=approximate)
    present = target.read_alerts()
    plan = plan_alerts(compiled.alerts, present, prefix=prefix_of(project), keep=compiled.keeps)
    return _Planned(compiled=compiled, plan=plan)


def _each(steps: Iterable[tuple[str, str, Callable[[], None]]]) -> int:
    """Carry out steps and tell each; return how many failed. A refusal ends them all: the next would fare no better."""
    failed = 0
    for done, name, step in steps:
        try:
            step()
        except AccessRefusedError:
            raise
        except RuntriageError as error:
            failed += 1
            note(f"failed {clean(name)}: {clean(error.message)}" + (f" ({clean(error.hint)})" if error.hint else ""))
        else:
            out(done)
    return failed


def _tell(found: _Planned) -> None:
    plan, compiled = found.plan, found.compiled
    for alert in plan.blocked:
        note(f"{clean(alert.name)}: left out, an automation of this name is not ours")
    for placed in plan.edited:
        note(f"{clean(placed.name)}: was changed in W&B and stays so until the rule changes")
    for placed in plan.kept:
        note(f"{clean(placed.name)}: stays as it is, its rule cannot be compiled now")
    for placed in plan.same:
        if not placed.enabled:
            note(f"{clean(placed.name)}: is switched off in W&B and stays so")
    _tell_left(compiled.left)
    if compiled.alerts:
        note(f"{ONCE}; `rules notify` does")
        if compiled.alerts[0].channel.kind is ChannelKind.WEBHOOK:
            note(NAMELESS)
    out(
        f"{len(compiled.alerts)} automations say {compiled.said} rules, {len(plan.same)} are there already; "
        f"{len(compiled.left)} rules stay with `rules notify`"
    )


def _tell_left(left: Sequence[Left]) -> None:
    """Say of each rule why it is not compiled; rules of one kind that share the reason share the line."""
    lines: dict[tuple[str, str, bool], list[str]] = {}
    for one in left:
        kind = one.rule.id.removesuffix(f"-{one.rule.config}") if one.rule.config else one.rule.id
        lines.setdefault((kind, one.reason, one.nearly), []).append(one.rule.id)
    for (kind, reason, nearly), ids in lines.items():
        who = ids[0] if len(ids) == 1 else f"{kind} ({len(ids)} configs)"
        out(f"not compiled  {clean(who)}: {'only nearly: ' if nearly else ''}{clean(reason, 400)}")
    if more := sum(one.nearly for one in left):
        note(f"{more} more rules can be said nearly: --approximate compiles them too")


def _line(alert: Alert) -> str:
    return f"{clean(alert.name)}: when {clean(say(alert.trigger), 200)}"


def _project(source: HistorySource) -> str:
    return parse_address(source.address).parts[-1]

"""The commands ``sweep`` and ``watch``: signatures and help. What they do is imported when they run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from runtriage.cli.options import (
    BaseOpt,
    BudgetOpt,
    CacheOpt,
    DigestOpt,
    DryOpt,
    EveryOpt,
    ExecutorOpt,
    FailOpt,
    FreshOpt,
    HtmlOpt,
    JsonOpt,
    LangOpt,
    LimitOpt,
    NoFailOpt,
    NotifyOpt,
    OnlyOpt,
    ReadersOpt,
    ResumeOpt,
    RulesOpt,
    ShowOpt,
    SinceOpt,
    SourceArg,
    WriteOpt,
)

if TYPE_CHECKING:
    from runtriage.cli.sweep_ask import Ask


def sweep(
    source: SourceArg,
    baselines: BaseOpt = None,
    write: WriteOpt = None,
    dry_run: DryOpt = False,
    json: JsonOpt = None,
    html: HtmlOpt = None,
    digest: DigestOpt = None,
    rules: RulesOpt = None,
    notify: NotifyOpt = None,
    fail_on: FailOpt = None,
    since: SinceOpt = None,
    limit: LimitOpt = None,
    only: OnlyOpt = None,
    readers: ReadersOpt = None,
    executor: ExecutorOpt = None,
    budget: BudgetOpt = None,
    cache: CacheOpt = None,
    lang: LangOpt = None,
    fresh: FreshOpt = False,
    resume: ResumeOpt = False,
    show_settings: ShowOpt = False,
) -> None:
    """Judge all runs of a source against their siblings, and write the verdicts back if told to."""
    given = dict(locals())
    from runtriage.cli.sweep import run

    raise typer.Exit(run(*_asked(given)))


def watch(every: EveryOpt = "10m", **given: Any) -> None:
    """Sweep again and again, for those who have no scheduler; takes the options of `sweep` but --fail-on."""
    from runtriage.cli.watch import run

    raise typer.Exit(run(*_asked(given), every))


def _asked(given: Mapping[str, Any]) -> tuple[Ask, dict[str, Any]]:
    """Return what the options of a sweep ask for: the sweep itself, and settings."""
    from runtriage.cli.sweep_ask import Ask

    write, fail_on, notify, lang = given["write"], given["fail_on"], given["notify"], given["lang"]
    flags = {
        "sweep.write": [kind.strip() for kind in write.split(",") if kind.strip()] if write is not None else None,
        "sweep.fail_on": fail_on and fail_on.value,
        "sweep.readers": given["readers"],
        "sweep.executor": given["executor"],
        "sweep.rules": given["rules"],
        "sweep.notify": notify or None,
        "analysis.false_alarm_budget": given["budget"],
        "cache.address": given["cache"],
        "report.lang": lang and lang.value,
    }
    ask = Ask(
        source=given["source"], baselines=given["baselines"], dry_run=given["dry_run"], json=given["json"],
        html=given["html"], digest=given["digest"], since=given["since"], limit=given["limit"], only=given["only"],
        fresh=given["fresh"], resume=given["resume"], show_settings=given["show_settings"],
    )
    return ask, flags


def _take_options_of_sweep(command: Any) -> None:
    """Have a command take every option of `sweep` before its own: what one learns, the other knows."""
    shared = inspect.signature(sweep, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters.values()
    named = [one for one in own if one.kind is not inspect.Parameter.VAR_KEYWORD]
    taken = [*(shared | {"fail_on": shared["fail_on"].replace(annotation=NoFailOpt)}).values(), *named]
    command.__signature__ = inspect.Signature(taken)
    command.__annotations__ = {name: one.annotation for name, one in command.__signature__.parameters.items()}


_take_options_of_sweep(watch)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        short_help="Judge all runs of a source; write back if told to.",
        epilog="Example: runtriage sweep mlflow://127.0.0.1:5000/pretraining --write all --fail-on broken",
    )(sweep)
    app.command(
        short_help="Sweep again and again, by the clock.",
        epilog="Example: runtriage watch mlflow://127.0.0.1:5000/pretraining --every 10m --write all",
    )(watch)

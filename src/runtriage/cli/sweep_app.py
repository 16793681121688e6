"""The commands ``sweep`` and ``watch``: signatures and help. What they do is imported when they run."""

from __future__ import annotations

import typer

from runtriage.cli.options import (
    BaseOpt,
    BudgetOpt,
    CacheOpt,
    DigestOpt,
    DryOpt,
    ExecutorOpt,
    FailOpt,
    FreshOpt,
    HtmlOpt,
    JsonOpt,
    LimitOpt,
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
    fresh: FreshOpt = False,
    resume: ResumeOpt = False,
    show_settings: ShowOpt = False,
) -> None:
    """Judge all runs of a source against their siblings, and write the verdicts back if told to."""
    from runtriage.cli.sweep import run
    from runtriage.cli.sweep_ask import Ask

    flags = {
        "sweep.write": [kind.strip() for kind in write.split(",") if kind.strip()] if write is not None else None,
        "sweep.fail_on": fail_on and fail_on.value,
        "sweep.readers": readers,
        "sweep.executor": executor,
        "analysis.false_alarm_budget": budget,
        "cache.address": cache,
    }
    ask = Ask(
        source=source, baselines=baselines, dry_run=dry_run, json=json, html=html, digest=digest, since=since,
        rules=rules, notify=tuple(notify or ()), limit=limit, only=only, fresh=fresh, resume=resume,
        show_settings=show_settings,
    )
    raise typer.Exit(run(ask, flags))


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        short_help="Judge all runs of a source; write back if told to.",
        epilog="Example: runtriage sweep mlflow://127.0.0.1:5000/pretraining --write all --fail-on broken",
    )(sweep)

"""The commands below ``runtriage rules``: signatures and help. What a command does is imported when it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from runtriage.cli.options import HELP_NAMES, DryOpt, LimitOpt, RulesArg, SinceOpt, SourceArg

rules_app = typer.Typer(
    help="Derive alert rules from healthy runs, and see when they would have fired.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=HELP_NAMES,
)


@rules_app.command("derive", epilog="Example: runtriage rules derive files:runs/good -o rules.yaml")
def rules_derive(
    source: SourceArg,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where the rules go, - for stdout.")],
    budget: Annotated[
        float, typer.Option(metavar="RATE", help="False alarms a rule may raise per healthy run left out.")
    ] = 0.02,
    all_healthy: Annotated[
        bool, typer.Option("--all-healthy", help="Take every run as an example instead of judging them first.")
    ] = False,
) -> None:
    """Derive alert rules from the healthy runs of each config, with the false-alarm rate each was measured to have."""
    from runtriage.cli.rules import run_derive

    raise typer.Exit(run_derive(source, output, budget=budget, trusted=all_healthy, flags={}))


@rules_app.command("test", epilog="Example: runtriage rules test rules.yaml files:runs/new --svg firings.svg")
def rules_test(
    rules: RulesArg,
    source: SourceArg,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What is known: a JSON object a line with run_id, healthy and onset."),
    ] = None,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw when the rules would have fired.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Replay W&B's default z-score automation on the same runs too.")
    ] = False,
) -> None:
    """Replay rules over runs: when each would have fired, on which healthy runs, how late on faulty ones."""
    from runtriage.cli.rules_test import run_test

    raise typer.Exit(run_test(rules, source, labels=labels, svg=svg, compare=compare, flags={}))


class Target(StrEnum):
    """Where alert rules can go."""

    PROMETHEUS = "prometheus"


ToOpt = Annotated[Target, typer.Option("--to", help="What the rules are compiled for.")]
FolderOpt = Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Folder of the compiled files.")]
ExporterOpt = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where Prometheus finds `runtriage serve`.")
]


@rules_app.command("plan", epilog="Example: runtriage rules plan rules.yaml --to prometheus -o prometheus")
def rules_plan(rules: RulesArg, to: ToOpt, output: FolderOpt, exporter: ExporterOpt = "127.0.0.1:9187") -> None:  # noqa: ARG001  one target so far
    """Print which compiled files differ from those there; change nothing."""
    from runtriage.cli.rules_files import run_plan

    raise typer.Exit(run_plan(rules, output, target=exporter))


@rules_app.command("apply", epilog="Example: runtriage rules apply rules.yaml --to prometheus -o prometheus")
def rules_apply(rules: RulesArg, to: ToOpt, output: FolderOpt, exporter: ExporterOpt = "127.0.0.1:9187") -> None:  # noqa: ARG001  one target so far
    """Compile rules: a rule file, its promtool cases and a scrape configuration. Files of others are left alone."""
    from runtriage.cli.rules_files import run_apply

    raise typer.Exit(run_apply(rules, output, target=exporter))


@rules_app.command("prune", epilog="Example: runtriage rules prune --to prometheus -o prometheus")
def rules_prune(to: ToOpt, output: FolderOpt, dry_run: DryOpt = False) -> None:  # noqa: ARG001  one target so far
    """Remove the compiled files from a folder, and nothing else."""
    from runtriage.cli.rules_files import run_prune

    raise typer.Exit(run_prune(output, dry=dry_run))


@rules_app.command("notify", epilog="Example: runtriage rules notify rules.yaml mlflow:pretraining --to slack://…")
def rules_notify(
    rules: RulesArg,
    source: SourceArg,
    to: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Apprise URL; several times for several. Also RUNTRIAGE_NOTIFY_URLS."),
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="FILE", help="Remember in FILE what was told, not in a tag of the run.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent; send nothing.")] = False,
    since: SinceOpt = None,
    limit: LimitOpt = None,
) -> None:
    """Tell people once when a rule starts to fire on a run, and once when it is over: chats, e-mail, webhooks."""
    from runtriage.cli.rules_notify import run

    raise typer.Exit(run(rules, source, to=to or (), state=state, dry=dry_run, since=since, limit=limit, flags={}))

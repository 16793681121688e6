"""The commands below ``runtriage rules``: signatures and help. What a command does is imported when it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from runtriage.cli.options import HELP_NAMES, DryOpt, LimitOpt, RulesArg, SinceOpt, SourceArg

if TYPE_CHECKING:
    from runtriage.cli.rules_targets import FileTarget

rules_app = typer.Typer(
    help="Derive alert rules from healthy runs, and see when they would have fired.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=HELP_NAMES,
)


@rules_app.command(
    "derive",
    short_help="Learn rules from the healthy runs of a source.",
    epilog="Example: runtriage rules derive files:runs/good -o rules.yaml",
)
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


@rules_app.command(
    "test",
    short_help="Replay rules over runs: when would each have fired?",
    epilog="Example: runtriage rules test rules.yaml files:runs/new --svg firings.svg",
)
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
    GRAFANA = "grafana"
    WANDB = "wandb"


ToOpt = Annotated[Target, typer.Option("--to", help="What the rules are compiled for.")]
PlaceArg = Annotated[
    str | None, typer.Argument(metavar="SOURCE", help="wandb: the project, as wandb://ENTITY/PROJECT.")
]
FolderOpt = Annotated[
    str | None, typer.Option("-o", "--output", metavar="DIR", help="prometheus, grafana: folder of the compiled files.")
]
ExporterOpt = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="prometheus: where it finds `runtriage serve`.")
]
DatasourceOpt = Annotated[
    str, typer.Option(metavar="UID", help="grafana: uid of the PostgreSQL data source with MLflow's database.")
]
IntegrationOpt = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="wandb: Slack channel or webhook of the team's settings that alerts go to."),
]
NearlyOpt = Annotated[
    bool, typer.Option("--approximate", help="wandb: compile also what an automation can say only nearly.")
]


@rules_app.command("plan", epilog="Example: runtriage rules plan rules.yaml --to prometheus -o prometheus")
def rules_plan(
    rules: RulesArg, source: PlaceArg = None, *, to: ToOpt, output: FolderOpt = None,
    exporter: ExporterOpt = "127.0.0.1:9187", datasource: DatasourceOpt = "mlflow",
    integration: IntegrationOpt = None, approximate: NearlyOpt = False,
) -> None:
    """Print what `apply` would change; change nothing. For W&B also why a rule cannot be an automation."""
    if to is Target.WANDB:
        from runtriage.cli.rules_tracker import run_plan as run_wandb

        place = _given(source, "SOURCE", to)
        raise typer.Exit(run_wandb(rules, place, integration=integration, approximate=approximate))
    from runtriage.cli.rules_files import run_plan

    raise typer.Exit(run_plan(rules, _given(output, "-o DIR", to), _target(to, exporter, datasource)))


@rules_app.command(
    "apply",
    short_help="Compile rules for Prometheus, Grafana or W&B.",
    epilog="Example: runtriage rules apply rules.yaml wandb://t/p --to wandb --integration ci",
)
def rules_apply(
    rules: RulesArg, source: PlaceArg = None, *, to: ToOpt, output: FolderOpt = None,
    exporter: ExporterOpt = "127.0.0.1:9187", datasource: DatasourceOpt = "mlflow",
    integration: IntegrationOpt = None, approximate: NearlyOpt = False,
) -> None:
    """Compile rules: files for Prometheus or Grafana, or automations of a W&B project. What others made is left alone.

    For Grafana: one provisioning file with SQL over MLflow's PostgreSQL database.

    For W&B: one file of rules a project; automations of rules that are not in it any more are removed. One that was
    edited or switched off in W&B stays so until its rule changes. Proved against a stand-in server and client 0.31.
    """
    if to is Target.WANDB:
        from runtriage.cli.rules_tracker import run_apply as run_wandb

        place = _given(source, "SOURCE", to)
        raise typer.Exit(run_wandb(rules, place, integration=integration, approximate=approximate))
    from runtriage.cli.rules_files import run_apply

    raise typer.Exit(run_apply(rules, _given(output, "-o DIR", to), _target(to, exporter, datasource)))


@rules_app.command(
    "prune",
    short_help="Take back what `apply` made, and nothing else.",
    epilog="Example: runtriage rules prune wandb://team/p --to wandb --dry-run",
)
def rules_prune(
    source: PlaceArg = None, *, to: ToOpt, output: FolderOpt = None, dry_run: DryOpt = False
) -> None:
    """Remove the compiled files from a folder, or our automations from a W&B project, and nothing else.

    Grafana keeps rules whose file is gone: the first time its file is changed to delete them, the second time removed.
    """
    if to is Target.WANDB:
        from runtriage.cli.rules_tracker import run_prune as run_wandb

        raise typer.Exit(run_wandb(_given(source, "SOURCE", to), dry=dry_run))
    from runtriage.cli.rules_files import run_prune

    raise typer.Exit(run_prune(_given(output, "-o DIR", to), _target(to, "", "mlflow"), dry=dry_run))


def _given(value: str | None, what: str, to: Target) -> str:
    if value is None:
        raise typer.BadParameter(f"--to {to} needs {what}")
    return value


def _target(to: Target, exporter: str, datasource: str) -> FileTarget:
    from runtriage.cli.rules_targets import Grafana, Prometheus

    return Prometheus(exporter) if to is Target.PROMETHEUS else Grafana(datasource)


@rules_app.command(
    "notify",
    short_help="Tell people when a rule fires on a run, and when over.",
    epilog="Example: runtriage rules notify rules.yaml mlflow:pretraining --to slack://…",
)
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

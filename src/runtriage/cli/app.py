"""The command line: signatures and help. What a command does is imported when it runs."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from runtriage import __version__
from runtriage.errors import RuntriageError
from runtriage.model.vocab import RunState

app = typer.Typer(
    name="runtriage",
    help="Tell whether training runs are healthy, what is wrong if not, why probably, and how to check.",
    epilog=(
        "Try it: runtriage demo. Exit codes: 0 fine, 1 a verdict as bad as --fail-on or worse, 2 usage or settings, "
        "3 source unreachable or refused, 4 partly failed."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
marks_app = typer.Typer(
    help="Show or remove what runtriage wrote to a tracker.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(marks_app, name="marks")
rules_app = typer.Typer(
    help="Derive alert rules from healthy runs, and see when they would have fired.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(rules_app, name="rules")


class Threshold(StrEnum):
    """Verdicts that ``--fail-on`` knows."""

    WATCH = "watch"
    SUSPICIOUS = "suspicious"
    BROKEN = "broken"


class Where(StrEnum):
    """Where cohorts are analysed."""

    SERIAL = "serial"
    PROCESSES = "processes"


SourceArg = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help=(
            "files:DIR, mlflow-local:DIR, wandb-local:DIR, mlflow://HOST:PORT/EXPERIMENT, mlflow:EXPERIMENT, "
            "wandb://ENTITY/PROJECT"
        ),
    ),
]
JsonOpt = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write one report a line to FILE, - for stdout.")
]
HtmlOpt = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page to FILE.")]
FailOpt = Annotated[Threshold | None, typer.Option("--fail-on", help="Exit with 1 if a verdict is this bad or worse.")]
BaseOpt = Annotated[
    str | None, typer.Option("--baselines", metavar="FILE", help="Judge against baselines that `learn` wrote.")
]
WriteOpt = Annotated[
    str | None, typer.Option(metavar="KINDS", help="Write back: tags,panel,view or all. Default: only read.")
]
PortOpt = Annotated[
    int, typer.Option(min=0, max=65535, metavar="PORT", help="Port of the server; 0 takes a free one.")
]
ShowOpt = Annotated[bool, typer.Option("--show-settings", help="Say where each setting came from, and stop.")]
RunArg = Annotated[
    str, typer.Argument(metavar="SOURCE/RUN", help="Address of one run: the source's, a slash, the run's id or name.")
]
SinceOpt = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Only runs started since: a date (2026-11-30) or an age (12h, 7d).")
]
LimitOpt = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="At most so many runs, newest first where the source knows.")
]
OnlyOpt = Annotated[RunState | None, typer.Option(help="Only runs in this state.")]
ReadersOpt = Annotated[int | None, typer.Option(min=1, metavar="N", help="Runs read at the same time.")]
ExecutorOpt = Annotated[Where | None, typer.Option(help="Where cohorts are analysed.")]
BudgetOpt = Annotated[
    float | None, typer.Option(metavar="CHANCE", help="Chance that a healthy run is flagged (default 0.01).")
]
RulesArg = Annotated[str, typer.Argument(metavar="RULES", help="The file that `rules derive` wrote.")]
DryOpt = Annotated[bool, typer.Option("--dry-run", help="Print what would be changed; change nothing.")]


def _version(value: bool) -> None:
    if value:
        typer.echo(f"runtriage {__version__}")
        raise typer.Exit


VersionOpt = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")]


@app.callback()
def root(
    version: VersionOpt = False,  # noqa: ARG001  its callback has done the work
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")] = False,
) -> None:
    """Take the options that stand before every command."""
    if debug:
        os.environ["RUNTRIAGE_DEBUG"] = "1"


@app.command(
    short_help="Judge all runs of a source; write back if told to.",
    epilog="Example: runtriage sweep mlflow://127.0.0.1:5000/pretraining --write all --fail-on broken",
)
def sweep(
    source: SourceArg,
    baselines: BaseOpt = None,
    write: WriteOpt = None,
    dry_run: DryOpt = False,
    json: JsonOpt = None,
    html: HtmlOpt = None,
    fail_on: FailOpt = None,
    since: SinceOpt = None,
    limit: LimitOpt = None,
    only: OnlyOpt = None,
    readers: ReadersOpt = None,
    executor: ExecutorOpt = None,
    budget: BudgetOpt = None,
    show_settings: ShowOpt = False,
) -> None:
    """Judge all runs of a source against their siblings, and write the verdicts back if told to."""
    from runtriage.cli.sweep import Ask, run

    flags = {
        "sweep.write": [kind.strip() for kind in write.split(",") if kind.strip()] if write is not None else None,
        "sweep.fail_on": fail_on and fail_on.value,
        "sweep.readers": readers,
        "sweep.executor": executor and executor.value,
        "analysis.false_alarm_budget": budget,
    }
    ask = Ask(
        source=source, baselines=baselines, dry_run=dry_run, json=json, html=html, since=since, limit=limit, only=only,
        show_settings=show_settings,
    )
    raise typer.Exit(run(ask, flags))


@app.command(
    short_help="Learn what is normal for each configuration.",
    epilog="Example: runtriage learn files:runs/good -o good.baselines",
)
def learn(
    source: SourceArg,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where the baselines go.")],
    since: SinceOpt = None,
    limit: LimitOpt = None,
    readers: ReadersOpt = None,
) -> None:
    """Learn what is normal for each configuration, to judge other runs against later."""
    from runtriage.cli.learn import run

    raise typer.Exit(run(source, output, since=since, limit=limit, flags={"sweep.readers": readers}))


@app.command(short_help="Diagnose one run in the terminal.", epilog="Example: runtriage check files:runs/r9d9")
def check(
    run_address: RunArg,
    baselines: BaseOpt = None,
    json: JsonOpt = None,
    html: HtmlOpt = None,
    fail_on: FailOpt = None,
    budget: BudgetOpt = None,
) -> None:
    """Diagnose one run: its curves in the terminal, what is wrong, what may have caused it, how to check."""
    from runtriage.cli.check import run

    flags = {"sweep.fail_on": fail_on and fail_on.value, "analysis.false_alarm_budget": budget}
    raise typer.Exit(run(run_address, baselines=baselines, json=json, html=html, flags=flags))


@marks_app.command("show", epilog="Example: runtriage marks show mlflow://127.0.0.1:5000/pretraining")
def marks_show(source: SourceArg) -> None:
    """List what runtriage wrote to the runs of a source."""
    from runtriage.cli.marks import show

    raise typer.Exit(show(source))


@marks_app.command("clear", epilog="Example: runtriage marks clear mlflow://127.0.0.1:5000/pretraining --dry-run")
def marks_clear(source: SourceArg, dry_run: DryOpt = False) -> None:
    """Remove every trace of runtriage from a source; nothing else is touched."""
    from runtriage.cli.marks import clear

    raise typer.Exit(clear(source, dry=dry_run))


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


@app.command(
    short_help="Prometheus exporter: verdicts, z-scores, firing rules.",
    epilog="Example: runtriage serve mlflow://127.0.0.1:5000/pretraining --rules rules.yaml",
)
def serve(
    source: SourceArg,
    rules: Annotated[str | None, typer.Option(metavar="FILE", help="Alert rules to evaluate.")] = None,
    baselines: BaseOpt = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: PortOpt = 9187,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time between two looks.")] = 60.0,
    limit: Annotated[int, typer.Option(min=1, max=2000, metavar="N", help="Runs exported, newest first.")] = 100,
    once: Annotated[bool, typer.Option("--once", help="Print the page and stop.")] = False,
) -> None:
    """Serve verdicts, newest values and firing rules of the newest runs for Prometheus to scrape."""
    from runtriage.cli.serve import run

    code = run(
        source, rules=rules, baselines=baselines, host=host, port=port, every=every, limit=limit, once=once, flags={}
    )
    raise typer.Exit(code)


@app.command(
    short_help="Look at a source: rights, roles, what is missing.",
    epilog="Example: runtriage doctor mlflow-local:mlruns",
)
def doctor(
    source: SourceArg,
    sample: Annotated[int, typer.Option(min=1, metavar="N", help="Runs read to see what is logged.")] = 8,
) -> None:
    """Look at a source: is it reachable, what can be done with it, which metrics mean what, what is not logged."""
    from runtriage.cli.doctor import run

    raise typer.Exit(run(source, sample=sample))


@app.command(short_help="The whole loop on a real MLflow server.", epilog="Example: runtriage demo --keep")
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the server up until Ctrl-C.")] = False,
    port: PortOpt = 0,
) -> None:
    """Show the whole loop: a real MLflow server in a temporary folder, real runs, verdicts in MLflow's own pages."""
    from runtriage.cli.demo import run

    raise typer.Exit(run(keep=keep, port=port))


def main(argv: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code; a person never sees a traceback they did not ask for."""
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; the interpreter must not complain while flushing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run(argv: list[str] | None) -> int:
    try:
        code = app(args=argv, prog_name="runtriage", standalone_mode=False)
    except RuntriageError as error:
        _complain(error.message, error.where, error.hint)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("\nruntriage: interrupted\n")
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:  # the outermost boundary
        if (shown := _usage(error)) is not None:
            return shown
        if os.environ.get("RUNTRIAGE_DEBUG"):
            raise
        hint = "run again with `runtriage --debug …` and report what it shows"
        _complain(f"unexpected {type(error).__name__}: {error}", "", hint)
        return 2
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> int | None:
    """Show an error of the command line itself; typer brings its own copy of click, so it is known by its abilities."""
    if not (hasattr(error, "format_message") and hasattr(error, "exit_code")):
        return None
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
    elif message:
        command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "runtriage"
        _complain(message.rstrip("."), "", f"see {command} --help")
    return int(error.exit_code)


def _complain(what: str, where: str, hint: str) -> None:
    line = f"runtriage: {what}" + (f" @ {where}" if where else "") + (f"; {hint}" if hint else "")
    flat = "".join(c if c.isprintable() else " " for c in line)
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(flat.encode(encoding, "replace").decode(encoding) + "\n")


if __name__ == "__main__":
    main()

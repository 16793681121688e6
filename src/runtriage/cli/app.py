"""The command line: signatures and help. What a command does is imported when it runs."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer

from runtriage import __version__
from runtriage.cli.options import (
    HELP_NAMES,
    BaseOpt,
    BudgetOpt,
    CacheOpt,
    DryOpt,
    FailOpt,
    HtmlOpt,
    JsonOpt,
    LangOpt,
    LimitOpt,
    PortOpt,
    ReadersOpt,
    RunArg,
    SinceOpt,
    SourceArg,
)
from runtriage.cli.rules_app import rules_app
from runtriage.cli.stop import take_second
from runtriage.cli.sweep_app import add_to as add_sweep
from runtriage.errors import RuntriageError

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

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
    context_settings=HELP_NAMES,
)
marks_app = typer.Typer(
    help="Show or remove what runtriage wrote to a tracker.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=HELP_NAMES,
)
add_sweep(app)
app.add_typer(marks_app, name="marks")
app.add_typer(rules_app, name="rules")


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
    short_help="Learn what is normal for each configuration.",
    epilog="Example: runtriage learn files:runs/good -o good.baselines",
)
def learn(
    source: SourceArg,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where the baselines go.")],
    since: SinceOpt = None,
    limit: LimitOpt = None,
    readers: ReadersOpt = None,
    cache: CacheOpt = None,
) -> None:
    """Learn what is normal for each configuration, to judge other runs against later."""
    from runtriage.cli.learn import run

    flags = {"sweep.readers": readers, "cache.address": cache}
    raise typer.Exit(run(source, output, since=since, limit=limit, flags=flags))


@app.command(short_help="Diagnose one run in the terminal.", epilog="Example: runtriage check files:runs/r9d9")
def check(
    run_address: RunArg,
    baselines: BaseOpt = None,
    json: JsonOpt = None,
    html: HtmlOpt = None,
    fail_on: FailOpt = None,
    budget: BudgetOpt = None,
    cache: CacheOpt = None,
    lang: LangOpt = None,
) -> None:
    """Diagnose one run: its curves in the terminal, what is wrong, what may have caused it, how to check."""
    from runtriage.cli.check import run

    flags = {
        "sweep.fail_on": fail_on and fail_on.value, "analysis.false_alarm_budget": budget, "cache.address": cache,
        "report.lang": lang and lang.value,
    }  # fmt: skip
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
    lang: LangOpt = None,
) -> None:
    """Show the whole loop: a real MLflow server in a temporary folder, real runs, verdicts in MLflow's own pages."""
    from runtriage.cli.demo import run

    raise typer.Exit(run(keep=keep, port=port, lang=lang))


def main(argv: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code; a person never sees a traceback they did not ask for."""
    take_second(INTERRUPTED)
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; the interpreter must not complain while flushing
        _silence_stdout()
        code = 0
    except OSError as error:  # a full disk behind stdout shows when the last of it is flushed
        _complain(f"the output cannot be written: {error.strerror}", "", "")
        _silence_stdout()
        code = 2
    sys.exit(code)


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: list[str] | None) -> int:
    try:
        code = app(args=argv, prog_name="runtriage", standalone_mode=False)
    except RuntriageError as error:
        _complain(error.message, error.where, error.hint)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED  # typer makes the same of a Ctrl-C that it catches itself
    except BrokenPipeError:
        raise
    except Exception as error:  # the outermost boundary
        if (shown := _usage(error)) is not None:
            return shown
        if os.environ.get("RUNTRIAGE_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _complain("the output cannot be written: no space left", "", "")
            return 2
        hint = "run again with `runtriage --debug …` and report what it shows"
        _complain(f"unexpected {type(error).__name__}: {error}", "", hint)
        return 2
    if code == INTERRUPTED:
        sys.stderr.write("\nruntriage: interrupted\n")
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

"""Arguments and options that several commands share: what they are called and what their help says."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from runtriage.model.vocab import Lang, RunState

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class Threshold(StrEnum):
    """Verdicts that ``--fail-on`` knows."""

    WATCH = "watch"
    SUSPICIOUS = "suspicious"
    BROKEN = "broken"


SourceArg = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help=(
            "files:DIR, mlflow-local:DIR, wandb-local:DIR, mlflow://HOST:PORT/EXPERIMENT, mlflow+https://…, "
            "mlflow:EXPERIMENT, mlflow-sql:DATABASE_URL#EXPERIMENT, wandb://ENTITY/PROJECT"
        ),
    ),
]
JsonOpt = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write one report a line to FILE, - for stdout.")
]
HtmlOpt = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page to FILE.")]
DigestOpt = Annotated[
    str | None, typer.Option("--digest", metavar="FILE", help="Write Markdown for a GitHub issue, - for stdout.")
]
RulesOpt = Annotated[
    str | None,
    typer.Option(
        "--rules", metavar="FILE", help="Read every run, replay alert rules, tell what is new. '' to leave it."
    ),
]
NotifyOpt = Annotated[
    list[str] | None,
    typer.Option("--notify", metavar="URL", help="With --rules: Apprise URL, or RUNTRIAGE_NOTIFY_URLS."),
]
FailOpt = Annotated[Threshold | None, typer.Option("--fail-on", help="Exit with 1 if a verdict is this bad or worse.")]
NoFailOpt = Annotated[Threshold | None, typer.Option("--fail-on", hidden=True)]
"""Where it makes no sense: whoever gives it all the same is told what to do instead."""

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
ExecutorOpt = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="Where cohorts are judged: serial, processes, dask (workers of its own) or dask:ADDRESS of a scheduler.",
    ),
]
BudgetOpt = Annotated[
    float | None, typer.Option(metavar="CHANCE", help="Chance that a healthy run is flagged (default 0.01).")
]
LangOpt = Annotated[Lang | None, typer.Option(help="Language of what people read (default en).")]
RulesArg = Annotated[str, typer.Argument(metavar="RULES", help="The file that `rules derive` wrote.")]
FreshOpt = Annotated[
    bool, typer.Option("--fresh", help="Read every run again, also those that have not changed.")
]
CacheOpt = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Where histories pulled from a server are kept: a folder, s3://…, or off."),
]
ResumeOpt = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with a sweep that was cut short or partly failed: read only what is left, and its siblings.",
    ),
]
EveryOpt = Annotated[str, typer.Option(metavar="SPAN", help="Time from one beginning to the next: 30s, 10m, 6h, 1d.")]
DryOpt = Annotated[bool, typer.Option("--dry-run", help="Print what would be changed; change nothing.")]

"""``runtriage learn``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtriage.cli import door
from runtriage.cli.console import out, progress
from runtriage.cli.tell import PARTLY, tell_failures
from runtriage.errors import UsageError
from runtriage.pipeline import learn
from runtriage.sweep.run import histories, read_all
from runtriage.sweep.select import Selection, choose


def run(address: str, output: str, *, since: str | None, limit: int | None, flags: Mapping[str, Any]) -> int:
    """Learn baselines, write them, and return the exit code.

    Raises
    ------
    UsageError
        Nothing could be learned, or the file cannot be written.
    """
    from runtriage.codec_baselines import encode_baselines

    settings = door.settings(flags).settings
    door.check_writable(output)
    with door.opened(address) as opened, door.cached(opened, settings) as source:
        chosen = choose(source.list_runs(), Selection(since=door.moment(since), limit=limit))
        with progress("reading", len(chosen)) as bar:
            reads = list(bar.over(read_all(source, chosen, readers=settings.sweep.readers)))
        where = source.address
    failed = [read for read in reads if read.history is None]
    tell_failures("failed", [(read.info.id, read.failure) for read in failed])
    learned = learn(histories(reads), door.params(settings), source=where)
    if not learned.cohorts:
        raise UsageError(
            f"nothing could be learned from {len(chosen)} runs", where=where,
            hint="a baseline takes two healthy runs of one config; `runtriage doctor` shows the cohorts",
        )
    door.write_file(output, encode_baselines(learned))
    for name, baseline in sorted(learned.cohorts.items()):
        left_out = f", {len(baseline.excluded)} left out" if baseline.excluded else ""
        out(f"{name}: {len(baseline.members)} runs{left_out}")
    count = len(learned.cohorts)
    noun = "baseline" if count == 1 else "baselines"
    out(f"{count} {noun} from {len(chosen) - len(failed)} runs in {output}" if output != "-" else "")
    return PARTLY if failed else 0

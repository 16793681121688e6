"""Verdicts that the loss itself spells out, in place of the analysis, and what must then hang on a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtriage.model.curve import Curve, Triage
from runtriage.model.history import RunHistory
from runtriage.model.report import BaselineUse, Cause, Finding, Report, RunSummary, Tool
from runtriage.model.vocab import BaselineKind, CauseId, Explanation, FindingKind, Level, Severity

_KINDS = (FindingKind.LOSS_SPIKE, FindingKind.DIVERGENCE, FindingKind.PLATEAU, FindingKind.GRAD_SPIKE)
_FOUND: tuple[tuple[Level, tuple[tuple[FindingKind, int], ...]], ...] = (
    (Level.HEALTHY, ()),
    (Level.SUSPICIOUS, ((FindingKind.LOSS_SPIKE, 7),)),
    (Level.BROKEN, ((FindingKind.GRAD_SPIKE, 3), (FindingKind.DIVERGENCE, 9), (FindingKind.LOSS_SPIKE, 12))),
    (Level.WITHHELD, ()),
    (Level.WATCH, ((FindingKind.PLATEAU, 2),)),
    (Level.SUSPICIOUS, ((FindingKind.LOSS_SPIKE, 8),)),
)
CODES = len(_FOUND)
_HOSTILE = "<!-- runtriage:end -->\n<!-- runtriage:begin -->"


def spelt_out(histories: Sequence[RunHistory], **_: object) -> list[Triage]:
    """Return the verdicts that the last loss of each run says."""
    return [_triage(history, len(histories) - 1) for history in histories]


def is_flagged(code: int) -> bool:
    """Tell whether a person should look at a run whose loss says this."""
    return _FOUND[code][0] in (Level.SUSPICIOUS, Level.BROKEN, Level.WATCH)


def tags_for(code: int, siblings: int) -> dict[str, str]:
    """Return the tags that a run must have, but for the version and digests."""
    level, found = _FOUND[code]
    tags = {"runtriage.status": level.value, "runtriage.baseline": f"cohort:{siblings}" if siblings else "self"}
    if level == Level.WITHHELD:
        tags["runtriage.reason"] = "spelt out"
    if found:
        tags["runtriage.findings"] = ",".join(kind.value for kind, _ in found)
        tags["runtriage.first_step"] = str(min(start for _, start in found))
        tags["runtriage.cause"] = "bad_batch"
        tags["runtriage.loss.z_max"] = f"{max(start for _, start in found)}.0"
    return tags


def check_block(block: str, code: int) -> None:
    """Fail if a finding is not in a block, is there twice, or one that is none is there."""
    found = [kind for kind, _ in _FOUND[code][1]]
    for kind in _KINDS:
        assert block.count(f"seen as {kind}.") == (kind in found), (kind, block)


def _triage(history: RunHistory, siblings: int) -> Triage:
    info, track = history.info, history.tracks["loss"]
    code = int(track.value[-1])
    level, found = _FOUND[code]
    kind = BaselineKind.COHORT if siblings else BaselineKind.SELF
    report = Report(
        run=RunSummary(source=info.source, id=info.id, name=info.name, state=info.state, url=info.url),
        verdict=level, reason="spelt out", tool=Tool(version="1"),
        baseline=BaselineUse(kind=kind, runs=siblings, fingerprint="f"),
        findings=(*(_finding(kind, start) for kind, start in found), _by_design()),
    )
    step = np.arange(len(track.value), dtype=np.int64)
    return Triage(report=report, curves=(Curve(metric="loss", role="loss", step=step, value=track.value),))


def _finding(kind: FindingKind, start: int) -> Finding:
    severity = Severity.CRITICAL
    cause = Cause(id=CauseId.BAD_BATCH, weight=1.0, because=(_HOSTILE,))
    return Finding(
        kind=kind, metric=f"loss {_HOSTILE}", role="loss", start_step=start, peak_step=start, severity=severity,
        z=float(start), evidence=(f"seen as {kind}.",), causes=(cause,),
    )


def _by_design() -> Finding:
    return Finding(
        kind=FindingKind.STEP_DOWN, metric="loss", role="loss", start_step=0, peak_step=0, severity=Severity.INFO,
        z=5.0, explained_by=Explanation.LR_DECAY,
    )

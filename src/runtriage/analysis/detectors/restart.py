"""A log whose steps go back: an attempt was resumed from an earlier checkpoint, or a run id was used again."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import Form, RunView
from runtriage.model.vocab import FindingKind, Outcome, Role


def detect(view: RunView) -> list[Form]:
    """Report the first step to which the loss log went back."""
    loss = view.run.by_role.get(Role.LOSS)
    if loss is None or not loss.restarts:
        return []
    first = loss.restarts[0]
    cadence = float(np.median(np.diff(loss.step))) if loss.step.size > 1 else 1.0
    if loss.duplicates <= 1 and len(loss.restarts) == 1 and cadence > 0 and loss.step.size < 20:
        return []
    return [
        Form(
            kind=FindingKind.RESUME_DISCONTINUITY, role=Role.STEP, start=first, detected=first, peak=first, z=float("inf"),
            p=1e-6, outcome=Outcome.ONGOING, rank=1,
            evidence=(
                f"the step goes back {len(loss.restarts)} time(s), first to {first}; "
                f"{loss.duplicates} steps were logged more than once and the last write was kept",
            ),
            measures={"restarts": float(len(loss.restarts))},
        )
    ]

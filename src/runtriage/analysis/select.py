"""Which of several forms is the root, and which are its consequences.

A fault rarely leaves one trace: a schedule that starts over lifts the loss, swings it and spikes the norm. The form
that became certain first is the root; among those that begin together the nearer to the mechanism wins (``Form.rank``).
What comes later is a consequence and is told as evidence, except after a transient that healed, which explains nothing
that comes much later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from runtriage.analysis.form import DRIFT_RANK, LAST_RESORT, Form
from runtriage.model.phrase import phrase
from runtriage.model.vocab import Explanation, FindingKind, Outcome

_TOGETHER = 0.045
_SLOW = 0.2
_TOGETHER_STEPS = 15.0
_TOLD = 4
_EDGE = 1.6
_LEVELS = frozenset({FindingKind.STEP_UP, FindingKind.STEP_DOWN, FindingKind.BASELINE_DRIFT, FindingKind.PLATEAU})


def select(forms: list[Form], span: float, switches: Sequence[float] = ()) -> list[Form]:
    """Keep root forms and explained ones.

    Parameters
    ----------
    forms
        All that the detectors left.
    span
        Steps of the run, for what counts as beginning together.
    switches
        Steps at which the log announces other data: behind the first, levels are no longer the cohort's.
    """
    if switches:
        behind = min(switches) - _TOGETHER * span
        forms = [
            dataclasses.replace(f, explained_by=Explanation.DATA_SWITCH)
            if f.explained_by is None and f.kind in _LEVELS and f.detected >= behind else f
            for f in forms
        ]
    forms = [f for f in forms if not any(_is_edge(f, step) for step in forms)]
    explained = [f for f in forms if f.explained_by is not None]
    return _roots([f for f in forms if f.explained_by is None], span) + explained[:_TOLD]


def _is_edge(form: Form, step: Form) -> bool:
    """Tell whether a lasting spike of the loss is the edge of a step: no higher than it."""
    return (
        form.kind == FindingKind.LOSS_SPIKE and form.outcome == Outcome.DIVERGED and step.kind == FindingKind.STEP_UP
        and bool(step.measures.get("is_step")) and abs(form.start - step.start) <= _TOGETHER_STEPS
        and form.measures.get("rise", np.inf) < _EDGE * step.measures.get("final", 0.0)
    )


def _roots(forms: list[Form], span: float) -> list[Form]:
    if not forms:
        return []
    forms = [f for f in forms if f.rank < LAST_RESORT] or forms
    if any(f.rank < DRIFT_RANK and f.outcome != Outcome.RECOVERED for f in forms):
        forms = [f for f in forms if f.rank < DRIFT_RANK or f.outcome == Outcome.RECOVERED]
    together = max(_TOGETHER_STEPS, _TOGETHER * span)
    first = min(f.detected for f in forms)
    near = [f for f in forms if f.detected - first <= together or _came_slowly(f, first, span)]
    root = min(near, key=lambda f: (f.rank, f.detected))
    if root.outcome == Outcome.RECOVERED:
        # nor does a transient that healed leave behind what a run does not come back from
        lost = [f for f in forms if f.outcome == Outcome.DIVERGED and f.detected - root.detected <= 2 * together]
        root = min(lost, key=lambda f: (f.rank, f.detected), default=root)
        # a level that had long begun to move is not what a passing spike left behind
        older = [f for f in near if f.kind == FindingKind.BASELINE_DRIFT and f.start < root.start - together]
        root = min(older, key=lambda f: (f.rank, f.detected), default=root)
    if root.kind == FindingKind.LAYER_IMBALANCE:  # nor does a layer that falls behind hold back a run from its start
        older = [f for f in near if f.measures.get("from_start") and f.start < root.start - together]
        root = min(older, key=lambda f: (f.rank, f.detected), default=root)
    others = [f for f in forms if f is not root]
    out = [_with_consequences(root, [f for f in others if f.detected <= root.detected + 4 * together])]
    if root.outcome == Outcome.RECOVERED:
        rest = [f for f in others if f.detected > root.detected + 2 * together and f.outcome != Outcome.RECOVERED]
        out += [f for f in _roots(rest, span) if f.kind != FindingKind.PLATEAU]
    return out


def _came_slowly(form: Form, first: float, span: float) -> bool:
    """Tell whether a rise had begun before the first form was certain: a ramp is certain late by its nature."""
    return form.kind == FindingKind.DIVERGENCE and form.start <= first and form.detected - first <= _SLOW * span


def _with_consequences(root: Form, others: list[Form]) -> Form:
    told = tuple(phrase("with_it", kind=f.kind.value, role=f.role, start=f.start, z=f.z) for f in others[:4])
    return dataclasses.replace(root, evidence=root.evidence + told) if told else root


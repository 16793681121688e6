"""Sudden rises of single rows or short stretches, in the loss and in the grad norm."""

from __future__ import annotations

import dataclasses

import numpy as np

from runtriage.analysis.excursions import shared_steps, sharing_at
from runtriage.analysis.form import LAST_RESORT, Form, RunView
from runtriage.analysis.order_stats import median
from runtriage.analysis.spikes import LONE_INDEX, RISE, form_at, heaviest, spike_channels, usable_rows
from runtriage.model.phrase import phrase
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

_SHARED_Z = 8.0
_SHARED_LOOK = 12
_LONE_ROWS = 3
_BOTH = ((Role.LOSS, FindingKind.LOSS_SPIKE), (Role.GRAD_NORM, FindingKind.GRAD_SPIKE))


def detect(view: RunView) -> list[Form]:
    """Report the first remarkable spike of the loss and of the grad norm."""
    found: list[Form] = []
    for role, kind in _BOTH:
        for index in (LONE_INDEX, np.inf) if _telling(view, role, np.inf) else ():
            hit = _first(view, role, index)
            if hit is not None:
                form = form_at(view, role, kind, *hit)
                lone = index == np.inf and form.outcome == Outcome.RECOVERED
                if lone:
                    form = _lone(view, form)
                found.append(form)
                break
        shared = _shared(view, role, kind)
        if shared is not None and not any(f.role == role and f.explained_by for f in found):
            found.append(shared)
    return found


def _lone(view: RunView, form: Form) -> Form:
    """Weigh a spike that is remarkable by the measured tail only: mild, unless both roles leave for some rows.

    What is stated is the chance by the heavy tail. A lone batch lifts loss and norm together, so that both tell no more
    than one; but it is over with its row. Where it is not, the two have tails of their own: both are as rare as that
    somewhere in a run, let alone at one place, no more often than the square of the larger chance.
    """
    p = max(form.p, view.tails[f"{form.role}/1"].p_run(form.z, LONE_INDEX))
    other = view.tails.get(f"{Role.GRAD_NORM if form.role == Role.LOSS else Role.LOSS}/1")
    if other is not None and _rows(view, form) > _LONE_ROWS:
        both = max(p, other.p_run(form.measures["other_z"], LONE_INDEX)) ** 2
        if both <= view.spike_budget:
            return dataclasses.replace(form, p=both)
    return dataclasses.replace(form, mild=True, rank=LAST_RESORT, p=p)


def _rows(view: RunView, form: Form) -> int:
    """Rows from the start of a spike to its end."""
    a, b = np.searchsorted(view.own.step[f"{form.role}/1"], [form.start, np.inf if form.end is None else form.end])
    return int(b - a)


def _shared(view: RunView, role: str, kind: FindingKind) -> Form | None:
    """Look for the largest excursion that most siblings share: told, so that nobody wonders, and explained."""
    channel = f"{role}/1"
    if view.raw.largest.get(channel, 0.0) <= _SHARED_Z:
        return None
    held = [e for e in view.events.get(role, []) if e.size]
    if len(held) < 2:
        return None
    z, e, step = view.raw.z[channel], view.raw.residual[role], view.raw.step[channel]
    strong = np.flatnonzero((z > _SHARED_Z) & (e > RISE[role]))
    strong = strong[strong >= max(5, step.size // 50)]
    if not strong.size:
        return None
    cadence = float(median(np.diff(step))) if step.size > 1 else 1.0
    strong = strong[np.argsort(-z[strong])][:_SHARED_LOOK]
    sharing = sharing_at(held, step[strong], 1.5 * cadence)
    rows = [int(i) for i in strong[sharing >= max(2, (len(held) + 1) // 2)]]
    if not rows:
        return None
    top = rows[0]
    places = sorted({int(step[i]) for i in rows})
    return Form(
        kind=kind, role=role, start=int(step[top]), detected=int(step[top]), peak=int(step[top]),
        end=int(step[min(top + 1, step.size - 1)]),
        z=float(z[top]), p=1.0, outcome=Outcome.RECOVERED, explained_by=Explanation.SHARED_BATCH, rank=30,
        evidence=(
            phrase("spike.rise", role=role, factor=np.exp(e[top]), step=int(step[top]), z=z[top]),
            phrase(
                "spike.shared", sharing=shared_steps(held, float(step[top]), 1.5 * cadence), holders=len(held)
            ),
            phrase("spike.places", steps=", ".join(map(str, places[:6]))),
        ),
        measures={"rise": float(e[top]), "recurs": float(len(places))},
    )


def _first(view: RunView, role: str, lone_index: float) -> tuple[int, float, float] | None:
    """Row, z and p of the first excursion of a role beyond the budget, in any of its channels."""
    telling = _telling(view, role, lone_index)
    if not telling:
        return None
    channels = spike_channels(view, role)
    budget = view.spike_budget / len(channels)
    usable = usable_rows(view, role)
    if not usable.any():
        return None
    rows: list[tuple[int, float, float]] = []
    for channel in telling:
        z, tail = view.own.z[channel], view.tails[channel]
        for i in np.flatnonzero(usable & (z > tail.anchor)):
            p = tail.p_run(float(z[i]), heaviest(channel, lone_index))
            if p <= budget:
                rows.append((int(i), float(z[i]), p * len(channels)))
                break
    if not rows:
        return None
    row = min(r[0] for r in rows)
    near = [r for r in rows if r[0] <= row + 8]
    return row, max(r[1] for r in near), min(r[2] for r in near)


def _telling(view: RunView, role: str, lone_index: float) -> list[str]:
    """Channels of a role whose largest excursion is beyond the budget."""
    channels = spike_channels(view, role)
    budget = view.spike_budget / max(len(channels), 1)
    return [
        c for c in channels
        if view.tails[c].p_run(view.own.largest[c], heaviest(c, lone_index)) <= budget
    ]

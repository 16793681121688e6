"""Sudden rises of single rows or short stretches, in the loss and in the grad norm."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.excursions import JOINT, LEAD_BINS, WIDTHS, shared_steps
from runtriage.analysis.form import LAST_RESORT, Form, RunView
from runtriage.analysis.locate import middle
from runtriage.analysis.order_stats import median
from runtriage.model.phrase import phrase
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

RISE: dict[str, float] = {Role.LOSS: 0.1, Role.GRAD_NORM: 0.9}
"""Smallest rise in log units that is worth a word."""

_SHARED_Z = 8.0
_SHARED_LOOK = 12

LONE_INDEX = 3.0
"""Tail index taken for lone rows, however light the cohort's tail looks: the rarest batches are heavy-tailed.

A lone row that is remarkable only by the measured tail is told without an alarm.
"""

_RECOVERED_SHARE = 0.35


def detect(view: RunView) -> list[Form]:
    """Report the first remarkable spike of the loss and of the grad norm."""
    found: list[Form] = []
    for role, kind in ((Role.LOSS, FindingKind.LOSS_SPIKE), (Role.GRAD_NORM, FindingKind.GRAD_SPIKE)):
        for index in (LONE_INDEX, np.inf):
            hit = _first(view, role, index)
            if hit is not None:
                form = form_at(view, role, kind, *hit)
                lone = index == np.inf and form.outcome == Outcome.RECOVERED
                if lone:
                    # remarkable by the measured tail only: what is stated is the chance by the heavy one
                    p = max(form.p, view.tails[f"{role}/1"].p_run(form.z, LONE_INDEX))
                    form = dataclasses.replace(form, mild=True, rank=LAST_RESORT, p=p)
                found.append(form)
                break
        shared = _shared(view, role, kind)
        if shared is not None and not any(f.role == role and f.explained_by for f in found):
            found.append(shared)
    return found


def _shared(view: RunView, role: str, kind: FindingKind) -> Form | None:
    """Look for the largest excursion that most siblings share: told, so that nobody wonders, and explained."""
    channel = f"{role}/1"
    if channel not in view.raw.z or view.raw.z[channel].max(initial=0.0) <= _SHARED_Z:
        return None
    held = [e for e in view.events.get(role, []) if e.size]
    if len(held) < 2:
        return None
    z, e, step = view.raw.z[channel], view.raw.residual[role], view.raw.step[channel]
    cadence = float(median(np.diff(step))) if step.size > 1 else 1.0
    strong = np.flatnonzero((z > _SHARED_Z) & (e > RISE[role]))
    strong = strong[strong >= max(5, step.size // 50)]
    strong = strong[np.argsort(-z[strong])][:_SHARED_LOOK]
    rows = [int(i) for i in strong if shared_steps(held, float(step[i]), 1.5 * cadence) >= max(2, (len(held) + 1) // 2)]
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


def rarest(view: RunView, role: str) -> float:
    """Chance that a healthy run holds as rare an excursion of a role, in any of its channels."""
    channels = _channels(view, role)
    usable = usable_rows(view, role) if channels else np.zeros(0, dtype=bool)
    if not usable.any():
        return 1.0
    chances = [
        view.tails[c].p_run(float(view.own.z[c][usable].max()), _heaviest(c, LONE_INDEX)) for c in channels
    ]
    return min(1.0, min(chances) * len(channels))


def _channels(view: RunView, role: str) -> list[str]:
    if role not in view.own.residual:
        return []
    names = [f"{role}/{w}" for w in WIDTHS] + ([JOINT] if role == Role.LOSS else [])
    return [c for c in names if c in view.own.z and c in view.tails]


def _heaviest(channel: str, lone_index: float) -> float:
    """Heaviest tail index that is believed: a stretch of rows is no lone batch."""
    return np.inf if channel.endswith(f"/{WIDTHS[-1]}") else lone_index


def usable_rows(view: RunView, role: str) -> NDArray[np.bool_]:
    """Rows behind the start that rise by more than is worth a word."""
    e, step = view.own.residual[role], view.own.step[f"{role}/1"]
    lead = max(5, int(np.searchsorted(step, view.axis.edges[min(LEAD_BINS, view.axis.bins)])))
    usable = np.zeros(e.size, dtype=bool)
    usable[lead:] = e[lead:] > RISE[role]
    return usable


def _first(view: RunView, role: str, lone_index: float) -> tuple[int, float, float] | None:
    """Row, z and p of the first excursion of a role beyond the budget, in any of its channels."""
    channels = _channels(view, role)
    if not channels:
        return None
    budget = view.spike_budget / len(channels)
    telling = [
        c for c in channels
        if view.tails[c].p_run(float(view.own.z[c].max(initial=0.0)), _heaviest(c, lone_index)) <= budget
    ]
    if not telling:
        return None
    usable = usable_rows(view, role)
    if not usable.any():
        return None
    rows: list[tuple[int, float, float]] = []
    for channel in telling:
        z, tail = view.own.z[channel], view.tails[channel]
        for i in np.flatnonzero(usable & (z > tail.anchor)):
            p = tail.p_run(float(z[i]), _heaviest(channel, lone_index))
            if p <= budget:
                rows.append((int(i), float(z[i]), p * len(channels)))
                break
    if not rows:
        return None
    row = min(r[0] for r in rows)
    near = [r for r in rows if r[0] <= row + 8]
    return row, max(r[1] for r in near), min(r[2] for r in near)


def form_at(view: RunView, role: str, kind: FindingKind, row: int, z: float, p: float) -> Form:
    """Describe the spike that a row of a role belongs to: its start, peak and end, what it leaves, and who shares it.

    Parameters
    ----------
    view, role, kind
        Where, and what to call it.
    row
        A row of it.
    z, p
        Size, and chance that a healthy run shows it.
    """
    e, step, unit = view.own.residual[role], view.own.step[f"{role}/1"], view.own.z[f"{role}/1"]
    n = e.size
    first = row
    while first > 1 and unit[first - 1] > 4.0:
        first -= 1
    value = view.sketch.rows[role][1]
    centre = view.centre.get(role)
    if centre is not None and np.isfinite(centre).any():
        known = np.isfinite(centre)
        value = value - np.interp(step, view.axis.mid[known], centre[known])
    before = middle(value, first - 60, first)
    stop = min(n, row + 30)
    peak = row + int(np.nanargmax(e[row:stop]))
    rise = float(value[peak] - before) if np.isfinite(value[peak]) else float(e[peak])
    later = value[min(n, peak + max(20, n // 20)) :]
    later = later[: max(50, n // 5)]
    settled = later[np.isfinite(later)]
    stays = float(median(settled) - before) if settled.size else 0.0
    recovered = stays < _RECOVERED_SHARE * max(rise, 1e-9)
    ends = np.flatnonzero(np.nan_to_num(unit[peak:]) < 3.0)
    end = int(step[min(n - 1, peak + int(ends[0]))]) if ends.size and recovered else None
    cadence = float(median(np.diff(step))) if n > 1 else 1.0
    sharing = shared_steps(view.events.get(role, []), float(step[peak]), 1.5 * cadence)
    holders = sum(bool(x.size) for x in view.events.get(role, []))
    shared = recovered and holders >= 1 and sharing >= max(1, (holders + 1) // 2)
    other = _other_z(view, role, float(step[first]), float(step[min(n - 1, peak + 8)]))
    evidence = [phrase("spike.rise", role=role, factor=np.exp(rise), step=int(step[peak]), z=z)]
    if other is not None:
        name = Role.GRAD_NORM if role == Role.LOSS else Role.LOSS
        evidence.append(phrase("spike.other", other=name, z=other))
    if shared:
        evidence.append(phrase("spike.shared", sharing=sharing, holders=holders))
    return Form(
        kind=kind, role=role, start=int(step[first]), detected=int(step[first]), peak=int(step[peak]), end=end, z=z,
        p=p,
        outcome=Outcome.RECOVERED if recovered else Outcome.DIVERGED if role == Role.LOSS else Outcome.ONGOING,
        explained_by=Explanation.SHARED_BATCH if shared else None,
        rank=30 if recovered else 8 if role == Role.LOSS else 18, evidence=tuple(evidence),
        measures={
            "rise": rise, "stays": stays, "width": float(max(1, peak - first + 1)), "other_z": other or 0.0,
            "lead": _lead(view, role, float(step[first])), "recurs": float(_count(view, role, z)),
        },
    )


def _other_z(view: RunView, role: str, start: float, stop: float) -> float | None:
    """Largest z of the other role over the span of the spike."""
    channel = f"{Role.GRAD_NORM if role == Role.LOSS else Role.LOSS}/1"
    if channel not in view.own.z:
        return None
    a, b = np.searchsorted(view.own.step[channel], [start, stop])
    part = view.own.z[channel][max(0, a - 2) : b + 1]
    return float(part.max()) if part.size else None


def _lead(view: RunView, role: str, start: float) -> float:
    """Mean z of the grad norm over the ten rows before a loss spike: growth that came first."""
    channel = f"{Role.GRAD_NORM}/1"
    if role != Role.LOSS or channel not in view.own.z:
        return 0.0
    at = int(np.searchsorted(view.own.step[channel], start))
    part = view.own.z[channel][max(0, at - 10) : max(0, at - 1)]
    return float(part.mean()) if part.size else 0.0


def _count(view: RunView, role: str, z: float) -> int:
    """Bins with an excursion of at least half this one's size."""
    return int((view.own.peak[f"{role}/1"] > 0.5 * z).sum())

"""What a spike is, for every detector of spikes: which rows rise enough, how rare they are, how one is described."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runtriage.analysis.excursions import JOINT, LEAD_BINS, WIDTHS, shared_steps
from runtriage.analysis.form import Form, RunView
from runtriage.analysis.locate import middle
from runtriage.analysis.order_stats import median
from runtriage.model.phrase import phrase
from runtriage.model.vocab import Explanation, FindingKind, Outcome, Role

RISE: dict[str, float] = {Role.LOSS: 0.1, Role.GRAD_NORM: 0.9}
"""Smallest rise in log units that is worth a word."""

LONE_INDEX = 3.0
"""Tail index taken for lone rows, however light the cohort's tail looks: the rarest batches are heavy-tailed.

A lone row that is remarkable only by the measured tail is told without an alarm.
"""

_RECOVERED_SHARE = 0.35


def rarest(view: RunView, role: str) -> float:
    """Chance that a healthy run holds as rare an excursion of a role, in any of its channels."""
    names = spike_channels(view, role)
    usable = np.flatnonzero(usable_rows(view, role)) if names else np.empty(0, np.intp)
    if not usable.size:
        return 1.0
    chances = [
        view.tails[c].p_run(float(view.own.z[c][usable].max()), heaviest(c, LONE_INDEX)) for c in names
    ]
    return min(1.0, min(chances) * len(names))


def spike_channels(view: RunView, role: str) -> list[str]:
    """Return the channels in which spikes of a role are looked for."""
    if role not in view.own.residual:
        return []
    names = [f"{role}/{w}" for w in WIDTHS] + ([JOINT] if role == Role.LOSS else [])
    return [c for c in names if c in view.own.z and c in view.tails]


def heaviest(channel: str, lone_index: float) -> float:
    """Heaviest tail index that is believed: a stretch of rows is no lone batch."""
    return np.inf if channel.endswith(f"/{WIDTHS[-1]}") else lone_index


def usable_rows(view: RunView, role: str) -> NDArray[np.bool_]:
    """Rows behind the start that rise by more than is worth a word."""
    e, step = view.own.residual[role], view.own.step[f"{role}/1"]
    lead = max(5, int(np.searchsorted(step, view.axis.edges[min(LEAD_BINS, view.axis.bins)])))
    usable = np.zeros(e.size, dtype=bool)
    usable[lead:] = e[lead:] > RISE[role]
    return usable


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
        value = value - view.sketch.along(role, view.axis, centre)
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
    alone = float(unit[peak])  # z may be of a stretch, of both roles, or of the noise
    other = _other_z(view, role, float(step[first]), float(step[min(n - 1, peak + 8)]))
    evidence = [phrase("spike.rise", role=role, factor=np.exp(rise), step=int(step[peak]), z=alone)]
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
            "lead": _lead(view, role, float(step[first])), "recurs": float(max(1, _count(view, role, max(z, alone)))),
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

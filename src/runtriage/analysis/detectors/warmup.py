"""A loss that climbs while the learning rate warms up and the cohort's falls."""

from __future__ import annotations

import numpy as np

from runtriage.analysis.form import Form, RunView
from runtriage.analysis.locate import middle
from runtriage.analysis.order_stats import Array
from runtriage.model.phrase import phrase
from runtriage.model.vocab import FindingKind, Outcome, Role

_LEAST = 0.08
_Z = 2.0


def detect(view: RunView) -> list[Form]:
    """Report a rise over the running minimum within twice the warm-up that the cohort's centre does not have."""
    if not view.has_cohort or Role.LOSS not in view.z or view.schedule is None:
        return []
    if not (view.z[Role.LOSS] >= view.limit(Role.LOSS)).any():
        return []
    usual_phases = view.usual_phases
    if not usual_phases or usual_phases[0].name != "warmup":
        return []
    stop = 2 * usual_phases[0].end_step - usual_phases[0].start_step
    bins = max(4, int(np.searchsorted(view.axis.edges, stop)))
    level, centre, z = view.sketch.level[Role.LOSS][:bins], view.centre[Role.LOSS][:bins], view.z[Role.LOSS][:bins]
    own, usual = _rise(level), _rise(centre)
    hot = np.flatnonzero((own > _LEAST + 2.0 * np.nan_to_num(usual)) & (np.nan_to_num(z) > _Z))
    if hot.size < 3 or bins > view.axis.bins:
        return []
    peak_z = float(np.nanmax(z[hot]))
    if peak_z < view.limit(Role.LOSS):
        return []
    start = int(view.axis.edges[0])
    rise = float(own[hot].max())
    return [
        Form(
            kind=FindingKind.WARMUP_RISE, role=Role.LOSS, start=start, detected=start,
            peak=int(view.axis.mid[hot[int(np.argmax(own[hot]))]]),
            z=peak_z, p=view.p_level(Role.LOSS, peak_z),
            outcome=Outcome.RECOVERED if abs(middle(view.z[Role.LOSS], bins, view.axis.bins)) < _Z else Outcome.ONGOING,
            rank=4, evidence=(phrase("warm.rise", factor=np.exp(rise)),),
            measures={"rise": rise, "from_start": 1.0},
        )
    ]


def _rise(level: Array) -> Array:
    filled = np.where(np.isfinite(level), level, np.inf)
    lowest = np.minimum.accumulate(filled)
    return np.where(np.isfinite(level), level - lowest, 0.0)

"""What the exporter serves: the newest facts of each run in Prometheus' text format. Pure.

Rules are evaluated by the exporter and not in PromQL: Prometheus sees what is there when it scrapes, and a run logs
many points between two scrapes. ``runtriage_rule_firing`` is 1 when a rule fired on any point since the time before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from runtriage.model.vocab import LEVEL_ORDER, Level

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABEL_LIMIT = 120
"""Characters of a label value; names of runs and metrics are cut to it."""

_WITHHELD = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSample:
    """The newest facts of one run.

    Attributes
    ----------
    run_id, name, config
        The run and the fingerprint of its config; id and name are hostile input.
    running
        Whether points are still to be expected.
    verdict
        As last judged, or None.
    step
        Newest step, or None.
    last_point
        When it was logged, seconds since the epoch, or None without a clock.
    values
        Role to metric name and newest value.
    z
        Role to the newest value's distance from the middle of the cohort's band, in standard deviations.
    firing
        Rule id to whether it fires.
    """

    run_id: str
    name: str
    config: str
    running: bool
    verdict: Level | None = None
    step: int | None = None
    last_point: float | None = None
    values: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    z: Mapping[str, float] = field(default_factory=dict)
    firing: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The exporter's own state.

    Attributes
    ----------
    refreshed
        When the source was last read whole, seconds since the epoch; 0.0 for never.
    left_out
        Runs that are not exported because there are too many.
    failures
        Runs that could not be read the last time.
    expires
        Rule id to the moment at which it should be derived again, seconds since the epoch.
    """

    refreshed: float = 0.0
    left_out: int = 0
    failures: int = 0
    expires: Mapping[str, float] = field(default_factory=dict)


_Sample = tuple[Mapping[str, str], float]


def render_exposition(runs: Sequence[RunSample], health: Health) -> str:
    """Return the page that Prometheus scrapes.

    Parameters
    ----------
    runs
        Those to export; an id that comes twice is exported once.
    health
        The exporter's own state.
    """
    unique = list({run.run_id: run for run in runs}.values())
    families: tuple[tuple[str, str, Sequence[_Sample]], ...] = (
        ("run_info", "Name of a run.", [({**_who(run), "name": run.name}, 1.0) for run in unique]),
        ("run_running", "Whether more points of a run are expected.", [(_who(r), float(r.running)) for r in unique]),
        (
            "run_verdict", "0 healthy, 1 watch, 2 suspicious, 3 broken, -1 withheld.",
            [(_who(run), _level(run.verdict)) for run in unique if run.verdict is not None],
        ),
        ("run_step", "Newest step of a run.", [(_who(r), float(r.step)) for r in unique if r.step is not None]),
        (
            "run_last_point_timestamp_seconds", "When a run logged its newest point.",
            [(_who(run), run.last_point) for run in unique if run.last_point is not None],
        ),
        (
            "metric_value", "Newest value of a metric.",
            [({**_who(r), "role": role, "metric": m}, v) for r in unique for role, (m, v) in sorted(r.values.items())],
        ),
        (
            "metric_zscore", "Newest value against the cohort's band, in standard deviations.",
            [({**_who(run), "role": role}, z) for run in unique for role, z in sorted(run.z.items())],
        ),
        (
            "rule_firing", "Whether an alert rule fires on a run.",
            [({**_who(run), "rule": rule}, float(on)) for run in unique for rule, on in sorted(run.firing.items())],
        ),
        (
            "rule_expires_timestamp_seconds", "When a rule should be derived again.",
            [({"rule": rule}, when) for rule, when in sorted(health.expires.items())],
        ),
        ("exporter_refreshed_timestamp_seconds", "When the source was last read.", [({}, health.refreshed)]),
        ("exporter_runs_left_out", "Runs beyond the limit, not exported.", [({}, float(health.left_out))]),
        ("exporter_runs_failed", "Runs that could not be read the last time.", [({}, float(health.failures))]),
    )
    return "".join(_family(f"runtriage_{name}", about, samples) for name, about, samples in families)


def label_value(text: str) -> str:
    r"""Return a label value in its quotes.

    Examples
    --------
    >>> print(label_value('a"b\\c\nd'))
    "a\"b\\c?d"
    """
    flat = "".join(c if c.isprintable() else "?" for c in text)
    cut = flat if len(flat) <= LABEL_LIMIT else flat[: LABEL_LIMIT - 1] + "…"
    return '"' + cut.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _who(run: RunSample) -> dict[str, str]:
    return {"run": run.run_id, "config": run.config}


def _level(verdict: Level | None) -> float:
    return float(LEVEL_ORDER.index(verdict)) if verdict in LEVEL_ORDER else _WITHHELD


def _family(name: str, about: str, samples: Iterable[_Sample]) -> str:
    lines = [f"{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples]
    return f"# HELP {name} {about}\n# TYPE {name} gauge\n{''.join(lines)}" if lines else ""


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{key}={label_value(value)}" for key, value in labels.items()) + "}" if labels else ""


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(float(value)) if math.isfinite(value) else ("+Inf" if value > 0 else "-Inf")

"""The saved view of an experiment, in words that any tracker may translate: name, filter, columns, charts. Pure.

The value is the JSON object that :mod:`runtriage.trackers.mlflow.view` compiles into the form of MLflow's own pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from runtriage.model.report import Report
from runtriage.model.vocab import Level, Role
from runtriage.outputs import tags

_CHARTS = (Role.LOSS, Role.GRAD_NORM, Role.LR, Role.VAL_LOSS)
_NAMES_A_ROLE = 2
_NAME_LIMIT = 250
_COLUMNS = (tags.STATUS, tags.FINDINGS, tags.CAUSE, tags.FIRST_STEP, tags.z_max(Role.GRAD_NORM))


def render_view(reports: Sequence[Report]) -> str:
    """Return the view "runtriage: flagged runs": columns with our tags, a filter, and charts of the curves judged.

    Parameters
    ----------
    reports
        Of the experiment's runs; they tell which metrics are its loss, gradient norm and learning rate.
    """
    view = {
        "name": tags.VIEW_NAME,
        "filter": " AND ".join(f"tags.`{tags.STATUS}` != '{level}'" for level in (Level.HEALTHY, Level.WITHHELD)),
        "columns": [f"tags.`{key}`" for key in _COLUMNS],
        "charts": [{"metric": name, "log": role != Role.LR} for role, name in chart_metrics(reports)],
    }
    return msgspec.json.encode(view).decode()


def chart_metrics(reports: Sequence[Report]) -> list[tuple[Role, str]]:
    """Return the metrics to chart: per role the names that most runs use.

    Parameters
    ----------
    reports
        Of the experiment's runs, in any order.
    """
    out: list[tuple[Role, str]] = []
    for role in _CHARTS:
        count = Counter(name for report in reports for name, meant in report.series.items() if meant == role)
        ranked = sorted(count, key=lambda name: (-count[name], name))
        out += [(role, name) for name in ranked[:_NAMES_A_ROLE] if len(name) <= _NAME_LIMIT and name.isprintable()]
    return out

"""The saved view of the runs page, as MLflow's own pages (3.15 and later) keep it: one tag of the experiment. Pure.

What to show arrives as our tag ``runtriage.view``: a JSON object, all of whose members may be missing::

    {"name": "...", "filter": "...", "columns": ["tags.`runtriage.status`", "metrics.`loss`"], "charts": ["loss"]}

A chart may be an object ``{"metric": "loss", "log": true}``. The form MLflow wants is internal to its pages, so nothing
else depends on it: older servers show nothing, and a view that a person has changed since is left alone.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from runtriage.errors import MarkWriteError
from runtriage.model.marks import OWN_PREFIX

VIEW_ID = "runtriage-flagged"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_ID}"
NAME = "runtriage: flagged runs"

_STATUS, _FINDINGS = f"tags.`{OWN_PREFIX}status`", f"tags.`{OWN_PREFIX}findings`"
_FLAGGED = f"{_STATUS} != 'healthy'"  # a run that lacks the tag does not match either
_SECTION = "runtriage-section"
_DEFLATED = "deflate;"
_RUNS_COMPARED = 10


class _Chart(msgspec.Struct, frozen=True):
    metric: str
    log: bool = False


class _Wanted(msgspec.Struct, frozen=True):
    name: str = NAME
    filter: str = _FLAGGED
    columns: tuple[str, ...] = (_STATUS, _FINDINGS)
    charts: tuple[_Chart | str, ...] = ()


class _Envelope(msgspec.Struct):
    name: str = ""
    createdAt: int = 0  # noqa: N815  MLflow's spelling
    state: str = ""


def compile_view(wanted: str, created_at: int) -> str:
    """Return the value of :data:`VIEW_TAG` for a value of ``runtriage.view``.

    Parameters
    ----------
    wanted
        JSON as described above.
    created_at
        Milliseconds since the epoch, shown by MLflow beside the name.

    Raises
    ------
    MarkWriteError
        Not JSON of that shape.
    """
    try:
        view = msgspec.json.decode(wanted, type=_Wanted)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise MarkWriteError(f"the view to be saved cannot be read: {error}", where=f"{OWN_PREFIX}view") from error
    charts = [chart if isinstance(chart, _Chart) else _Chart(chart) for chart in view.charts]
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(_state(view, charts)), 9)).decode("ascii")
    return msgspec.json.encode(_Envelope(view.name, created_at, _DEFLATED + packed)).decode()


def state_digest(value: str) -> str:
    """Return the digest of what a saved view shows, whenever and by whom it was saved, however it is packed."""
    try:
        envelope = msgspec.json.decode(value, type=_Envelope)
        packed = envelope.state.removeprefix(_DEFLATED)
        shown = envelope.name.encode() + b"\0" + zlib.decompress(base64.b64decode(packed, validate=True))
    except (ValueError, zlib.error):
        shown = value.encode("utf-8", "surrogatepass")
    return hashlib.sha256(shown).hexdigest()[:16]


def created_at(value: str | None) -> int | None:
    """Return when a saved view was made, None if that cannot be told."""
    try:
        return msgspec.json.decode(value or "", type=_Envelope).createdAt or None
    except ValueError:
        return None


def _state(view: _Wanted, charts: Sequence[_Chart]) -> dict[str, Any]:
    section = {"uuid": _SECTION, "name": "runtriage", "display": True, "isReordered": False, "deleted": False}
    return {
        "searchFilter": view.filter,
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(view.columns),
        "compareRunCharts": [_line(number, chart) for number, chart in enumerate(charts)],
        "compareRunSections": [{**section, "isGenerated": False}],
        "runsHiddenMode": "SHOW_ALL",
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "useGroupedValuesInCharts": False,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": False,
        "chartsSearchFilter": "",
        "globalLineChartConfig": {},
    }


def _line(number: int, chart: _Chart) -> dict[str, Any]:
    return {
        "uuid": f"{VIEW_ID}-{number}",
        "type": "LINE",
        "runsCountToCompare": _RUNS_COMPARED,
        "metricSectionId": _SECTION,
        "deleted": False,
        "isGenerated": False,
        "metricKey": chart.metric,
        "selectedMetricKeys": [chart.metric],
        "lineSmoothness": 0,
        "xAxisScaleType": "linear",
        "scaleType": "log" if chart.log else "linear",
        "range": {},
        "xAxisKey": "step",
        "selectedXAxisMetricKey": "",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "ignoreOutliers": False,
        "useGlobalXaxisKey": False,
        "useGlobalLineSmoothing": False,
        "selectedYAxisMetricKey": "metric",
    }

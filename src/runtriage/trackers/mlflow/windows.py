"""Histories by windows of steps: for the server a third cheaper than pages, where nothing can have been left out.

``metrics/get-history-bulk-interval`` samples without a word: newer servers the rows of a window, if there are more than
were asked for, older ones its steps. A window of fewer steps than that, answered with fewer rows, was not sampled by
either. Both always send a window's first row, so the first window is open to below and shows if there are steps below
zero; the last one is open to above. Windows do not move while rows come in, but their rows come by step: they are put
into the order of pages, by time stamp, step and value as stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtriage.trackers.mlflow import wire
from runtriage.trackers.mlflow.client import ApiError, MlflowClient
from runtriage.trackers.mlflow.rows import Rows

STEPS_PER_WINDOW = 2_400
_ROWS_ASKED = 2_500  # the most that servers give
_WORTH = 2 * STEPS_PER_WINDOW  # below, one page is as good
_DENSE = 0.5
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def read_windows(client: MlflowClient, run_id: str, key: str, last: int) -> Rows | None:
    """Return all rows of a metric in the order of pages, or None if that cannot be shown, or is not worth while.

    Parameters
    ----------
    client
        Server to ask.
    run_id, key
        The metric, of a run that is over.
    last
        Its highest step.

    Raises
    ------
    SourceError
        The server cannot be reached.
    """
    if last < _WORTH:
        return None
    parts: list[Rows] = []
    for start in range(0, last + 1, STEPS_PER_WINDOW):
        stop = start + STEPS_PER_WINDOW  # one behind
        found = _window(client, run_id, key, start or _LOWEST, stop - 1 if stop <= last else _HIGHEST)
        if found is None or len(found) >= _ROWS_ASKED or _is_sparse(found, min(stop, last + 1) - start):
            return None
        if len(found) and (found.step.min() < start or found.step.max() >= stop):
            return None
        parts.append(found)
    return _as_paged(parts)


def _window(client: MlflowClient, run_id: str, key: str, start: int, end: int) -> Rows | None:
    params: dict[str, Any] = {
        "run_ids": run_id, "metric_key": key, "start_step": start, "end_step": end, "max_results": _ROWS_ASKED,
    }  # fmt: skip
    try:
        return client.get("metrics/get-history-bulk-interval", params, wire.decode_history).rows
    except ApiError:  # a server without windows, or with other rights for them
        return None


def _is_sparse(rows: Rows, steps: int) -> bool:
    """Tell whether so few of a window's steps were logged that pages need fewer requests."""
    return len(rows) < _DENSE * steps


def _as_paged(parts: list[Rows]) -> Rows:
    step, stamp, value = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("step", "timestamp", "value")
    )
    stored = np.nan_to_num(value, nan=0.0)  # NaN is stored as zero with a flag, infinity as the largest double
    order = np.lexsort((stored, step, stamp))
    return Rows(step[order], stamp[order], value[order])

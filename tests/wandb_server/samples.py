"""A run that many tests use, and limits that make failures quick."""

from __future__ import annotations

import math
from typing import Any

from runtriage.trackers.wandb.bounded import Limits
from wandb_server.http import StandIn
from wandb_server.state import StoredRun

QUICK = Limits(attempt=2.0, retries=2, pause=0.2, call=20.0)
ROWS: list[dict[str, Any]] = [
    {
        "loss": 2.0 if i != 3 else math.nan,
        "n": {"a": i, "b": math.inf if i == 4 else 1},
        **({"x.y": i} if i % 2 else {}),
        "word": "w",
    }
    for i in range(12)
]


def put(server: StandIn, name: str = "r1", **fields: Any) -> StoredRun:
    """Put a run into the project team/p; with twelve rows of numbers in all their dresses unless others are given."""
    return server.world.add_run("team", "p", name, **{"rows": ROWS, **fields})

"""Run the stand-in as a process of its own, so that a benchmark does not pay for it.

``python -m wandb_server KIND RUNS ROWS LATENCY``
"""

from __future__ import annotations

import sys
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wandb_server.http import StandIn

NAMES = ("train/loss", "train/grad_norm", "train/lr", "train/tokens", "train/epoch")


def seed(server: StandIn, kind: str, runs: int, rows: int) -> None:
    """Put runs with five metrics on the server, exported or live."""
    rng = np.random.default_rng(0)
    for at in range(runs):
        if kind == "exported":
            columns = {
                "_step": np.arange(rows),
                "_timestamp": 1.796e9 + np.arange(rows),
                "_runtime": np.arange(rows) / 3,
            }
            columns |= {name: rng.normal(size=rows) for name in NAMES}
            buffer = BytesIO()
            pq.write_table(pa.table(columns), buffer)
            server.world.add_run(
                "team", "p", f"r{at}", partitions=[buffer.getvalue()], line_count=rows, last_step=rows - 1
            )
        else:
            values = rng.normal(size=(rows, len(NAMES))).tolist()
            run = server.world.add_run(
                "team", "p", f"r{at}", rows=[dict(zip(NAMES, row, strict=True)) for row in values], state="running"
            )
            run.texts = [server.world.text(row) for row in run.rows]


def main() -> None:
    """Serve until standard input is closed; print the address."""
    kind, runs, rows, latency = sys.argv[1], *map(float, sys.argv[2:5])
    with StandIn(latency=latency) as server:
        seed(server, kind, int(runs), int(rows))
        print(server.url, flush=True)  # noqa: T201
        for line in sys.stdin:
            print(dict(server.counts) if line.strip() == "counts" else "", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

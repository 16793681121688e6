"""A stand-in server together with the environment that makes the real client use it and nothing else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from wandb_server.http import StandIn
from wandb_server.state import Behaviour

KEY = "k" * 40


@contextmanager
def stand_in(behaviour: Behaviour | None = None, *, latency: float = 0.0) -> Iterator[StandIn]:
    """Run a server; inside, ``wandb`` finds its address, a key, and private folders."""
    with StandIn(behaviour, latency=latency) as server, tempfile.TemporaryDirectory(prefix="wandb-") as folder:
        ours = {f"WANDB_{name}_DIR": folder for name in ("CACHE", "DATA", "CONFIG", "ARTIFACT")}
        ours |= {
            "WANDB_BASE_URL": server.url,
            "WANDB_API_KEY": KEY,
            "WANDB_DIR": folder,
            "WANDB_SILENT": "true",
            "WANDB_MODE": "online",
        }
        ours |= {"WANDB_ERROR_REPORTING": "false"}
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield server
        finally:
            server.clear_faults()
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)

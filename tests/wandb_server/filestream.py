"""What a training process streams: history lines addressed by offset, summary, completion."""

from __future__ import annotations

import json
from typing import Any

from wandb_server.state import World


def write(world: World, key: tuple[str, str, str], body: dict[str, Any]) -> tuple[int, bytes]:
    """Apply one file-stream request."""
    with world.lock:
        run = world.runs.get(key)
        if run is None:
            return 404, b"{}"
        files = body.get("files") or {}
        if history := files.get("wandb-history.jsonl"):
            rows = [json.loads(line) for line in history["content"]]
            run.rows[history["offset"] :] = rows
        if summary := files.get("wandb-summary.json"):
            run.summary = world.text(json.loads(summary["content"][-1]))  # the whole summary: foreign keys are lost
        if body.get("complete"):
            run.state = "finished" if body.get("exitcode") == 0 else "failed"
        return 200, json.dumps({"exitcode": None, "limits": {}}).encode()

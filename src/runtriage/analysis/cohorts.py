"""Which runs belong together: a fingerprint of the config without what does not change training."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

IGNORED_KEYS: tuple[str, ...] = (
    r"(.*_)?seeds?",
    r"(random|rng|data|torch|numpy|np)_?(seed|state)",
    r"(.*_)?(dir|path|file|folder|url|uri|host|hostname|port|user|username|email)s?",
    r"(run|exp|experiment|project|group|job|trial|study)_?(name|id|notes?|description)",
    r"name|notes?|tags?|description|entity|project|author",
    r"(.*_)?(date|time|timestamp|started_at|created_at)",
    r"(log|logging|report|wandb|mlflow|tensorboard|comet|neptune)_?.*",
    r"(save|eval|checkpoint|ckpt)_?(steps|every|interval|freq|frequency|total_limit|strategy|strategy_steps)",
    r"resume(_.*)?|.*_from_checkpoint|init_from_ckpt|disable_tqdm|verbose|debug|num_workers|pin_memory|dataloader_.*",
    r"_.*|runtriage.*|git_.*|commit(_.*)?|.*_version|python|platform|cuda_visible_devices|local_rank|rank",
)
"""Patterns of keys (last part, lower case, full match) that do not change what is trained."""


def fingerprint(config: Mapping[str, Any], ignore: tuple[str, ...] = ()) -> str:
    """Return a short stable name of what a config trains.

    Parameters
    ----------
    config
        As logged; nested mappings are walked.
    ignore
        Further key patterns to leave out, as regular expressions on the last part or on the whole dotted key.

    Returns
    -------
    str
        Twelve hexadecimal digits, or ``""`` when nothing that identifies the training is left.

    Examples
    --------
    >>> fingerprint({"lr": 1e-3, "seed": 1}) == fingerprint({"seed": 2, "lr": 0.001})
    True
    """
    pattern = re.compile("|".join(f"(?:{p})" for p in (*IGNORED_KEYS, *ignore)))
    kept: dict[str, Any] = {}
    _walk("", config, pattern, kept)
    if not kept:
        return ""
    text = json.dumps(kept, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _walk(prefix: str, node: Mapping[str, Any], pattern: re.Pattern[str], kept: dict[str, Any]) -> None:
    for key, value in node.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        last = str(key).rsplit(".", 1)[-1].rsplit("/", 1)[-1].lower()
        contract = name.startswith("runtriage.contract")
        if not contract and (pattern.fullmatch(last) or pattern.fullmatch(name.lower())):
            continue
        if isinstance(value, Mapping):
            _walk(name, value, pattern, kept)
        else:
            kept[name] = _leaf(value)


def _leaf(value: Any) -> Any:
    """Return a value such that a whole number is the same with and without a decimal point: JSON drops it."""
    if isinstance(value, (list, tuple)):
        return [_leaf(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _leaf(item) for key, item in value.items()}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return repr(float(value))
        except OverflowError:
            return hex(int(value))
    return value

"""Hypothesis strategies for what people and trackers really write: hostile names, numbers and histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.vocab import RunState

HOSTILE_NAMES: tuple[str, ...] = (
    "train/loss",
    "loss",
    "grad_norm",
    "lr",
    "lm loss",
    "a.b",
    "<script>alert(1)</script>",
    "| a | b |",
    "[x](javascript:alert(1))",
    "../../etc/passwd",
    "\x1b[31mred\x1b[0m",
    "tab\tnewline\nreturn\r",
    "`code` *bold* _em_",
    "&amp;\"quoted\"'",
    "-->",
    "]]>",
    "\u202eevil",
    "日本語/損失",
    "🙂",
    " ",
    "{{7*7}}",
    "%s%n%00",
    "=cmd()",
    "x" * 500,
)
"""Names that were, or could be, logged; each means harm somewhere."""

HOSTILE_VALUES: tuple[float, ...] = (
    0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e300, -1e300, 1.7976931348623157e308,
    float("nan"), float("inf"), float("-inf"), 2.0**53 + 2, 3.4e38, 65504.0, 65520.0, 1e-8,
)  # fmt: skip
HOSTILE_STEPS: tuple[int, ...] = (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))


def names() -> st.SearchStrategy[str]:
    """Return names of metrics, runs, tags and config keys: never empty, without lone surrogates."""
    text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
    return st.one_of(st.sampled_from(HOSTILE_NAMES), text)


def values() -> st.SearchStrategy[float]:
    """Return logged values: every float there is, the hard ones often."""
    return st.one_of(st.sampled_from(HOSTILE_VALUES), st.floats(width=64), st.floats(0.1, 10.0))


def steps() -> st.SearchStrategy[int]:
    """Return steps: any int64, mostly small."""
    return st.one_of(st.integers(0, 1000), st.sampled_from(HOSTILE_STEPS), st.integers(-(2**63), 2**63 - 1))


@st.composite
def tracks(draw: st.DrawFn, *, max_size: int = 40) -> Track:
    """Return a track in any order, with steps repeated and going back, with or without a clock."""
    size = draw(st.integers(0, max_size))
    step = draw(st.one_of(st.just(list(range(size))), st.lists(steps(), min_size=size, max_size=size)))
    value = draw(st.lists(values(), min_size=size, max_size=size))
    wall = draw(st.one_of(st.none(), st.lists(st.floats(0, 2e9), min_size=size, max_size=size)))
    return Track(
        step=np.array(step, dtype=np.int64),
        value=np.array(value, dtype=np.float64),
        wall=None if wall is None else np.array(wall, dtype=np.float64),
    )


def configs() -> st.SearchStrategy[Mapping[str, Any]]:
    """Return configs: nested, with every kind of leaf that trackers deliver."""
    leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), values(), names())
    nested = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names(), inner, max_size=3),
        max_leaves=6,
    )
    return st.dictionaries(names(), nested, max_size=4)


@st.composite
def histories(draw: st.DrawFn, *, max_tracks: int = 4, max_size: int = 40) -> RunHistory:
    """Return a run with hostile facts and hostile curves."""
    info = RunInfo(
        source="memory:",
        id=draw(names()),
        name=draw(names()),
        state=draw(st.sampled_from(list(RunState))),
        config=draw(configs()),
        tags=draw(st.dictionaries(names(), names(), max_size=3)),
        started=draw(st.one_of(st.none(), st.floats(0, 2e9))),
    )
    found = draw(st.dictionaries(names(), tracks(max_size=max_size), max_size=max_tracks))
    notes = tuple(draw(st.lists(names(), max_size=2)))
    return RunHistory(info=info, tracks=found, notes=notes)

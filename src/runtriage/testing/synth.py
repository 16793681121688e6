"""Small made-up histories for tests: healthy training curves and ten ways to spoil them.

Curves are drawn, not trained, and come from the seed given and nothing else. They are clear cases on purpose: how well
faults are found is measured elsewhere, on trained runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.vocab import RunState

Curves = dict[str, NDArray[np.float64]]
CONFIG: Mapping[str, Any] = {"model": {"layers": 4, "width": 128}, "optimizer": "adamw", "lr": 3e-4, "batch_size": 32}


def healthy(
    seed: int = 0,
    *,
    steps: int = 400,
    run_id: str | None = None,
    config: Mapping[str, Any] = CONFIG,
    noise: float = 0.02,
    state: RunState = RunState.FINISHED,
) -> RunHistory:
    """Return a healthy run: warm-up and cosine decay, a falling loss, a grad norm that settles.

    Parameters
    ----------
    seed
        Decides the noise. The shape is that of the config and the same for every seed.
    steps
        Number of points of each of ``train/loss``, ``grad_norm`` and ``lr``.
    run_id
        ``run-SEED`` if not given.
    config
        Config of the run; ``seed`` is added.
    noise
        Relative standard deviation of the loss; the grad norm has five times as much.
    state
        State of the run.
    """
    return _history(_curves(seed, steps, noise), seed, run_id, config, state)


def cohort(
    count: int = 6, *, first_seed: int = 0, steps: int = 400, config: Mapping[str, Any] = CONFIG
) -> list[RunHistory]:
    """Return healthy runs of one config with different seeds."""
    return [healthy(first_seed + i, steps=steps, config=config) for i in range(count)]


def faulty(
    fault: str,
    seed: int = 100,
    *,
    steps: int = 400,
    onset: int | None = None,
    run_id: str | None = None,
    config: Mapping[str, Any] = CONFIG,
) -> RunHistory:
    """Return a run that is healthy until ``onset`` and then has a fault.

    Parameters
    ----------
    fault
        One of :data:`FAULTS`.
    seed, steps, run_id, config
        As for :func:`healthy`.
    onset
        First step of the fault; three fifths of the run if not given.

    Raises
    ------
    KeyError
        Unknown fault.
    """
    spoil = FAULTS[fault]
    curves = _curves(seed, steps, 0.02)
    spoil(curves, 3 * steps // 5 if onset is None else onset, np.random.default_rng([seed, 1]))
    return _history(curves, seed, run_id or f"{fault}-{seed}", config, RunState.FINISHED)


def history(
    tracks: Mapping[str, tuple[Any, Any]],
    *,
    run_id: str = "run",
    name: str = "",
    config: Mapping[str, Any] | None = None,
) -> RunHistory:
    """Return a history from plain lists.

    Parameters
    ----------
    tracks
        Metric name to steps and values.
    run_id, name, config
        Of the run; the name defaults to the id.

    Examples
    --------
    >>> history({"loss": ([0, 1], [2.0, 1.5])}).tracks["loss"].value.tolist()
    [2.0, 1.5]
    """
    made = {
        key: Track(step=np.array(step, dtype=np.int64), value=np.array(value, dtype=np.float64))
        for key, (step, value) in tracks.items()
    }
    info = RunInfo(source="memory:", id=run_id, name=name or run_id, state=RunState.FINISHED, config=dict(config or {}))
    return RunHistory(info=info, tracks=made)


def _curves(seed: int, steps: int, noise: float) -> Curves:
    rng = np.random.default_rng([seed, 0])
    t = np.arange(steps) / max(steps, 1)
    warm = np.minimum(1.0, (np.arange(steps) + 1) / max(1.0, 0.05 * steps))
    lr = 3e-4 * warm * (0.55 + 0.45 * np.cos(np.pi * t))
    loss = (1.8 + 2.6 * np.exp(-6.0 * t) + 1.5 * np.exp(-40.0 * t)) * np.exp(noise * rng.standard_normal(steps))
    norm = (0.6 + 1.5 * np.exp(-15.0 * t)) * np.exp(5 * noise * rng.standard_normal(steps))
    return {"train/loss": loss, "grad_norm": norm, "lr": lr}


def _history(
    curves: Curves, seed: int, run_id: str | None, config: Mapping[str, Any], state: RunState
) -> RunHistory:
    run_id = run_id or f"run-{seed}"
    step = np.arange(next(iter(curves.values())).size, dtype=np.int64)
    info = RunInfo(
        source="memory:", id=run_id, name=run_id, state=state, config={**config, "seed": seed}, started=1.7e9 + seed
    )
    return RunHistory(info=info, tracks={name: Track(step=step.copy(), value=value) for name, value in curves.items()})


def _spike(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    fall = np.exp(-np.arange(4) / 1.2)[: curves["lr"].size - at]
    curves["train/loss"][at : at + fall.size] *= 1 + 1.2 * fall
    curves["grad_norm"][at : at + fall.size] *= 1 + 15 * fall


def _divergence(curves: Curves, at: int, rng: np.random.Generator) -> None:
    left = curves["lr"].size - at
    rise = 1 - np.exp(-np.arange(left) / max(1.0, 0.1 * left))
    curves["train/loss"][at:] += 5.0 * rise * (1 + 0.05 * rng.standard_normal(left))
    curves["grad_norm"][at:] *= 1 + 30 * rise


def _nan(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    curves["train/loss"][at:] = np.nan
    curves["grad_norm"][at:] = np.nan


def _infinite_norm(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    curves["grad_norm"][at : at + 3] = np.inf


def _step_up(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    curves["train/loss"][at:] *= 1.35


def _plateau(curves: Curves, at: int, rng: np.random.Generator) -> None:
    left = curves["lr"].size - at
    curves["train/loss"][at:] = curves["train/loss"][at] * 1.25 * np.exp(0.005 * rng.standard_normal(left))
    curves["grad_norm"][at:] *= 0.02


def _explosion(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    curves["grad_norm"][at:] *= 40.0


def _oscillation(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    left = curves["lr"].size - at
    curves["train/loss"][at:] *= 1 + 0.35 * np.sin(np.arange(left) * 2 * np.pi / 8)


def _lr_reset(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    curves["lr"][at:] = 3e-4
    left = curves["lr"].size - at
    curves["train/loss"][at:] *= 1 + 0.5 * np.exp(-np.arange(left) / 15)


def _scope_change(curves: Curves, at: int, _rng: np.random.Generator) -> None:
    curves["grad_norm"][at:] *= 8.0 ** 0.5


FAULTS: dict[str, Callable[[Curves, int, np.random.Generator], None]] = {
    "spike": _spike,
    "divergence": _divergence,
    "nan": _nan,
    "infinite_norm": _infinite_norm,
    "step_up": _step_up,
    "plateau": _plateau,
    "explosion": _explosion,
    "oscillation": _oscillation,
    "lr_reset": _lr_reset,
    "scope_change": _scope_change,
}
"""Name of the fault to what it does to the curves from its first step on."""

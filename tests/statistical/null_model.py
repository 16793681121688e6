"""Healthy cohorts drawn from a model of training curves, and how large level departures get in them.

Run ``python -m tests.statistical.null_model`` to print the tables of :mod:`runtriage.analysis.null_table` anew (two
minutes). Loss: power law with a floor, multiplicative noise. Grad norm: lognormal with a slow wander. Runs of a cohort
share the law up to a run-to-run spread. Four kinds of noise, four spreads, four lengths, mixed evenly.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from runtriage.analysis.chance import rarity
from runtriage.analysis.compare import FLOOR, compare
from runtriage.analysis.departure import departures
from runtriage.analysis.null_table import CHANCES, RARITY_CHANCES
from runtriage.analysis.prepare import prepare
from runtriage.analysis.sketch import NOISE, make_axis, sketch
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import Role, RunState

KINDS = ("white", "ar", "heteroscedastic", "heavy_tailed")
SPREADS = (0.0, 0.01, 0.03, 0.1)
LENGTHS = (500, 1000, 2000, 4000)
Array = NDArray[np.float64]


def healthy_curves(rng: np.random.Generator, size: int, kind: str, spread: float, n: int) -> list[dict[str, Array]]:
    """Loss and grad norm of ``size`` healthy runs of one config."""
    floor, amp = rng.uniform(1.0, 2.5), rng.uniform(1.0, 7.0)
    tau, alpha = n * rng.uniform(0.008, 0.05), rng.uniform(0.5, 0.95)
    noise, phi = rng.uniform(0.006, 0.15), rng.uniform(0.3, 0.9) if kind == "ar" else 0.0
    wander = rng.uniform(0.05, 0.18)
    t, knots = np.arange(n, dtype=float), np.linspace(0, n - 1, 8)
    out = []
    for _ in range(size):
        z = rng.standard_normal(4) * spread
        mean = floor * np.exp(z[0]) + amp * np.exp(z[1]) * (1 + t / (tau * np.exp(3 * z[2]))) ** -alpha
        e = _ar1(rng, n, phi) * noise
        if kind == "heteroscedastic":
            e = e * np.linspace(1.6, 0.4, n)
        if kind == "heavy_tailed":
            e = e + (rng.random(n) < 0.003) * np.abs(rng.standard_t(3, n)) * noise * 2
        log_norm = (
            np.log(0.4) + 3 * z[3] + wander * np.interp(t, knots, rng.standard_normal(8)) + 0.2 * _ar1(rng, n, 0.25)
            + np.log1p(6 * np.exp(-t / (0.01 * n)))
        )
        out.append({Role.LOSS: mean * np.maximum(0.05, 1 + e), Role.GRAD_NORM: np.exp(log_norm)})
    return out


def healthy_histories(rng: np.random.Generator, size: int, kind: str, spread: float, n: int) -> list[RunHistory]:
    """Give the same as what a tracker would give."""
    step = np.arange(n)
    return [
        RunHistory(
            info=RunInfo(
                source="null:", id=f"r{i}", name=f"r{i}", state=RunState.FINISHED, config={"model": kind, "seed": i}
            ),
            tracks={name: Track(step=step, value=value) for name, value in curves.items()},
        )
        for i, curves in enumerate(healthy_curves(rng, size, kind, spread, n))
    ]


def full_logs(rng: np.random.Generator, runs: list[RunHistory]) -> list[RunHistory]:
    """Add what a thorough script logs besides: validation, parameter norm, update ratio and the norms of six layers."""
    n = runs[0].tracks[Role.LOSS].step.size
    every, knots, x = max(1, n // 40), np.linspace(0, n - 1, 8), np.arange(n)
    floor, gap, shares = rng.uniform(0.002, 0.02), rng.uniform(0.02, 0.2), rng.uniform(-1.5, 1.5, 6)
    out = []
    for run in runs:
        loss, norm = run.tracks[Role.LOSS], run.tracks[Role.GRAD_NORM]
        smooth = np.convolve(np.pad(loss.value, every, mode="edge"), np.ones(2 * every + 1) / (2 * every + 1), "valid")
        rows = x[every - 1 :: every]
        more = {
            "val_loss": smooth[rows] * np.exp(gap * rows / n + floor * rng.standard_normal(rows.size)),
            "param_norm": 40 * np.exp(floor * rng.standard_normal()) * (1 + np.sqrt(x / n)),
            "update_ratio": 1e-3 * np.exp(0.1 * _wander(rng, knots, x) + 0.05 * rng.standard_normal(n)),
        } | {
            f"grad_norm/layer.{i}": norm.value * np.exp(share + 0.1 * _wander(rng, knots, x) + 0.1 * _ar1(rng, n, 0.25))
            for i, share in enumerate(shares)
        }
        tracks = {
            name: Track(step=rows if value.size == rows.size else x, value=value) for name, value in more.items()
        }
        out.append(dataclasses.replace(run, tracks={**run.tracks, **tracks}))
    return out


def linked(rng: np.random.Generator, runs: list[RunHistory], correlation: float) -> list[RunHistory]:
    """Let the levels of loss and grad norm wander together in each run, as far as a correlation says."""
    n = runs[0].tracks[Role.LOSS].step.size
    knots, x = np.linspace(0, n - 1, 5), np.arange(n)
    out = []
    for run in runs:
        first, second = _wander(rng, knots, x), _wander(rng, knots, x)
        other = correlation * first + np.sqrt(1.0 - correlation**2) * second
        tracks = dict(run.tracks)
        for role, wander, size in ((Role.LOSS, first, 0.05), (Role.GRAD_NORM, other, 0.2)):
            tracks[role] = Track(step=tracks[role].step, value=tracks[role].value * np.exp(size * wander))
        out.append(dataclasses.replace(run, tracks=tracks))
    return out


def _wander(rng: np.random.Generator, knots: Array, x: NDArray[np.int64]) -> Array:
    return np.asarray(np.interp(x, knots, rng.standard_normal(knots.size)))


def departure_sizes(members: int, cohorts: int, seed: int) -> tuple[Array, Array]:
    """Largest z that three bins in a row pass, per healthy run and role: (levels, noise), any shape."""
    rng = np.random.default_rng([seed, members])
    levels, noises = [], []
    for i in range(cohorts):
        kind, spread = KINDS[i % 4], SPREADS[i // 4 % 4]
        n = int(rng.choice(LENGTHS))
        runs = [
            PreparedRun(
                info=RunInfo(source="", id=str(j)),
                by_role={k: Series(metric=k, role=k, step=np.arange(n), value=v) for k, v in curves.items()},
            )
            for j, curves in enumerate(healthy_curves(rng, members + 1, kind, spread, n))
        ]
        axis = make_axis(runs)
        sketches = [sketch(r, axis) for r in runs]
        roles = (Role.LOSS, Role.GRAD_NORM, NOISE + Role.LOSS)
        table = np.array([[s.level[role] for role in roles] for s in sketches])
        use = np.ones((members + 1, members + 1, axis.bins), dtype=bool)
        use[np.arange(members + 1), np.arange(members + 1)] = False
        moved = departures(table, table, use, np.array([FLOOR[role] for role in roles]), trusted=True)
        size = _three_in_a_row(moved.z)
        levels.append(size[:, :2].ravel())
        noises.append(size[:, 2])
    return np.concatenate(levels), np.concatenate(noises)


def rarities(cohorts: dict[int, int], seed: int) -> Array:
    """Return how remarkable healthy runs are, in cohorts of the given sizes and numbers, lean and full logs in turn."""
    found = []
    for size, count in cohorts.items():
        rng = np.random.default_rng([seed, size])
        for i in range(count):
            runs = healthy_histories(rng, size, KINDS[i % 4], SPREADS[i // 4 % 4], int(rng.choice(LENGTHS)))
            prepared = [prepare(run) for run in (full_logs(rng, runs) if i // 16 % 2 else runs)]
            found += [rarity(c.view, c.forms) for c in compare(prepared, None, 0.01)]
    return np.array(found)


def _three_in_a_row(z: Array) -> Array:
    out = np.zeros(z.shape[:-1])
    for sign in (1, -1):
        y = np.nan_to_num(z * sign)
        out = np.maximum(out, np.minimum(np.minimum(y[..., :-2], y[..., 1:-1]), y[..., 2:]).max(axis=-1))
    return out


def _ar1(rng: np.random.Generator, n: int, phi: float) -> Array:
    return np.asarray(lfilter([1.0], [1.0, -phi], rng.standard_normal(n) * np.sqrt(1 - phi * phi)))


def main() -> None:
    """Print the tables."""
    cohorts = {2: 6400, 3: 4800, 5: 3200, 10: 1920, 30: 640}
    sizes = {m: departure_sizes(m, c, seed=1) for m, c in cohorts.items()}
    lines = []
    for name, which in (("LEVEL_Z", 0), ("NOISE_Z", 1)):
        lines.append(f"{name}: dict[int, tuple[float, ...]] = {{")
        for m, pair in sizes.items():
            limits = ", ".join(f"{np.quantile(pair[which], 1 - p):.2f}" for p in CHANCES)
            lines.append(f"    {m}: ({limits}),")
        lines.append("}")
    quantiles = np.quantile(rarities({3: 480, 5: 288, 10: 144, 30: 48}, seed=2), RARITY_CHANCES)
    lines.append(f"RARITY: tuple[float, ...] = ({', '.join(f'{q:.3g}' for q in quantiles)})")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

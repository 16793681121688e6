"""What detectors measure on rows agrees with the plain loop, on any rows; and each kernel's negative twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtriage.analysis.derived import CLIP_TOP, CLIPPED_SHARE, derive
from runtriage.analysis.detectors.clipping import _pin
from runtriage.analysis.detectors.gaps import _widest
from runtriage.analysis.detectors.oscillation import _regular
from runtriage.analysis.order_stats import Array
from runtriage.analysis.schedule import phases, schedule_jumps
from runtriage.model.history import RunInfo
from runtriage.model.series import PreparedRun, Series
from runtriage.model.vocab import Role, RunState
from tests.oracles import naive_detectors as naive

NAN = float("nan")


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000), rows=st.integers(20, 130), swing=st.sampled_from([0.0, 1.0, 5.0]),
    period=st.floats(2.0, 30.0), missing=st.sampled_from([0, 7]), heavy=st.booleans(),
)
def test_swings_are_the_plain_loops(
    seed: int, rows: int, swing: float, period: float, missing: int, *, heavy: bool
) -> None:
    """Share and correlation of any stretch: noise of either tail, a trend, swings of any period, rows missing."""
    rng = np.random.default_rng(seed)
    e = (rng.standard_t(2, rows) if heavy else rng.normal(size=rows)) + 0.03 * np.arange(rows)
    e += swing * np.sin(2 * np.pi * np.arange(rows) / period)
    e[rng.choice(rows, missing, replace=False)] = np.nan
    expected = naive.regular(e.tolist())
    found = _regular(e, 0, rows)
    assert found[0] == expected[0]
    assert found[1:] == pytest.approx(expected[1:], rel=1e-8, abs=1e-10)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), period=st.floats(3.0, 15.0))
def test_swings_larger_than_their_noise_are_regular(seed: int, period: float) -> None:
    """Any period from three rows to a fifteenth of the stretch is seen."""
    e = np.random.default_rng(seed).normal(size=240) + 5 * np.sin(2 * np.pi * np.arange(240) / period)
    assert _regular(e, 0, 240)[0]


@pytest.mark.parametrize("drift", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(5))
def test_irregular_noise_is_no_swing(seed: int, drift: float) -> None:
    """The negative twin: as large, without a period, on a trend or not, and each row much like the one before."""
    noise = np.random.default_rng(seed).normal(size=245)
    e = 5 * (noise[5:] + 0.5 * noise[4:-1]) + drift * np.arange(240)
    assert not _regular(e, 0, 240)[0]


def levels(norm: Array, clipped: Array, step: Array, edges: Array, limit: float) -> dict[str, Array]:
    """Return the pseudo roles of a run that logs a norm, a clipped norm and its clip value."""
    info = RunInfo(source="drawn:", id="r", name="r", state=RunState.FINISHED, config={"max_grad_norm": limit})
    series = {
        role: Series(metric=role, role=role, step=step.astype(np.int64), value=value)
        for role, value in ((Role.GRAD_NORM, norm), (Role.GRAD_NORM_CLIPPED, clipped))
    }
    return derive(PreparedRun(info=info, by_role=series), edges, {})


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000), rows=st.integers(1, 120), bins=st.integers(1, 12), limit=st.floats(0.2, 3.0),
    missing=st.sampled_from([0.0, 0.3]),
)
def test_clipping_per_bin_is_the_plain_loops(seed: int, rows: int, bins: int, limit: float, missing: float) -> None:
    """Share of clipped rows and top of the clipped norm, with bins without rows and rows that are not finite."""
    rng = np.random.default_rng(seed)
    step = np.sort(rng.choice(1000, rows, replace=False)).astype(float)
    edges = np.sort(rng.choice(np.arange(-50, 1050), bins + 1, replace=False)).astype(float)
    norm = rng.lognormal(size=rows)
    norm[rng.random(rows) < missing] = np.nan
    clipped = np.minimum(norm, limit)
    found = levels(norm, clipped, step, edges, limit)
    plain = step.tolist(), norm.tolist()
    np.testing.assert_allclose(found[CLIPPED_SHARE], naive.clip_share(*plain, limit, edges.tolist()), rtol=1e-12)
    top = naive.clip_top(step.tolist(), clipped.tolist(), edges.tolist())
    np.testing.assert_allclose(found[CLIP_TOP], top, rtol=1e-9, atol=1e-12)


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 10_000), rows=st.integers(5, 300), start=st.floats(0.0, 1.0),
    leaky=st.sampled_from([0.0, 0.2, 0.6]), tied_before=st.sampled_from([0.0, 0.1, 0.5]),
    missing=st.sampled_from([0.0, 0.05]),
)
def test_pin_is_the_plain_loops(
    seed: int, rows: int, start: float, leaky: float, tied_before: float, missing: float
) -> None:
    """Any share of rows tied to the value before and behind any row; rows missing."""
    rng = np.random.default_rng(seed)
    value = rng.lognormal(size=rows)
    behind = np.arange(rows) >= start * rows
    value[np.where(behind, rng.random(rows) >= leaky, rng.random(rows) < tied_before)] = 1.0
    value[rng.random(rows) < missing] = np.nan
    expected, found = naive.pin(value.tolist()), _pin(value)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found[0] == expected[0]
        assert found[1:] == pytest.approx(expected[1:], rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_pin_begins_at_its_row(seed: int) -> None:
    """A norm that is logged behind a clip from a row on."""
    value = np.random.default_rng(seed).lognormal(size=500)
    value[300:] = np.minimum(value[300:] * 10, 1.0)
    found = _pin(value)
    assert found is not None
    assert abs(found[0] - 300) <= 2


@pytest.mark.parametrize("seed", range(5))
def test_norm_that_is_clipped_now_and_then_is_no_pin(seed: int) -> None:
    """The negative twin: a norm that reaches the clip value in a third of its rows, all along."""
    value = np.random.default_rng(seed).lognormal(size=500)
    assert _pin(np.minimum(value, np.quantile(value, 0.67))) is None


@pytest.mark.parametrize("seed", range(5))
def test_pin_tells_that_there_were_others_before(seed: int) -> None:
    """A norm that reaches its clip value in each second row and then in every row."""
    value = np.random.default_rng(seed).lognormal(size=500)
    value[300:] *= 100
    found = _pin(np.minimum(value, np.quantile(value[:300], 0.6)))
    assert found is not None
    assert 0.3 < found[3] < 0.5


rates = st.sampled_from([0.0, 1e-4, 1e-3, 1.04e-3, 1.06e-3, 3e-3, 2.97e-3, -1e-3, NAN, float("inf")])
schedules = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 8), rates), max_size=25).map(
    lambda parts: [(step + i, rate) for step, length, rate in parts for i in range(length)]
)


@settings(deadline=None, max_examples=300)
@given(rows=schedules)
def test_jumps_and_phases_are_the_plain_loops(rows: list[tuple[int, float]]) -> None:
    """Any stairs, in any order, with steps repeated and values that are not finite."""
    step, lr = [float(s) for s, _ in rows], [v for _, v in rows]
    assert schedule_jumps(step, lr).tolist() == naive.jumps(step, lr)
    found = [(p.name, p.start_step, p.end_step) for p in phases(step, lr)]
    assert found == naive.named_phases(step, lr)


@settings(deadline=None, max_examples=60)
@given(warm=st.integers(0, 200), rows=st.integers(300, 1500), floor=st.floats(0.0, 0.5), every=st.integers(1, 20))
def test_smooth_schedule_has_no_jump(warm: int, rows: int, floor: float, every: int) -> None:
    """The negative twin: a warm-up of any length before a cosine to any floor, logged at any cadence."""
    t = np.arange(0, rows * every, every)
    cosine = floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * t / t[-1]))
    assert not schedule_jumps(t, np.minimum(1.0, (t + 1) / (1 + warm * every)) * cosine).size


@settings(deadline=None, max_examples=200)
@given(
    widths=st.lists(st.sampled_from([1, 2, 3, 10, 19, 21, 60, 61, 400]), min_size=1, max_size=8),
    seed=st.integers(0, 10_000), cadence=st.integers(1, 10), even=st.integers(20, 300),
)
def test_hole_is_the_plain_loops(widths: list[int], seed: int, cadence: int, even: int) -> None:
    """Holes of any number and width, ties among them, in logs that keep their cadence or not."""
    gaps = np.concatenate([np.full(even, 1), widths]) * cadence
    step = np.concatenate([[0], np.random.default_rng(seed).permutation(gaps)]).cumsum().astype(float)
    assert _widest(step, float(step[-1])) == naive.hole(step.tolist(), float(step[-1]))


@settings(deadline=None, max_examples=60)
@given(cadence=st.integers(1, 50), late=st.integers(1, 50), rows=st.integers(50, 400), lost=st.integers(0, 18))
def test_change_of_cadence_is_no_hole(cadence: int, late: int, rows: int, lost: int) -> None:
    """The negative twin: a log that changes to another cadence half way, with a few rows lost in between."""
    first = np.arange(rows) * cadence
    step = np.concatenate([first, first[-1] + (1 + lost) * cadence + np.arange(rows) * late]).astype(float)
    assert _widest(step, float(step[-1])) is None

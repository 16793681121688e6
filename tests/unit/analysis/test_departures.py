"""Departures from a cohort and tails of excursions agree with the plain loop, on any cohort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtriage.analysis.departure import _SHORTH_SD, Departures, departures
from runtriage.analysis.order_stats import Array
from runtriage.analysis.tails import TailPool
from tests.oracles import naive_departures as naive

FLOOR = np.array([0.01, 0.3])


def drawn(seed: int, members: int, bins: int, missing: float) -> tuple[Array, Array, np.ndarray]:
    """Draw three candidates, members with bins missing and one far away, and who may serve whom where."""
    rng = np.random.default_rng(seed)
    member = rng.normal(size=(members, 2, bins)).cumsum(axis=2) * 0.1 + 0.2 * rng.normal(size=(members, 2, bins))
    member[0] += 3.0
    member[rng.random(member.shape) < missing] = np.nan
    candidate = rng.normal(size=(3, 2, bins))
    candidate[rng.random(candidate.shape) < missing] = np.nan
    use = rng.random((3, members, bins)) > missing
    use[2, -1] = False
    return candidate, member, use


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000), members=st.integers(1, 36), bins=st.sampled_from([1, 4, 11, 25, 60]),
    missing=st.sampled_from([0.0, 0.2, 0.9]), trusted=st.booleans(),
)
def test_departures_are_the_plain_loops(seed: int, members: int, bins: int, missing: float, *, trusted: bool) -> None:
    """Every statistic of every candidate, role and bin, with members missing, distrusted or far away."""
    candidate, member, use = drawn(seed, members, bins, missing)
    found = departures(candidate, member, use, FLOOR, trusted=trusted)
    for c, k in np.ndindex(3, 2):
        believed = np.where(use[c], member[:, k], np.nan).tolist()
        expected = naive.departure(
            candidate[c, k].tolist(), believed, float(FLOOR[k]), _SHORTH_SD.tolist(), trusted=trusted
        )
        for name, values in expected.items():
            np.testing.assert_allclose(getattr(found, name)[c, k], values, rtol=1e-7, atol=1e-9, err_msg=name)
        np.testing.assert_array_equal(found.members[c, k], np.isfinite(np.array(believed)).sum(axis=0))


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), trusted=st.booleans())
def test_nobody_else_changes_a_candidates_departure(seed: int, *, trusted: bool) -> None:
    """Candidates judged at once get what each gets alone."""
    candidate, member, use = drawn(seed, 5, 25, 0.1)
    together = departures(candidate, member, use, FLOOR, trusted=trusted)
    alone = departures(candidate[1:2], member, use[1:2], FLOOR, trusted=trusted)
    np.testing.assert_allclose(together.z[1], alone.z[0], rtol=1e-9, atol=1e-12)


def healthy(seed: int, shift: float) -> Departures:
    """Measure one run that lies ``shift`` off eight siblings, which differ by a tenth for good."""
    rng = np.random.default_rng(seed)
    levels = 0.1 * rng.normal(size=(9, 1, 1)) + 0.02 * rng.normal(size=(9, 1, 60))
    levels[0, :, 30:] += shift
    return departures(levels[:1], levels[1:], np.ones((1, 8, 60), bool), np.array([0.01]), trusted=True)


@pytest.mark.parametrize("seed", range(5))
def test_change_is_seen_beneath_the_distance_between_runs(seed: int) -> None:
    """A level that changes by as much as siblings differ for good departs by its change."""
    found = healthy(seed, 0.25)
    assert np.nanmedian(found.z[0, 0, 33:]) > 5.0


@pytest.mark.parametrize("seed", range(5))
def test_distance_that_stays_is_no_departure(seed: int) -> None:
    """The negative twin: a run that differs from its siblings as they do from each other."""
    assert np.nanmedian(np.abs(healthy(seed, 0.0).z)) < 3.0


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 10_000), bins=st.lists(st.integers(0, 90), max_size=12), own=st.integers(0, 60),
    missing=st.sampled_from([0.0, 0.3]), heavy=st.sampled_from([0.1, 0.5, 2.0]), z=st.floats(0.0, 500.0),
)
def test_tail_is_the_plain_loops(
    seed: int, bins: list[int], own: int, missing: float, heavy: float, z: float
) -> None:
    """Anchor, rate, index and chance, whoever is chosen, however heavy the tail and however few bins there are."""
    rng = np.random.default_rng(seed)
    members = [rng.pareto(1 / heavy, size) * (rng.random(size) >= missing) for size in [*bins, own]]
    chosen = rng.random(len(bins)) >= missing
    found = TailPool.of(members[:-1]).fit(chosen, members[-1])
    believed = [m.tolist() for m, c in zip(members[:-1], chosen, strict=True) if c]
    expected = naive.tail(believed, members[-1].tolist())
    assert (found.anchor, found.rate, found.index) == pytest.approx(expected, rel=1e-6)
    assert found.p_run(z) == pytest.approx(naive.chance(expected, z), rel=1e-4, abs=1e-12)


def test_tail_of_a_power_law_is_found() -> None:
    """Excursions drawn from a power law of index three have that tail."""
    rng = np.random.default_rng(0)
    pool = TailPool.of([2.0 * rng.random(400) ** (-1 / 3) for _ in range(8)])
    assert pool.fit(np.ones(8, bool), np.empty(0)).index == pytest.approx(3.0, rel=0.35)


def test_normal_noise_is_no_heavy_tail() -> None:
    """The negative twin: the largest of a hundred normal values fall off faster than any such law."""
    rng = np.random.default_rng(0)
    pool = TailPool.of([rng.normal(size=(200, 100)).max(axis=1) for _ in range(8)])
    assert pool.fit(np.ones(8, bool), np.empty(0)).index > 8.0

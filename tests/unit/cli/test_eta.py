"""How long a job still takes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from runtriage.cli.eta import Estimate, about

RUNS = 600
Job = Callable[[random.Random], Iterator[float]]


def steady(_: random.Random) -> Iterator[float]:
    """One piece a second."""
    return iter([1.0] * RUNS)


def uneven(chance: random.Random) -> Iterator[float]:
    """Pieces that take anything around a second."""
    return (chance.expovariate(1.0) for _ in range(RUNS))


def cohorts(chance: random.Random) -> Iterator[float]:
    """Nothing for a while, then a cohort at once."""
    left = RUNS
    while left:
        size = min(left, chance.randint(3, 30))
        left -= size
        yield from (size * chance.uniform(0.7, 1.3), *([0.0] * (size - 1)))


def slow_beginning(_: random.Random) -> Iterator[float]:
    """Begin with twenty pieces that take ten times as long."""
    return iter([10.0] * 20 + [1.0] * (RUNS - 20))


@pytest.mark.parametrize("job", [steady, uneven, cohorts, slow_beginning])
@pytest.mark.parametrize("seed", range(5))
def test_the_estimate_converges(job: Job, seed: int) -> None:
    """From the middle on the time said to be left is right to a quarter, or to what one cohort takes."""
    times = list(job(random.Random(seed)))
    end, now = sum(times), 0.0
    estimate = Estimate(RUNS, 0.0)
    for count, took in enumerate(times, 1):
        now += took
        estimate.add(now)
        said = estimate.seconds(now)
        at_the_end_of_a_burst = count == RUNS or times[count] > 0
        if count >= RUNS // 2 and at_the_end_of_a_burst:
            assert said == pytest.approx(end - now, rel=0.25, abs=35.0)


def test_waiting_makes_it_longer() -> None:
    """While nothing comes the time left does not shrink."""
    estimate = Estimate(100, 0.0)
    for second in range(1, 51):
        estimate.add(float(second))
    said = [estimate.seconds(now) for now in (50.0, 60.0, 100.0)]
    assert said == sorted(said, key=float)
    assert said[0] == pytest.approx(50.0)


@pytest.mark.parametrize("done", [0, 1])
def test_nothing_is_said_too_early(done: int) -> None:
    """Out of one piece nobody can tell."""
    estimate = Estimate(100, 0.0)
    for _ in range(done):
        estimate.add(30.0)
    assert estimate.seconds(40.0) is None


def test_what_is_remembered_does_not_grow_with_the_job() -> None:
    """A hundred thousand pieces leave a few hundred moments."""
    estimate = Estimate(100_000, 0.0)
    for second in range(100_000):
        estimate.add(float(second))
    assert len(estimate._times) < 700


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(2, "a few seconds left"), (7, "about 10 s left"), (61, "about 60 s left"), (119, "about 2 min left"),
     (7200, "about 2.0 h left")],
)  # fmt: skip
def test_times_are_said_roughly(seconds: float, said: str) -> None:
    """Nobody is told seconds of an hour."""
    assert about(seconds) == said

"""The pace at which a server is asked, on a clock of its own."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from runtriage.errors import SourceUnreachableError
from runtriage.trackers.pace import AdaptivePace, asked_wait, pace_of


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> AdaptivePace:
    return AdaptivePace("http://h", patience=60.0, clock=clock, sleep=clock.sleep, chance=lambda: 0.0)


def ask(pace: AdaptivePace, clock: Clock, status: int = 200, wait: float | None = None, seconds: float = 0.01) -> float:
    """Send one request; return how long it had to wait."""
    waited = pace.acquire()
    clock.now += seconds
    pace.feedback(status, seconds, wait)
    return waited


def test_nothing_holds_back_a_server_that_answers(pace: AdaptivePace, clock: Clock) -> None:
    """Without trouble no request waits."""
    assert sum(ask(pace, clock) for _ in range(500)) == 0
    assert math.isinf(pace.rate)


def test_what_the_server_asks_for_holds_for_everybody(pace: AdaptivePace, clock: Clock) -> None:
    """Whoever asks next waits as long as the one who was refused was told."""
    ask(pace, clock, 429, 7.0)
    assert pace.acquire() == pytest.approx(7.0)


def test_a_503_that_names_a_time_is_a_refusal(pace: AdaptivePace, clock: Clock) -> None:
    """A 503 without one is a fault of the server like others."""
    ask(pace, clock, 503)
    assert pace.refusals == 0
    ask(pace, clock, 503, 2.0)
    assert (pace.refusals, pace.acquire()) == (1, pytest.approx(2.0))


def test_a_refusal_halves_the_rate(pace: AdaptivePace, clock: Clock) -> None:
    """The new rate is half of that at which requests were really made."""
    for _ in range(40):
        ask(pace, clock, seconds=0.1)
    ask(pace, clock, 429, 0.0)
    assert pace.rate == pytest.approx(5.0, rel=0.2)


def test_refusals_of_one_burst_are_one_event(pace: AdaptivePace, clock: Clock) -> None:
    """What was on its way when the rate was cut does not cut it again."""
    for _ in range(8):
        pace.acquire()
    clock.now += 0.5
    pace.feedback(429, 0.5, 1.0)
    after_one = pace.rate
    for _ in range(7):
        pace.feedback(429, 0.5, 1.0)
    assert pace.rate == after_one


def test_a_sweep_that_begins_with_refusals_does_not_crawl(pace: AdaptivePace, clock: Clock) -> None:
    """Four refusals in a row are waited out, and then nothing holds the requests back that follow."""
    for _ in range(4):
        ask(pace, clock, 429)
    ask(pace, clock)
    assert sum(ask(pace, clock) for _ in range(50)) == 0.0


def test_refusals_in_a_row_halve_the_rate_once(pace: AdaptivePace, clock: Clock) -> None:
    """It is the pauses between them that grow."""
    for _ in range(100):
        ask(pace, clock, seconds=0.1)
    ask(pace, clock, 429)
    once = pace.rate
    waits = [ask(pace, clock, 429) for _ in range(3)]
    assert (waits, pace.rate) == (sorted(waits), once)


def test_the_rate_comes_back_slowly(pace: AdaptivePace, clock: Clock) -> None:
    """After a minute of good answers the rate is above what it was cut to, and was never raised at once."""
    for _ in range(50):
        ask(pace, clock, seconds=0.1)
    ask(pace, clock, 429, 0.0)
    low = pace.rate
    ask(pace, clock, seconds=0.1)
    assert pace.rate < 1.2 * low
    for _ in range(300):
        ask(pace, clock, seconds=0.1)
    assert pace.rate > 1.3 * low


def test_patience_ends(pace: AdaptivePace, clock: Clock) -> None:
    """No request waits for longer in all than it may, and the error says what was tried."""
    spent: list[float] = []

    def for_ever() -> None:
        for _ in range(100):
            spent.append(pace.acquire(sum(spent)))
            pace.feedback(429, 0.0)

    with pytest.raises(SourceUnreachableError, match=r"said so \d+ times \(429\)"):
        for_ever()
    assert sum(spent) <= 60.0


def test_rising_answer_times_slow_it_down(pace: AdaptivePace, clock: Clock) -> None:
    """Answers that take many times their floor, with many requests in flight, cut the rate."""
    for _ in range(20):
        ask(pace, clock, seconds=0.05)
    for _ in range(6):
        pace.acquire()
    for _ in range(12):
        pace.acquire()
        clock.now += 2.0
        pace.feedback(200, 2.0)
    assert pace.rate < math.inf


def test_a_slow_server_alone_with_us_is_not_slowed_down(pace: AdaptivePace, clock: Clock) -> None:
    """One request at a time is never too many, however long answers take."""
    for seconds in (*[0.05] * 20, *[3.0] * 40):
        ask(pace, clock, seconds=seconds)
    assert math.isinf(pace.rate)


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT", "Date": "Mon, 30 Nov 2026 12:00:10 GMT"}, 20.0),
        ({"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], wanted: float | None) -> None:
    """A date is measured against the answer's own date, or against now."""
    assert asked_wait(headers, datetime(2026, 11, 30, 12, tzinfo=UTC)) == wanted


def test_one_pace_for_all_who_ask_a_server() -> None:
    """Clients of one server share it, clients of another do not."""
    assert pace_of("http://a") is pace_of("http://a")
    assert pace_of("http://a") is not pace_of("http://b")

"""How fast a server is asked: one pace for all threads that ask it, learned from what it answers.

Requests may begin at most so often a second. As long as a server neither refuses nor slows down there is no limit. A
429 (or a 503 that says how long to wait) halves the rate at which requests were really made; an answer time that has
risen far above its own floor takes a fifth off it; every second that goes well adds a little back. What a server asks
for in ``Retry-After`` holds for every thread, not only for the one that was told.

Requests that were on their way when the rate was cut say nothing about the new rate: only one that began later can cut
it again, so that ten threads refused at once are one event. Refusals in a row make the pause longer, not the rate
lower: a sweep that begins while the server is busy with others does not crawl for the rest of it. Slow answers alone
never bring fewer than three requests into flight: a server that is merely slow is kept busy.

No request waits for longer than ``patience`` in all; then the source counts as unreachable.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

from runtriage.errors import SourceUnreachableError

PATIENCE = 180.0
"""Seconds that one request waits in all, its repetitions included."""

_SLOWEST = 0.1
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_REFUSED_CUT, _SLOW_CUT = 0.5, 0.8
_RECOVERY = 60.0
"""Seconds without trouble in which a rate grows by the rate at which it was cut."""

_RISEN, _RISEN_BY, _SAMPLES = 4.0, 0.2, 8
"""An answer time counts as risen at this multiple of its floor and so many seconds, seen over so many answers."""

_UNIT = 16384.0
"""Bytes of an answer that cost a server about as much as a request as such."""

_RECENT, _TELLING = 256, 8  # requests that are remembered at most, and of which a rate can be told at least
_LATELY, _SPAN = 10.0, 1.0
"""Seconds over which it is counted how often requests begin: at most, and at least."""


class Pace(Protocol):
    """What decides when the next request to a server may begin. Safe in several threads.

    ``acquire`` and ``feedback`` come in pairs, once per request that is sent, repetitions included. An implementation
    that many machines share need only carry these two calls to one place.
    """

    def acquire(self, waited: float = 0.0) -> float:
        """Wait until a request may begin.

        Parameters
        ----------
        waited
            Seconds that this request has waited here before, for earlier attempts; those waited now are returned.

        Raises
        ------
        SourceUnreachableError
            The wait would be too long.
        """
        ...

    def feedback(
        self, status: int, seconds: float, retry_after: float | None = None, *, kind: str = "", size: int = 0
    ) -> None:
        """Tell how the request went.

        Parameters
        ----------
        status
            HTTP status; 0 if there was no answer.
        seconds
            From its beginning to the end of its answer.
        retry_after
            Seconds that the server asks to wait, if it does.
        kind
            Which question it was: answer times are only compared with those of the same question.
        size
            Bytes of the answer.
        """
        ...


@dataclass(slots=True)
class _Times:
    """Answer times of one question, in seconds per unit of work."""

    floor: float = math.inf
    recent: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.recent = value if not self.count else self.recent + 0.2 * (value - self.recent)
        # the floor creeps up: a server that has become slower for good is measured against what it is now
        self.floor = min(value, self.floor * 1.002)
        self.count += 1

    @property
    def is_risen(self) -> bool:
        return self.count >= _SAMPLES and self.recent > max(_RISEN * self.floor, self.floor + _RISEN_BY)


class AdaptivePace:
    """A pace learned from answers, for one server and one process.

    Parameters
    ----------
    server
        Its address, for messages.
    patience
        Seconds that one request waits in all.
    pause
        Seconds before the first repetition where a refusal does not say how long; doubled each time.
    clock, sleep, chance
        Where time and jitter come from.
    """

    def __init__(
        self,
        server: str,
        *,
        patience: float = PATIENCE,
        pause: float = _FIRST_PAUSE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._server, self._patience, self._pause = server, patience, pause
        self._clock, self._sleep, self._chance = clock, sleep, chance
        self._lock = threading.Lock()
        self._rate, self._cut_from, self._cut_at, self._grown_at = math.inf, math.inf, -math.inf, -math.inf
        self._gate, self._next = -math.inf, -math.inf
        self._in_flight, self._refusals, self._in_a_row = 0, 0, 0
        self._begun: deque[float] = deque(maxlen=_RECENT)
        self._times: dict[str, _Times] = {}

    @property
    def rate(self) -> float:
        """Requests a second that may begin now; infinite where nothing holds them back."""
        return self._rate

    @property
    def refusals(self) -> int:
        """How often the server said that it was too much."""
        return self._refusals

    def acquire(self, waited: float = 0.0) -> float:
        """Wait until a request may begin; as :meth:`Pace.acquire`."""
        spent = pause = 0.0
        while pause := self.ask(waited + spent, placed=pause > 0.0):
            self._sleep(pause)
            spent += pause
        return spent

    def ask(self, waited: float = 0.0, *, placed: bool = False) -> float:
        """Return the seconds until a request may begin, 0 if it begins now; for who waits elsewhere.

        ``placed`` says that the request was told to wait just before, and has. Raises as :meth:`acquire`.
        """
        with self._lock:
            now = self._clock()
            at = now if placed and now >= self._gate else max(now, self._gate, self._next)
            if waited + at - now > self._patience:
                raise self._too_long(at - now, waited)
            if at > now:
                self._next = max(self._next, at) + 1.0 / self._rate  # the place in the queue is taken
                return at - now
            if not placed:
                self._next = now + 1.0 / self._rate
            self._begun.append(now)
            self._in_flight += 1
            return 0.0

    def feedback(
        self, status: int, seconds: float, retry_after: float | None = None, *, kind: str = "", size: int = 0
    ) -> None:
        """Learn from how a request went; as :meth:`Pace.feedback`."""
        with self._lock:
            now = self._clock()
            fresh = now - seconds >= self._cut_at
            if status == 429 or (status == 503 and retry_after is not None):
                self._refused(now, retry_after, fresh=fresh)
            elif 200 <= status < 500:
                self._answered(now, seconds / (1.0 + size / _UNIT), kind, fresh=fresh)
            self._in_flight = max(0, self._in_flight - 1)

    def _refused(self, now: float, retry_after: float | None, *, fresh: bool) -> None:
        self._refusals += 1
        if fresh:
            self._in_a_row += 1
            if self._in_a_row == 1 and self._begun_lately(now) >= _TELLING:
                self._cut(now, _REFUSED_CUT)
            self._cut_at = now
        pause = min(_LONGEST_PAUSE, self._pause * 2.0 ** (self._in_a_row - 1)) if retry_after is None else retry_after
        jitter = 0.1 * self._chance() * min(pause, self._pause)  # other processes were told the same
        self._gate = max(self._gate, now + pause + jitter)

    def _answered(self, now: float, unit: float, kind: str, *, fresh: bool) -> None:
        times = self._times.setdefault(kind, _Times())
        times.add(unit)
        if not fresh:
            return
        self._in_a_row = 0
        if times.is_risen and self._in_flight > 3:
            times.count = 0  # the next cut needs as many answers again
            self._cut(now, _SLOW_CUT)
            return
        if math.isinf(self._rate):
            return
        self._rate += self._cut_from * min(now - self._grown_at, 1.0) / _RECOVERY
        self._grown_at = now
        if self._rate > 10.0 * self._asked(now):  # it holds nothing back any more
            self._rate = math.inf

    def _cut(self, now: float, factor: float) -> None:
        self._cut_from = min(self._rate, self._asked(now))
        self._rate = max(_SLOWEST, self._cut_from * factor)
        self._cut_at = self._grown_at = now

    def _asked(self, now: float) -> float:
        """Return how many requests a second have begun lately."""
        count = self._begun_lately(now)
        return count / max(now - self._begun[0], _SPAN) if count else 1.0 / _SPAN

    def _begun_lately(self, now: float) -> int:
        while self._begun and now - self._begun[0] > _LATELY:
            self._begun.popleft()
        return len(self._begun)

    def _too_long(self, more: float, spent: float) -> SourceUnreachableError:
        return SourceUnreachableError(
            f"the server takes no more requests for now: it said so {self._refusals} times (429), another may begin in "
            f"{more:.0f} s, and {spent:.0f} s were waited before",
            where=self._server,
            hint=f"no request waits for more than {self._patience:.0f} s; try again later, or with fewer --readers",
        )


_paces: dict[str, Pace] = {}
_paces_lock = threading.Lock()
_make: Callable[[str], Pace] = AdaptivePace


def pace_of(server: str) -> Pace:
    """Return the pace of a server: the same for everybody in this process who asks it."""
    with _paces_lock:
        if server not in _paces:
            _paces[server] = _make(server)
        return _paces[server]


def share(make: Callable[[str], Pace] = AdaptivePace) -> None:
    """Have everybody in this process keep to paces made like this from now on, such as those of a cluster."""
    global _make  # noqa: PLW0603  as one process has one connection to a cluster
    with _paces_lock:
        _make = make
        _paces.clear()


def asked_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that an answer asks to wait, None if it does not.

    Parameters
    ----------
    headers
        Of the answer; ``Retry-After`` is a number of seconds or a date. A date is compared with the answer's own
        ``Date``, so that it does not matter whether two clocks agree.
    now
        Taken where the answer has no date.
    """
    asked = headers.get("Retry-After", "").strip()
    try:
        seconds = float(asked)
    except ValueError:
        until, said = _date(asked), _date(headers.get("Date", ""))
        if until is None:
            return None
        seconds = (until - (said or now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

"""What is new on a run since people were last told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtriage.model.rule import Firing
from runtriage.notify.news import Change, Told, compare, decode_told, encode_told


def firing(step: int, last: int, *, ongoing: bool = False, rule: str = "a") -> Firing:
    return Firing(rule=rule, run_id="r", step=step, last_step=last, value=1.0, ongoing=ongoing)


def changes(
    firings: list[Firing], told: Told | None, newest: int, *, live: bool = True
) -> list[tuple[Change, int, int]]:
    found = compare(firings, told, run_id="r", newest=newest, live=live)
    return [(news.change, news.step, news.times) for news in found.news]


def test_a_rule_that_starts_is_told_once() -> None:
    """The second look at the same firing has nothing to say."""
    first = compare([firing(90, 100, ongoing=True)], None, run_id="r", newest=100, live=True)
    again = compare([firing(90, 120, ongoing=True)], first.told, run_id="r", newest=120, live=True)
    assert ([news.change for news in first.news], again.news) == ([Change.STARTED], ())


def test_an_end_is_told_once_it_has_been_quiet() -> None:
    """Ten steps after the last firing it is not over yet, fifty steps after it is, and then no more is said."""
    told = Told(upto=100, on={"a": 90})
    soon = compare([firing(90, 100)], told, run_id="r", newest=110, live=True)
    late = compare([firing(90, 100)], soon.told, run_id="r", newest=150, live=True)
    after = compare([firing(90, 100)], late.told, run_id="r", newest=160, live=True)
    assert (soon.news, [(n.change, n.step) for n in late.news], after.news) == ((), [(Change.ENDED, 100)], ())


def test_a_rule_that_flickers_is_one_regime() -> None:
    """Five short episodes, looked at after each, make one message."""
    told: Told | None = None
    count = 0
    for i in range(5):
        episodes = [firing(100 + 10 * k, 102 + 10 * k) for k in range(i + 1)]
        found = compare(episodes, told, run_id="r", newest=104 + 10 * i, live=True)
        told = found.told
        count += len(found.news)
    assert count == 1


def test_what_came_and_went_between_two_looks_is_told_as_passed() -> None:
    """Two spikes long before the newest step are one piece of news."""
    assert changes([firing(50, 50), firing(70, 70)], Told(upto=40), 900) == [(Change.PASSED, 50, 2)]


def test_old_runs_raise_no_alarm_at_first_sight() -> None:
    """A run that had ended before anybody looked says nothing."""
    assert changes([firing(50, 100, ongoing=True)], None, 100, live=False) == []


def test_the_end_of_a_run_is_its_last_word() -> None:
    """What happened until the end is told, and the state says that the run need not be read again."""
    found = compare([firing(95, 100, ongoing=True)], Told(upto=80), run_id="r", newest=100, live=False)
    assert ([news.change for news in found.news], found.told.final) == ([Change.STARTED], True)


def test_a_rule_that_left_the_file_is_over() -> None:
    """Without the rule nothing fires any more, and that is said."""
    assert changes([], Told(upto=80, on={"gone": 70}), 100) == [(Change.ENDED, 70, 1)]


names = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
states = st.builds(
    Told, upto=st.integers(-1, 10**12), final=st.booleans(),
    on=st.dictionaries(names, st.integers(0, 10**9), max_size=5),
)


@given(states)
def test_a_state_is_read_as_it_was_written(told: Told) -> None:
    """Whatever the state, its line gives it back."""
    assert decode_told(encode_told(told)) == told


@given(st.text(max_size=30))
def test_a_line_of_others_never_fails(text: str) -> None:
    """A tag that somebody edited is either a state or nothing."""
    found = decode_told(text)
    assert found is None or isinstance(found, Told)


def test_a_state_with_very_many_rules_stays_within_a_tag() -> None:
    """The line is cut at a whole rule."""
    line = encode_told(Told(upto=1, on={f"{'x' * 70}{i}": 10**6 + i for i in range(200)}))
    found = decode_told(line)
    assert len(line) <= 4000
    assert found is not None
    assert len(found.on) > 40


spans_of = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30)), max_size=8)


@given(spans_of, st.lists(st.integers(1, 500), min_size=1))
def test_starts_and_ends_alternate_however_often_one_looks(spans: list[tuple[int, int]], looks: list[int]) -> None:
    """Between two starts of a rule on a run there is always an end."""
    told: Told | None = None
    open_now = False
    for newest in sorted(looks):
        seen = [firing(a, min(a + n, newest), ongoing=a + n >= newest) for a, n in sorted(spans) if a <= newest]
        found = compare(seen, told, run_id="r", newest=newest, live=True)
        told = found.told
        for news in found.news:
            assert open_now == (news.change == Change.ENDED)
            open_now = news.change == Change.STARTED
    assert told is not None
    assert open_now == bool(told.on)

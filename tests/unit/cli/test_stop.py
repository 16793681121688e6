"""Signals, and what they do not break off."""

from __future__ import annotations

import signal

import pytest

from runtriage.cli.stop import Stopped, stoppable

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_raised_where_the_program_is(number: signal.Signals) -> None:
    """Outside of a shield nothing is waited for."""
    with stoppable(), pytest.raises(Stopped):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_shielded_block_is_finished_first(number: signal.Signals) -> None:
    """What stands in the shield is done to its end, then the signal is raised."""
    done = []

    def write() -> None:
        with stop.shield():
            signal.raise_signal(number)
            done.append("the rest")

    with stoppable() as stop, pytest.raises(Stopped):
        write()
    assert done == ["the rest"]


def test_nothing_shielded_begins_after_a_signal() -> None:
    """A signal that was swallowed on its way is raised before the next block."""
    begun = []
    with stoppable() as stop:
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped), stop.shield():
            begun.append("a write")
    assert begun == []


def test_handlers_are_put_back() -> None:
    """Afterwards signals do what they did before."""
    before = [signal.getsignal(number) for number in SIGNALS]
    with stoppable() as stop, pytest.raises(Stopped):
        signal.raise_signal(signal.SIGTERM)
    assert stop
    assert [signal.getsignal(number) for number in SIGNALS] == before

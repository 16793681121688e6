"""Which of several forms at one place is told."""

from __future__ import annotations

import pytest

from runtriage.analysis.form import Form
from runtriage.analysis.select import select
from runtriage.model.vocab import FindingKind, Outcome, Role


def spike(rise: float, outcome: Outcome = Outcome.DIVERGED) -> Form:
    """Return a spike of the loss at step 1,000."""
    return Form(
        kind=FindingKind.LOSS_SPIKE, role=Role.LOSS, start=1000, detected=1000, peak=1000, z=60.0, p=1e-8,
        outcome=outcome,
        rank=5, measures={"rise": rise},
    )


def step(at: int, *, is_step: bool = True) -> Form:
    """Return a loss that is higher by 0.25 from a step on."""
    return Form(
        kind=FindingKind.STEP_UP, role=Role.LOSS, start=at, detected=at + 40, peak=at + 40, z=9.0, p=1e-6,
        outcome=Outcome.ONGOING,
        rank=12, measures={"is_step": is_step, "final": 0.25},
    )


def test_the_edge_of_a_step_is_no_spike() -> None:
    """A row that leaves the others by no more than the level stays up is where the step begins."""
    told = select([spike(0.3), step(1003)], 4000.0)
    assert [form.kind for form in told] == [FindingKind.STEP_UP]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (spike(0.9), step(1003)),
        (spike(0.3, Outcome.RECOVERED), step(1003)),
        (spike(0.3), step(1003, is_step=False)),
        (spike(0.3), step(1200)),
    ],
    ids=["rises_higher", "recovers", "slow_rise", "elsewhere"],
)
def test_a_spike_beside_a_rise_stays(first: Form, second: Form) -> None:
    """It is told where it is more than an edge."""
    assert FindingKind.LOSS_SPIKE in {form.kind for form in select([first, second], 4000.0)}


def slow(start: int) -> Form:
    """Return a loss that rises from a step on, certain at step 1,700."""
    return Form(
        kind=FindingKind.DIVERGENCE, role=Role.LOSS, start=start, detected=1700, peak=4000, z=5.0, p=1e-4, rank=9,
        outcome=Outcome.ONGOING,
    )


CLIPPED = Form(
    kind=FindingKind.CLIP_SATURATION, role=Role.CLIP_RATE, start=1500, detected=1500, peak=1500, z=5.0, p=1e-4, rank=13,
    outcome=Outcome.ONGOING,
)


@pytest.mark.parametrize(("start", "kind"), [(1400, "divergence"), (1600, "clip_saturation")])
def test_a_slow_rise_is_the_root_of_what_began_after_it(start: int, kind: str) -> None:
    """It is certain later than what it brings about; what began before it is its own root."""
    assert select([slow(start), CLIPPED], 4000.0)[0].kind == kind


def swing(detected: int) -> Form:
    """Return a swing of the loss that passed."""
    return Form(
        kind=FindingKind.OSCILLATION, role=Role.LOSS, start=detected, detected=detected, peak=detected, end=1100, z=4.0,
        p=1e-5, rank=4, outcome=Outcome.RECOVERED,
    )


NAN = Form(
    kind=FindingKind.NON_FINITE, role=Role.LOSS, start=1050, detected=1050, peak=1050, z=float("inf"), p=1e-9, rank=5,
    outcome=Outcome.DIVERGED,
)


@pytest.mark.parametrize(("at", "kind"), [(1000, "non_finite"), (300, "oscillation")])
def test_what_a_run_is_lost_to_is_no_consequence_of_what_healed(at: int, kind: str) -> None:
    """It is the root where it follows at once; a transient far earlier stays one of its own."""
    assert select([swing(at), NAN], 4000.0)[0].kind == kind

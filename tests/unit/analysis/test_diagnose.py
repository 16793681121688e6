"""The table of causes: complete, weighed to one, and moved by its clues."""

from __future__ import annotations

import pytest

from runtriage.analysis.diagnose import CAUSES, Clue, diagnose
from runtriage.analysis.form import Form
from runtriage.analysis.remedies import REMEDIES
from runtriage.model.phrase import phrase
from runtriage.model.texts import say
from runtriage.model.vocab import CauseId, FindingKind, Lang


def _form(kind: FindingKind, **measures: float) -> Form:
    return Form(kind=kind, role="loss", start=0, detected=0, peak=0, measures=measures)


def _clues(kind: FindingKind) -> list[Clue]:
    return [clue for _, _, clues in CAUSES[kind] for clue in clues]


@pytest.mark.parametrize("kind", [k for k in FindingKind if k != FindingKind.LOGGING_GAP])
def test_every_form_has_candidate_causes(kind: FindingKind) -> None:
    """No form ends at `unknown` alone."""
    assert {c.id for c in diagnose(_form(kind))} - {CauseId.UNKNOWN}


@pytest.mark.parametrize("kind", FindingKind)
def test_weights_sum_to_one(kind: FindingKind) -> None:
    """Whatever is measured, the weights are shares."""
    for measures in ({}, {c.measure: 1.0 for c in _clues(kind)}, {c.measure: -1.0 for c in _clues(kind)}):
        weights = [c.weight for c in diagnose(_form(kind, **measures))]
        assert sum(weights) == pytest.approx(1.0, abs=1e-3)
        assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("cause", CauseId)
def test_every_cause_has_a_check_and_a_remedy(cause: CauseId) -> None:
    """A cause that cannot be checked is no help."""
    assert REMEDIES[cause].verify
    assert REMEDIES[cause].try_


def test_every_cause_can_be_named() -> None:
    """No cause stands in the vocabulary in vain."""
    named = {cause for rows in CAUSES.values() for cause, _, _ in rows}
    assert set(CauseId) - named <= {CauseId.UNKNOWN}


@pytest.mark.parametrize("kind", CAUSES)
def test_no_clue_decides_alone(kind: FindingKind) -> None:
    """Likelihood ratios stay between a quarter and eight."""
    assert all(0.25 <= clue.ratio <= 8.0 for clue in _clues(kind))


@pytest.mark.parametrize("kind", CAUSES)
def test_a_clue_that_holds_raises_its_cause_and_says_so(kind: FindingKind) -> None:
    """Each clue moves the weight of its cause in its own direction, with the number of this run in its words."""
    without = {c.id: c.weight for c in diagnose(_form(kind))}
    for cause, _, clues in CAUSES[kind]:
        for clue in clues:
            value = max(clue.low + 0.01, min(1.0, clue.high - 0.01))
            held = next(c for c in diagnose(_form(kind, **{clue.measure: value})) if c.id == cause)
            assert say(phrase(clue.text, x=value), Lang.EN) in held.because
            others = [c for name, _, c in CAUSES[kind] if name != cause]
            alone = len(CAUSES[kind]) > 1 and not any(o.measure == clue.measure for part in others for o in part)
            same = sum(o.measure == clue.measure for o in clues) == 1
            if alone and same:
                assert (held.weight > without[cause]) == (clue.ratio > 1.0)

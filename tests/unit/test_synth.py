"""The made-up runs that other tests lean on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from runtriage.model.history import RunHistory
from runtriage.testing.strategies import histories
from runtriage.testing.synth import FAULTS, cohort, faulty, healthy


def test_seed_decides_everything() -> None:
    """The same seed gives the same run."""
    one, two = healthy(3), healthy(3)
    assert all(np.array_equal(one.tracks[name].value, two.tracks[name].value) for name in one.tracks)


def test_siblings_differ_in_their_seed_only() -> None:
    """Runs of a cohort have one config but for the seed."""
    configs = [{key: value for key, value in run.info.config.items() if key != "seed"} for run in cohort(3)]
    assert configs[0] == configs[1] == configs[2]


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_faults_begin_at_their_onset(fault: str) -> None:
    """Before its onset, a faulty run is the healthy run of its seed."""
    spoilt, sound = faulty(fault, 5, onset=200), healthy(5)
    assert all(np.array_equal(spoilt.tracks[n].value[:200], sound.tracks[n].value[:200]) for n in sound.tracks)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_faults_show(fault: str) -> None:
    """From its onset on, a faulty run differs."""
    spoilt, sound = faulty(fault, 5, onset=200), healthy(5)
    assert any(not np.array_equal(spoilt.tracks[n].value, sound.tracks[n].value) for n in sound.tracks)


@given(histories())
def test_drawn_histories_have_matching_arrays(run: RunHistory) -> None:
    """Drawn tracks have one value a step."""
    assert all(track.step.shape == track.value.shape for track in run.tracks.values())

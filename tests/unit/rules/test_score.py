"""How good rules are."""

from __future__ import annotations

import pytest

from runtriage.errors import CodecError
from runtriage.model.rule import AlertRule, Firing, Measured, NonFinite
from runtriage.rules.score import ANY, Known, Replayed, decode_known, score

RULES = [
    AlertRule(id=f"{kind}-c{n}", about="x", role="loss", config=f"c{n}", condition=NonFinite())
    for kind in ("a", "b") for n in (1, 2)
]


def run(run_id: str, *shots: tuple[str, int], config: int = 1) -> Replayed:
    ids = (f"a-c{config}", f"b-c{config}")
    fired = tuple(Firing(rule=r, run_id=run_id, step=s, last_step=s, value=0.0, ongoing=False) for r, s in shots)
    return Replayed(run_id=run_id, name=run_id, first_step=0, last_step=1000, rules=ids, firings=fired)


def test_each_kind_is_counted_over_its_runs_and_all_together_at_the_end() -> None:
    """One of two healthy runs fires; two of three faulty ones are caught, late by 5 and 30 steps."""
    runs = [
        run("h1", ("a-c1", 7)), run("h2", config=2), run("f1", ("a-c1", 105), ("b-c1", 130)),
        run("f2", ("b-c2", 230), config=2), run("f3"),
    ]
    known = [("h1", True, None), ("h2", True, None), ("f1", False, 100), ("f2", False, 200), ("f3", False, 300)]
    kinds = score(RULES, runs, {i: Known(run_id=i, healthy=good, onset=onset) for i, good, onset in known})
    assert [(k.kind, k.rules, k.false_alarms, k.hits, k.delays) for k in kinds] == [
        ("a", 2, Measured(fired=1, runs=2), Measured(fired=1, runs=3), (5,)),
        ("b", 2, Measured(fired=0, runs=2), Measured(fired=2, runs=3), (30, 30)),
        (ANY, 4, Measured(fired=1, runs=2), Measured(fired=2, runs=3), (5, 30)),
    ]


def test_a_firing_before_the_onset_is_early_and_no_hit() -> None:
    """What fired a tenth of the run before the fault did not see the fault."""
    (first, *_) = score(RULES, [run("f", ("a-c1", 400))], {"f": Known(run_id="f", healthy=False, onset=500)})
    assert (first.early, first.hits.fired) == (1, 0)


def test_a_firing_just_before_the_onset_counts_as_in_time() -> None:
    """Onsets are known to one part in a hundred of the run."""
    (first, *_) = score(RULES, [run("f", ("a-c1", 492))], {"f": Known(run_id="f", healthy=False, onset=500)})
    assert (first.early, first.hits.fired, first.delays) == (0, 1, (0,))


def test_runs_of_which_nothing_is_known_do_not_count() -> None:
    """Without a label a run is neither healthy nor faulty."""
    (first, *_) = score(RULES, [run("x", ("a-c1", 1))], {})
    assert (first.false_alarms.runs, first.hits.runs) == (0, 0)


def test_a_bad_label_is_named_by_its_line() -> None:
    """The second line lacks ``healthy``."""
    with pytest.raises(CodecError, match=r"healthy") as caught:
        decode_known(b'{"run_id": "a", "healthy": true}\n{"run_id": "b"}\n')
    assert caught.value.where == "line 2"

"""Rules as SQL on a real PostgreSQL with MLflow's own schema: each fires where the replay fires, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from demanded import absent
from mlflow_store.live import Rows, engine_of, now, put
from mlflow_store.postgres import INSTALL, cluster, programs
from mlflow_store.store import Store, opened

from runtriage.analysis.prepare import prepare
from runtriage.model.history import RunHistory
from runtriage.model.marks import CONFIG_KEY
from runtriage.model.rule import (
    Above,
    AlertRule,
    Backwards,
    Below,
    Condition,
    Drop,
    Ended,
    Jump,
    Knot,
    NonFinite,
    OutsideBand,
    OverBest,
    ShareAbove,
    Stalled,
    ZScore,
)
from runtriage.rules.replay import signal_of
from runtriage.rules.sql import LOOK_POINTS, Query, Unsaid, query

pytestmark = pytest.mark.integration
Ask = Callable[[str], list[tuple[Any, ...]]]
HOSTILE = "a'b\\c\"d $__file{/etc/passwd} $__timeFilter(x) ${HOME} $$ ; drop table runs; -- %s :p 损失 \U0001f600"
BAND = OutsideBand(
    window=5, knots=(Knot(step=0, high=9.0, low=1.0), Knot(step=100, high=6.0, low=0.5), Knot(step=500, high=4.0)),
)
CONDITIONS: list[tuple[str, Condition, int, int]] = [
    ("non-finite", NonFinite(), 1, 0),
    ("non-finite-for-3", NonFinite(), 3, 0),
    ("above", Above(value=5.0), 2, 50),
    ("below", Below(value=0.7), 1, 0),
    ("band", BAND, 3, 10),
    ("band-of-points", OutsideBand(window=1, knots=BAND.knots), 1, 0),
    ("jump", Jump(window=30, factor=2.0), 1, 40),
    ("drop", Drop(window=30, factor=4.0), 1, 0),
    ("over-best", OverBest(factor=3.0), 2, 0),
    ("share", ShareAbove(window=40, share=0.9), 1, 0),
    ("z-score", ZScore(window=30, limit=4.0), 1, 0),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Yield MLflow's client on a PostgreSQL of our own: a person may lack it, the CI may not."""
    if programs() is None:
        absent(f"no PostgreSQL server that can be run here: {INSTALL}")
    with cluster(tmp_path_factory.mktemp("postgres")) as url, Store(url).closing() as opened_store:
        yield opened_store


@pytest.fixture(scope="module")
def reader(store: Store) -> Iterator[Ask]:
    """Yield a way to ask as Grafana's role would: SELECT on five tables, nothing else, nothing written."""
    with engine_of(store).begin() as connection:
        connection.exec_driver_sql("create role grafana_reader login")
        tables = "runs, experiments, tags, metrics, latest_metrics"
        connection.exec_driver_sql(f"grant select on {tables} to grafana_reader")
    url = sa.make_url(store.url).set(drivername="postgresql+psycopg", username="grafana_reader")
    engine = sa.create_engine(url, connect_args={"options": "-c default_transaction_read_only=on"})

    def ask(sql: str) -> list[tuple[Any, ...]]:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(sql)]

    yield ask
    engine.dispose()


def said(rule: AlertRule, experiment: str = "") -> str:
    found = query(rule, experiment=experiment)
    assert isinstance(found, Query)
    return found.sql


def fired(ask: Ask, rule: AlertRule, experiment: str) -> dict[str, int]:
    """Return run id to the step at which the rule fired, -1 where it did not."""
    return {run_id: int(step) for _, _, run_id, step in ask(said(rule, experiment))}


def rule_of(condition: Condition, metric: str = "train/loss", **facts: Any) -> AlertRule:
    return AlertRule(**{"id": "r", "about": "A.", "role": "loss", "metric": metric, "condition": condition, **facts})


def drawn(rng: np.random.Generator, start: int) -> Rows:
    """Draw a hostile curve: spikes, NaN, infinities, zeros, gaps, steps logged twice; some longer than is looked at."""
    size = int(rng.choice([1, 2, 29, 31, 35, 120, 400, LOOK_POINTS + 150]))
    step = np.cumsum(rng.integers(1, 3, size))
    value = np.exp(rng.normal(0.7, 0.15, size)) * np.where(rng.random(size) < 0.02, rng.choice([0.1, 4.0, 60.0]), 1.0)
    for bad in (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 5e-324):
        if rng.random() < 0.3:
            value[rng.random(size) < 0.01] = bad
    if rng.random() < 0.3:
        value[rng.integers(size) :] *= rng.choice([0.05, 3.0])
    if rng.random() < 0.2:
        at = int(rng.integers(size))
        value[at : at + 4] = np.nan
    rows = [(int(s), float(v), start + i) for i, (s, v) in enumerate(zip(step, value, strict=True))]
    twice = [(s, v * 2, t + 1000) for s, v, t in rows[:: max(1, size // 5)]] if rng.random() < 0.3 else []
    return [*rows, *twice]


@pytest.fixture(scope="module")
def curves(store: Store) -> tuple[str, dict[str, RunHistory]]:
    """Return an experiment of drawn curves and their histories as they are read from it."""
    rng = np.random.default_rng(3)
    experiment = store.experiment()
    start = now() - 60_000
    for i in range(60):
        put(store, experiment, f"run {i}", "train/loss", drawn(rng, start))
    with opened(store.address(experiment)) as source:
        return experiment, {info.id: source.read(info) for info in source.list_runs()}


def expected(rule: AlertRule, history: RunHistory) -> int:
    """Return the newest step at which the rule fires in a replay, among the points that SQL looks at."""
    signal = signal_of(rule, prepare(history), history)
    assert signal is not None
    held = np.convolve(signal.holds, np.ones(rule.for_points))[: signal.holds.size] == rule.for_points
    place = np.flatnonzero(held & (np.arange(held.size) >= held.size - LOOK_POINTS))
    return int(signal.step[place[-1]]) if place.size else -1


@pytest.mark.parametrize(("name", "condition", "points", "after"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_sql_fires_where_the_replay_does(
    reader: Ask, curves: tuple[str, dict[str, RunHistory]], name: str,
    condition: Condition, points: int, after: int,
) -> None:
    """On sixty hostile curves both say the same step, and each rule fires on some and not on others."""
    experiment, histories = curves
    rule = rule_of(condition, for_points=points, after_step=after)
    wanted = {run_id: expected(rule, history) for run_id, history in histories.items()}
    assert fired(reader, rule, experiment) == wanted
    assert 0 < sum(step >= 0 for step in wanted.values()) < len(wanted)


def test_a_squared_norm_is_compared_as_a_norm(store: Store, reader: Ask) -> None:
    """A metric called ``grad_norm_square`` is read as its root, as the replay reads it."""
    experiment = store.experiment()
    run = put(store, experiment, "a", "grad_norm_square", [(0, 25.0, now())])
    rule = rule_of(Above(value=4.9), "grad_norm_square", role="grad_norm")
    assert fired(reader, rule, experiment) == {run: 0}
    assert fired(reader, rule_of(Above(value=5.1), "grad_norm_square", role="grad_norm"), experiment) == {run: -1}


def test_an_old_firing_is_over(store: Store, reader: Ask) -> None:
    """A NaN counts for ten minutes after it was logged, and longer only while it is the newest point."""
    experiment = store.experiment()
    hour = 3_600_000
    over = put(store, experiment, "over", "loss", [(0, np.nan, now() - hour), (1, 1.0, now())])
    lasting = put(store, experiment, "lasting", "loss", [(0, 1.0, now() - hour), (1, np.nan, now() - hour)])
    recent = put(store, experiment, "recent", "loss", [(0, np.nan, now() - 60_000), (1, 1.0, now())])
    assert fired(reader, rule_of(NonFinite(), "loss"), experiment) == {over: -1, lasting: 1, recent: 0}


def test_runs_that_are_over_or_deleted_are_left_alone(store: Store, reader: Ask) -> None:
    """A run that ended lately still counts; one that ended long ago, was deleted or abandoned does not."""
    experiment = store.experiment()
    week = 8 * 86_400_000
    names = ("live", "just", "long", "deleted", "abandoned")
    runs = {
        name: put(store, experiment, name, "loss", [(0, np.nan, now() - (week if name == "abandoned" else 0))])
        for name in names
    }
    store.client.set_terminated(runs["just"], "FAILED")
    store.client.set_terminated(runs["long"], "FAILED", end_time=now() - 3_600_000)
    store.client.delete_run(runs["deleted"])
    assert fired(reader, rule_of(NonFinite(), "loss"), experiment) == {runs["live"]: 0, runs["just"]: 0}


def test_a_rule_for_one_config_finds_its_runs_by_their_tag(store: Store, reader: Ask) -> None:
    """Runs without the tag, or of another config, are not looked at."""
    experiment = store.experiment()
    runs = [put(store, experiment, str(i), "loss", [(0, np.nan, now())]) for i in range(3)]
    store.client.set_tag(runs[0], CONFIG_KEY, "ab12")
    store.client.set_tag(runs[1], CONFIG_KEY, "cd34")
    assert fired(reader, rule_of(NonFinite(), "loss", config="ab12"), experiment) == {runs[0]: 0}


def test_one_experiment_is_chosen_by_name_or_id(store: Store, reader: Ask) -> None:
    """Without one all are looked at, with one no other."""
    one, other = store.experiment(), store.experiment()
    runs = [put(store, experiment, "a", "chosen", [(0, np.nan, now())]) for experiment in (one, other)]
    rule = rule_of(NonFinite(), "chosen")
    name = store.client.get_experiment(one).name
    assert fired(reader, rule, one) == fired(reader, rule, name) == {runs[0]: 0}
    assert fired(reader, rule, "") == dict.fromkeys(runs, 0)


def test_a_step_that_goes_back_is_seen_while_it_is_news(store: Store, reader: Ask) -> None:
    """A resume at a lower step fires, also with what lies before the look; an old one does not."""
    experiment = store.experiment()
    hour = 3_600_000
    old = [(i, 1.0, now() - hour + i) for i in range(50)]
    back = put(store, experiment, "back", "loss", [*old, *((i, 1.0, now() - 1000 + i) for i in range(30, 40))])
    on = put(store, experiment, "on", "loss", [*old, *((i, 1.0, now() - 1000 + i) for i in range(50, 60))])
    long_ago = put(
        store, experiment, "ago", "loss",
        [*((i, 1.0, now() - 2 * hour + i) for i in range(90)), *old, *((i, 1.0, now()) for i in range(90, 95))],
    )
    within = put(store, experiment, "within", "loss", [(s, 1.0, now() - 100 + i) for i, s in enumerate([1, 2, 3, 2])])
    found = fired(reader, rule_of(Backwards(), "loss"), experiment)
    assert found == {back: 39, on: -1, long_ago: -1, within: 2}


def test_a_silent_run_is_seen(store: Store, reader: Ask) -> None:
    """No point for so long fires; a run that was resumed at a lower step, or has ended, is not silent."""
    experiment = store.experiment()
    hour = 3_600_000
    silent = put(store, experiment, "silent", "loss", [(7, 1.0, now() - hour)])
    lively = put(store, experiment, "lively", "loss", [(7, 1.0, now() - 60_000)])
    resumed = put(store, experiment, "resumed", "loss", [(7, 1.0, now() - hour), (3, 1.0, now())])
    ended = put(store, experiment, "ended", "loss", [(7, 1.0, now() - hour)])
    store.client.set_terminated(ended)
    seconds = put(store, experiment, "seconds", "loss", [(7, 1.0, now() // 1000)])
    found = fired(reader, rule_of(Stalled(seconds=1800.0), "loss"), experiment)
    assert found == {silent: 7, lively: -1, resumed: -1, seconds: -1}


def test_the_end_of_a_run_is_seen(store: Store, reader: Ask) -> None:
    """A run that failed lately fires behind its last step, one that finished does not."""
    experiment = store.experiment()
    failed, done, live = (put(store, experiment, name, "loss", [(7, 1.0, now())]) for name in ("a", "b", "c"))
    store.client.set_terminated(failed, "FAILED")
    store.client.set_terminated(done, "FINISHED")
    found = fired(reader, AlertRule(id="r", about="A.", condition=Ended()), experiment)
    assert found == {failed: 8, done: -1}
    assert live not in found


@pytest.mark.parametrize("condition", [c for _, c, _, _ in CONDITIONS] + [Backwards(), Stalled(seconds=1.0)])
def test_hostile_names_are_data(store: Store, reader: Ask, condition: Condition) -> None:
    """A metric, a config and an experiment of hostile names are found by them; Grafana finds no ``$`` in the query."""
    rule = rule_of(condition, HOSTILE, config=HOSTILE)
    assert "$" not in said(rule, HOSTILE)
    assert said(rule, HOSTILE).isascii()
    assert reader(said(rule, HOSTILE)) == []


def test_a_hostile_metric_is_matched_exactly(store: Store, reader: Ask) -> None:
    """What was logged under a hostile name fires, what was logged under a nearly equal one does not."""
    experiment = store.experiment()
    run = put(store, experiment, HOSTILE, HOSTILE, [(0, np.nan, now())])
    put(store, experiment, "other", HOSTILE.replace("\\", ""), [(0, np.nan, now())])
    ((_, name, run_id, step),) = reader(said(rule_of(NonFinite(), HOSTILE), experiment))
    assert (name, run_id, step) == (HOSTILE, run, 0)


@pytest.mark.parametrize(
    ("facts", "said_why"),
    [
        ({"metric": ""}, "names no metric"), ({"metric": "a\0"}, "no database"), ({"config": "\ud800"}, "no database"),
        ({"for_points": 100_000}, "100599 points"),
    ],
)
def test_what_sql_cannot_say_is_said(facts: dict[str, Any], said_why: str) -> None:
    """A rule by role alone, a name no database holds, a look over too many points."""
    found = query(rule_of(NonFinite(), **facts))
    assert isinstance(found, Unsaid)
    assert said_why in found.reason

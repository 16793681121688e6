"""What rules watch in a project: roles become the names of its metrics."""

from __future__ import annotations

import numpy as np

from runtriage.errors import RunReadError
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.rule import Above, AlertRule, Ended
from runtriage.outputs.wandb_triggers import Watched
from runtriage.pipeline import Params, fingerprint
from runtriage.sweep.watched import find_watched
from runtriage.trackers.memory import MemorySource


def run(name: str, *metrics: str, lr: float = 0.1) -> RunHistory:
    """Return a run that logs some metrics."""
    track = Track(step=np.arange(30), value=np.ones(30))
    info = RunInfo(source="memory:", id=name, name=name, config={"lr": lr})
    return RunHistory(info=info, tracks=dict.fromkeys(metrics, track))


def rule(role: str = "loss", metric: str = "", config: str = "") -> AlertRule:
    """Return a rule."""
    return AlertRule(id="a", about="x", role=role, metric=metric, config=config, condition=Above(value=1.0))


class Broken(MemorySource):
    """Lists runs and reads none."""

    def read(self, info: RunInfo) -> RunHistory:
        """Fail."""
        raise RunReadError("lost", where=info.id)


class Untouchable(MemorySource):
    """Must not be asked."""

    def list_runs(self):  # noqa: ANN201
        """Fail."""
        raise AssertionError


def look(source: MemorySource, one: AlertRule) -> Watched | str:
    """Look up one rule."""
    return find_watched(source, [one], params=Params(), readers=1)["a"]


def test_a_metric_that_is_named_is_not_looked_up() -> None:
    """Derived rules name their metric, and the end of a run needs none: no run is read."""
    ended = AlertRule(id="a", about="x", condition=Ended())
    source = Untouchable([])
    assert [look(source, rule(metric="m")), look(source, ended)] == [Watched(metric="m"), Watched()]


def test_a_role_is_looked_up_in_a_run_of_its_config() -> None:
    """Two configs may call the loss differently."""
    source = MemorySource([run("r1", "loss"), run("r2", "lm loss", lr=0.2)])
    configs = [fingerprint({"lr": lr}, Params().ignore_keys) for lr in (0.1, 0.2)]
    assert [look(source, rule(config=config)) for config in configs] == [
        Watched(metric="loss"), Watched(metric="lm loss"),
    ]


def test_a_norm_that_is_logged_squared_is_known_as_such() -> None:
    """The rule is about the norm, the metric is its square."""
    found = look(MemorySource([run("r1", "grad_norm_square")]), rule("grad_norm"))
    assert found == Watched(metric="grad_norm_square", squared=True)


def test_what_cannot_be_told_has_a_reason() -> None:
    """No run of the config, no such metric, a run that cannot be read: each is said, none is an error."""
    source = MemorySource([run("r1", "loss")])
    assert "none of config c0ffee" in str(look(source, rule(config="c0ffee")))
    assert "no metric with the role grad_norm" in str(look(source, rule("grad_norm")))
    assert "lost" in str(look(Broken([run("r1", "loss")]), rule()))

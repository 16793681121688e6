"""Random interleavings of our automations with other people's: theirs never change, ours become what is wanted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.automations import add_foreign, add_slack
from wandb_server.session import stand_in

from runtriage.errors import RuntriageError
from runtriage.model.alert import Alert, Channel, Threshold
from runtriage.model.vocab import Severity
from runtriage.outputs.alert_plan import AlertPlan, plan_alerts
from runtriage.trackers.wandb.bounded import Limits
from runtriage.trackers.wandb.source import WandbSource

pytestmark = pytest.mark.integration
QUICK = Limits(attempt=5.0, retries=2, pause=0.01, call=20.0)
OURS = "runtriage:p:"
KEYS = ("a", "b", "c")
FAULTS = [
    (where, kind) for where in ("CreateAutomation", "UpdateAutomation", "DeleteAutomation", "GetProject")
    for kind in (400, 403, "cut")
]  # fmt: skip
LIKE_OURS = st.sampled_from(
    ["runtriage", "runtriage:", "runtriage:p", "runtriage:p:", "Runtriage:p:a", "runtriage:p:a2", "runtriage:p:a"]
)
wanted_ones = st.dictionaries(st.sampled_from(KEYS), st.sampled_from([1.0, 2.5, -3.0]))


def machine(server: StandIn, steps: list[int]) -> type[RuleBasedStateMachine]:  # noqa: C901
    """Make the machine over one server; ``steps[0]`` counts its steps."""
    source = WandbSource("wandb://team/p", limits=QUICK)
    server.world.add_project("team", "p")
    add_slack(server.world, "c")
    channel: Channel = source.channels()[0]

    def alerts(values: dict[str, float]) -> list[Alert]:
        return [
            Alert(
                name=OURS + key, about="a", title="t", text="x", facts={}, severity=Severity.INFO, channel=channel,
                trigger=Threshold(metric="m", above=True, value=value),
            )
            for key, value in values.items()
        ]

    class Shared(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            server.clear_faults()
            server.world.triggers.clear()
            self.theirs: dict[str, dict[str, Any]] = {}
            self.saved = AlertPlan()

        def plan(self, values: dict[str, float]) -> AlertPlan:
            return plan_alerts(alerts(values), source.read_alerts(), prefix=OURS)

        def carry_out(self, plan: AlertPlan) -> None:
            for before, alert in plan.change:
                source.put_alert(alert, before)
            for alert in plan.make:
                source.put_alert(alert)
            for placed in plan.remove:
                source.remove_alert(placed)

        def ours(self) -> list[dict[str, Any]]:
            return [one for key, one in server.world.triggers.items() if key not in self.theirs]

        def keep(self, key: str) -> None:
            self.theirs[key] = dict(server.world.triggers[key])

        @rule(name=LIKE_OURS, text=st.sampled_from([None, "", "[runtriage 0123456789ab 0123456789abcdef]"]))
        def others_make_one(self, name: str, text: str | None) -> None:
            if name not in {one["name"] for one in server.world.triggers.values()}:  # the server takes a name once
                self.keep(add_foreign(server.world, name, description=text))

        @rule(at=st.integers(0, 9), field=st.sampled_from(["name", "description"]))
        def others_take_one_over(self, at: int, field: str) -> None:
            if mine := self.ours():
                one = mine[at % len(mine)]
                one[field] += " (mine)"
                self.keep(one["id"])

        @rule(at=st.integers(0, 9))
        def others_switch_one(self, at: int) -> None:
            if mine := self.ours():
                mine[at % len(mine)]["enabled"] ^= True

        @rule(at=st.integers(0, 9))
        def others_remove_one(self, at: int) -> None:
            if mine := list(server.world.triggers):
                server.world.triggers.pop(key := mine[at % len(mine)])
                self.theirs.pop(key, None)

        @rule(values=wanted_ones)
        def apply(self, values: dict[str, float]) -> None:
            off = {one["id"] for one in self.ours() if not one["enabled"]}
            plan = self.plan(values)
            self.carry_out(plan)
            assert not self.plan(values)
            blocked = {alert.name for alert in plan.blocked}
            assert sorted(one["name"] for one in self.ours()) == sorted({OURS + key for key in values} - blocked)
            assert all(one["enabled"] == (one["id"] not in off) for one in self.ours())

        @rule(values=wanted_ones)
        def plan_for_later(self, values: dict[str, float]) -> None:
            self.saved = self.plan(values)

        @rule()
        def apply_stale_plan(self) -> None:
            for part in ("change", "make", "remove"):
                try:
                    self.carry_out(AlertPlan(**{part: getattr(self.saved, part)}))
                except RuntriageError:
                    continue  # a name was taken meanwhile

        @rule(values=wanted_ones, fault=st.sampled_from(FAULTS), skip=st.integers(0, 2))
        def apply_and_fail(self, values: dict[str, float], fault: tuple[str, Any], skip: int) -> None:
            server.fail(*fault, times=9, skip=skip)
            try:
                self.carry_out(self.plan(values))
            except RuntriageError:
                pass
            finally:
                server.clear_faults()

        @rule()
        def prune(self) -> None:
            self.carry_out(self.plan({}))
            assert self.ours() == []

        @invariant()
        def theirs_is_untouched(self) -> None:
            steps[0] += 1
            assert {key: server.world.triggers.get(key) for key in self.theirs} == self.theirs

    return Shared


def drive(examples: int, length: int) -> int:
    """Run the machine; return how many steps it took."""
    steps = [0]
    with stand_in() as server:
        run_state_machine_as_test(
            machine(server, steps),
            settings=settings(
                max_examples=examples, stateful_step_count=length, deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    return steps[0]


def test_interleavings() -> None:
    """Some hundred steps in the fast suite."""
    assert drive(6, 20) >= 60


@pytest.mark.statistical
@pytest.mark.timeout(3000)
def test_ten_thousand_steps() -> None:
    """At least ten thousand steps change nothing of anybody else's."""
    assert drive(260, 50) >= 10_000

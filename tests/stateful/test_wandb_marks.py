"""Random interleavings of our marks with other people's edits, faults and crashes: nothing of theirs ever changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

pytest.importorskip("wandb")

from wandb_server import StandIn
from wandb_server.session import stand_in

from runtriage.errors import RuntriageError
from runtriage.model.marks import Marks, WritePlan, content_digest
from runtriage.trackers.wandb.bounded import Limits
from runtriage.trackers.wandb.marks import is_own_tag
from runtriage.trackers.wandb.source import WandbSource
from runtriage.trackers.wandb.summary import is_own, members

pytestmark = pytest.mark.integration
QUICK = Limits(attempt=5.0, retries=2, pause=0.01, call=20.0)
RAW = st.sampled_from(
    ["1e5", "NaN", "-Infinity", '"\\u00e9"', '{"min":  1.0}', "0.10", '"<b>"', "12345678901234567890"]
)
THEIR_TAGS = st.sampled_from(["a", "b", "rt:todo", "runtriage", "Rt:broken", "\u202e", "x" * 64])
THEIR_KEYS = st.sampled_from(["loss", "runtriage", "runtriage.contract", "a.b", "_step", 'q"uote'])
READS_BEFORE_THE_LAST = ["Run", "RunFiles", "CreateRunFiles", "upload", "MarkRunFilesUploaded"]
FAULTS = [
    ("UpsertBucket", 400),
    ("UpsertBucket", "cut"),
    ("CreateRunFiles", 400),
    ("upload", 400),
    ("Run", 400),
    ("RuntriageRun", 400),
    ("RuntriageRun", "cut"),
    ("RunFiles", 400),
    ("deleteFiles", 400),
    ("download", 403),
] * 2
FAULTS += [("UpsertBucket", "late")]  # the client waits two seconds before it retries: not too often


@st.composite
def wanted_marks(draw: Any) -> Marks:
    """Draw a verdict as marks."""
    kinds = draw(st.lists(st.sampled_from(["loss_spike", "divergence", "plateau"]), max_size=3, unique=True))
    tags = {"runtriage.status": draw(st.sampled_from(["healthy", "broken", "withheld"]))}
    tags |= {"runtriage.findings": ",".join(kinds)} if kinds else {}
    tags |= draw(
        st.dictionaries(st.just("runtriage.z_max"), st.sampled_from(["3", "18.25", "Infinity", "1.0", "1e-05"]))
    )
    contents = draw(st.dictionaries(st.just("runtriage/panel.html"), st.sampled_from([b"<p>", b""])))
    files = {path: content_digest(content) for path, content in contents.items()}
    return Marks(tags=tags, note=draw(st.sampled_from([None, "lost \u2028 it"])), files=files, contents=contents)


def difference(wanted: Marks, present: Marks) -> WritePlan:
    """Return the plan from what is there to what is wanted."""
    return WritePlan(
        set_tags={k: v for k, v in wanted.tags.items() if present.tags.get(k) != v},
        delete_tags=tuple(k for k in present.tags if k not in wanted.tags),
        set_note=wanted.note if wanted.note is not None and wanted.note != present.note else None,
        delete_note=wanted.note is None and present.note is not None,
        put_files={p: c for p, c in wanted.contents.items() if present.files.get(p) != wanted.files[p]},
        delete_files=tuple(p for p in present.files if p not in wanted.files),
    )


def machine(server: StandIn, steps: list[int]) -> type[RuleBasedStateMachine]:  # noqa: C901
    """Make the machine over one server; ``steps[0]`` counts its steps."""
    source = WandbSource("wandb://team/p", limits=QUICK)

    class Interleaved(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            server.world.runs.clear()
            server.clear_faults()
            server.on_request.clear()
            self.run = server.world.add_run(
                "team", "p", "r", rows=[{"loss": 1.0}], tags=["a"], notes="n", config={"k": 1}
            )
            self.info = source.find_run("r")
            self.saved = WritePlan()
            self.theirs = self.foreign()

        def foreign(self) -> tuple[Any, ...]:
            kept = {k: v for k, v in members(self.run.summary).items() if not is_own(k)}
            files = {n: c for n, c in self.run.files.items() if not n.startswith("runtriage/")}
            return (
                [t for t in self.run.tags if not is_own_tag(t)],
                kept,
                self.run.notes,
                self.run.config,
                files,
                self.run.state,
            )

        def edit(self, change: Callable[[], None]) -> None:
            with server.world.lock:
                change()
                self.theirs = self.foreign()

        @rule(tag=THEIR_TAGS, add=st.booleans(), at=st.integers(0, 3))
        def edit_tags(self, tag: str, add: bool, at: int) -> None:  # noqa: FBT001
            self.edit(lambda: self.run.tags.insert(at, tag) if add else self.drop(tag))

        def drop(self, tag: str) -> None:
            self.run.tags = [each for each in self.run.tags if each != tag]

        @rule(key=THEIR_KEYS, raw=RAW, sep=st.sampled_from([", ", ",", " ,\n"]))
        def edit_summary(self, key: str, raw: str, sep: str) -> None:
            parts = {**members(self.run.summary), key: (json.dumps(key), raw)}
            self.edit(lambda: setattr(self.run, "summary", "{" + sep.join(f"{k}:{v}" for k, v in parts.values()) + "}"))

        @rule(raw=RAW)
        def training_writes_its_whole_summary(self, raw: str) -> None:
            self.edit(lambda: setattr(self.run, "summary", f'{{"loss":{raw}}}'))

        @rule(text=st.sampled_from(["", "hello", "<!-- runtriage:begin -->"]))
        def edit_notes_and_config(self, text: str) -> None:
            self.edit(
                lambda: (
                    setattr(self.run, "notes", text),
                    setattr(self.run, "config", f'{{"k": {{"value":"{text}"}}}}'),
                )
            )

        @rule(content=st.binary(max_size=4))
        def edit_files(self, content: bytes) -> None:
            self.edit(lambda: self.run.files.update({"runtriage.txt": content}))

        @rule(state=st.sampled_from(["running", "finished", "crashed"]))
        def change_state(self, state: str) -> None:
            self.edit(lambda: setattr(self.run, "state", state))

        @rule(tag=st.sampled_from(["rt:broken", "rt:plateau"]))
        def take_our_tag_off(self, tag: str) -> None:
            self.edit(lambda: self.drop(tag))

        @rule(wanted=wanted_marks())
        def plan_for_later(self, wanted: Marks) -> None:
            self.saved = difference(wanted, source.read_marks(self.info))

        @rule()
        def apply_stale_plan(self) -> None:
            source.apply(self.info, self.saved)

        @rule(wanted=wanted_marks())
        def apply_fully(self, wanted: Marks) -> None:
            source.apply(self.info, difference(wanted, source.read_marks(self.info)))
            assert not difference(wanted, source.read_marks(self.info))

        @rule(wanted=wanted_marks(), where=st.sampled_from(READS_BEFORE_THE_LAST), tag=THEIR_TAGS, raw=RAW)
        def apply_while_others_edit(self, wanted: Marks, where: str, tag: str, raw: str) -> None:
            plan = difference(wanted, source.read_marks(self.info))
            server.on_request[where] = lambda: (self.edit_tags(tag, True, 0), self.edit_summary("loss", raw, ","))  # noqa: FBT003
            source.apply(self.info, plan)
            server.on_request.clear()

        @rule(wanted=wanted_marks(), fault=st.sampled_from(FAULTS), times=st.integers(1, 2), skip=st.integers(0, 1))
        def apply_and_fail(self, wanted: Marks, fault: tuple[str, Any], times: int, skip: int) -> None:
            server.fail(*fault, times=times, skip=skip)
            try:
                source.apply(self.info, difference(wanted, source.read_marks(self.info)))
            except RuntriageError:
                pass
            finally:
                server.clear_faults()

        @rule()
        def clear(self) -> None:
            source.apply(self.info, difference(Marks(), source.read_marks(self.info)))
            assert source.read_marks(self.info) == Marks()

        @invariant()
        def theirs_is_untouched(self) -> None:
            steps[0] += 1
            assert self.foreign() == self.theirs

        def teardown(self) -> None:
            if hasattr(self, "run"):
                server.clear_faults()
                self.change_state("finished")  # the summary of a run that was resumed is left alone until it ends
                self.clear()
                assert not [tag for tag in self.run.tags if is_own_tag(tag)]
                assert not [key for key in members(self.run.summary) if is_own(key)]
                assert not [name for name in self.run.files if name.startswith("runtriage/")]

    return Interleaved


def drive(examples: int, length: int) -> int:
    """Run the machine; return how many steps it took."""
    steps = [0]
    with stand_in() as server:
        run_state_machine_as_test(
            machine(server, steps),
            settings=settings(
                max_examples=examples,
                stateful_step_count=length,
                deadline=None,
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

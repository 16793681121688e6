"""Sweeps of a real MLflow that others edit, with kills between writes: theirs is kept, ours is whole or made whole."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from mlflow_server.real import RealServer, real_server
from mlflow_server.shared import Place, Run, Shared
from mlflow_server.verdicts import CODES, check_block, is_flagged, spelt_out, tags_for
from mlflow_server.writes import Killed, Writes, watched

from runtriage.cli import marks
from runtriage.cli.sweep_ask import Ask
from runtriage.cli.sweep_perform import perform
from runtriage.settings import CacheSettings, Settings, SweepSettings
from runtriage.trackers.mlflow.view import VIEW_TAG

pytestmark = pytest.mark.integration
RUNS = 3
KINDS = st.sampled_from([("tags",), ("tags", "panel"), ("panel",), ("tags", "view"), ("all",), ("all",)])
WHICH = st.integers(0, RUNS - 1)
WHERE = st.integers(-1, RUNS - 1)
AT = st.integers(0, 14)
THEIR_KEYS = st.sampled_from(["team", "runtriage", "Runtriage.status", "runtriage_status", "mlflow.source.git.commit"])
RUN_KEYS = THEIR_KEYS | st.just("runtriage.contract")
TEXTS = st.sampled_from([
    "hello", " x \n", "\n\n", "a\r\n\u200b\U0001f600", "```\nfence", "<!-- runtriage:begin --> lonely", "u" * 6500,
])
OURS = st.sampled_from(["status", "findings", "cursor", "baseline", "kept.files", "kept.note", "loss.z_max", "view"])
ALERTS = "runtriage.alerts"
SMALL = 1000
"""Characters of others in a note beside which our block is never cut."""


def machine(server: RealServer, writes: Writes, steps: list[int]) -> type[RuleBasedStateMachine]:  # noqa: C901
    """Make the machine over one server; ``steps[0]`` counts its steps."""

    class Machine(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            writes.reset()
            self.shared = Shared(server, RUNS)

        def place(self, number: int) -> Place:
            return self.shared.whole if number < 0 else self.shared.runs[number]

        @rule(run=WHICH, code=st.integers(0, CODES - 1))
        def train_on(self, run: int, code: int) -> None:
            if not self.shared.runs[run].deleted:
                self.shared.log(self.shared.runs[run], code)

        @rule(run=WHICH)
        def delete_or_restore(self, run: int) -> None:
            self.flip(self.shared.runs[run])

        def flip(self, run: Run) -> None:
            (self.shared.restore if run.deleted else self.shared.delete)(run)

        @rule(run=WHICH, key=RUN_KEYS, value=st.sampled_from([None, "", "v", "broken"]))
        def edit_tag_of_run(self, run: int, key: str, value: str | None) -> None:
            if not self.shared.runs[run].deleted:
                self.edit(self.shared.runs[run], key, value)

        @rule(key=THEIR_KEYS, value=st.sampled_from([None, "v", "w"]))
        def edit_tag_of_experiment(self, key: str, value: str | None) -> None:
            self.edit(self.shared.whole, key, value)

        def edit(self, place: Place, key: str, value: str | None) -> None:
            if value is None:
                self.shared.drop_tag(place, key)
                place.tags.pop(key, None)
            else:
                self.shared.set_tag(place, key, value)
                place.tags[key] = value

        @rule(where=WHERE, text=TEXTS, how=st.sampled_from(["replace", "before", "after", "drop"]))
        def edit_note(self, where: int, text: str, how: str) -> None:
            place = self.place(where)
            if isinstance(place, Run):
                if place.deleted:
                    return
                place.touched = True
            if how == "drop":
                self.shared.drop_note(place)
            elif how == "replace":
                self.shared.write_note(place, text)
            else:
                self.shared.write_around(place, *((text, "") if how == "before" else ("", text)))

        @rule(run=WHICH, path=st.sampled_from(["mine.txt", "runtriage/mine.txt"]), content=st.binary(max_size=4))
        def put_file(self, run: int, path: str, content: bytes) -> None:
            self.shared.put_file(self.shared.runs[run], path, content)
            self.shared.runs[run].files[path] = content

        @rule(run=WHICH)
        def remove_our_folder(self, run: int) -> None:
            self.shared.remove_folder(self.shared.runs[run])
            self.shared.runs[run].touched = True

        @rule(where=WHERE, key=OURS, value=st.sampled_from([None, None, "", "x"]))
        def meddle_with_ours(self, where: int, key: str, value: str | None) -> None:
            place, key = self.place(where), f"runtriage.{key}"
            if key not in self.shared.our_tags(place) or (isinstance(place, Run) and place.deleted):
                return
            if isinstance(place, Run) and "kept" in key:
                place.touched = True
            if value is None:
                self.shared.drop_tag(place, key)
            else:
                self.shared.set_tag(place, key, value)

        @rule(keep=st.booleans())
        def make_our_view_theirs(self, keep: bool) -> None:  # noqa: FBT001
            self.edit(self.shared.whole, VIEW_TAG, '{"name": "theirs"}' if keep else None)

        @rule(run=WHICH)
        def tell_of_alerts(self, run: int) -> None:
            if not self.shared.runs[run].deleted:
                self.shared.set_tag(self.shared.runs[run], ALERTS, "told")

        def sweep(self, kinds: tuple[str, ...], **how: bool) -> bool:
            """Sweep, and tell whether all went well."""
            ask = Ask(source=self.shared.address, **how)
            chosen = Settings(sweep=SweepSettings(write=kinds), cache=CacheSettings(address="off"))
            with contextlib.redirect_stderr(io.StringIO()), perform(ask, chosen) as swept:
                return swept.is_complete

        @rule(kinds=KINDS, fresh=st.booleans(), again=st.booleans())
        def sweep_to_the_end(self, kinds: tuple[str, ...], fresh: bool, again: bool) -> None:  # noqa: FBT001
            alerts = [ALERTS in self.shared.our_tags(run) for run in self.shared.runs]
            assert self.sweep(kinds, fresh=fresh)
            assert alerts == [ALERTS in self.shared.our_tags(run) for run in self.shared.runs]
            self.check_ours(kinds, fresh=fresh)
            writes.reset()
            assert self.sweep(kinds, fresh=fresh or again)
            if not fresh and again:  # what a sweep that trusts the cursors leaves, this one finds
                self.check_ours(kinds, fresh=True)
                writes.reset()
                assert self.sweep(kinds, fresh=True)
            assert writes.count == 0

        @rule(kinds=KINDS, fresh=st.booleans())
        def sweep_dry(self, kinds: tuple[str, ...], fresh: bool) -> None:  # noqa: FBT001
            writes.reset()
            self.sweep(kinds, dry_run=True, fresh=fresh)
            assert writes.count == 0

        @rule(kinds=KINDS, at=AT, late=st.booleans(), resume=st.booleans())
        def sweep_and_be_killed(self, kinds: tuple[str, ...], at: int, late: bool, resume: bool) -> None:  # noqa: FBT001
            writes.kill(at, late=late)
            with contextlib.suppress(Killed):
                self.sweep(kinds)
            writes.reset()
            if resume:
                assert self.sweep(kinds, resume=True)
                self.check_ours(kinds, fresh=False)

        @rule(kinds=KINDS, at=AT, run=WHICH, key=THEIR_KEYS)
        def sweep_while_others_edit(self, kinds: tuple[str, ...], at: int, run: int, key: str) -> None:
            chosen = self.shared.runs[run]
            gone = chosen.deleted
            writes.plan(at, lambda: None if gone else self.edit(chosen, key, "meanwhile"))
            self.sweep(kinds)
            writes.reset()

        @rule(kinds=KINDS, at=AT, run=WHICH)
        def sweep_while_a_run_comes_or_goes(self, kinds: tuple[str, ...], at: int, run: int) -> None:
            writes.plan(at, lambda: self.flip(self.shared.runs[run]))
            self.sweep(kinds)
            writes.reset()

        def clear(self, *, dry: bool = False) -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                assert marks.clear(self.shared.address, dry=dry) == 0

        @rule(at=AT, how=st.sampled_from(["dry", "to the end", "before", "after"]))
        def clear_marks(self, at: int, how: str) -> None:
            writes.reset()
            if how == "dry":
                self.clear(dry=True)
                assert writes.count == 0
            elif how == "to the end":
                self.clear_all()
            else:
                writes.kill(at, late=how == "after")
                with contextlib.suppress(Killed):
                    self.clear()
                writes.reset()

        def clear_all(self) -> None:
            self.clear()
            for run in self.shared.active:
                assert self.shared.our_tags(run) == {}
                assert self.shared.our_files(run) == {}
                assert self.shared.our_block(run) is None
            assert self.shared.our_tags(self.shared.whole) == {}
            assert self.shared.our_block(self.shared.whole) is None
            writes.reset()
            self.clear()
            assert writes.count == 0

        def check_ours(self, kinds: tuple[str, ...], *, fresh: bool) -> None:
            """Fail if a run does not have the marks of its verdict, each once."""
            active = self.shared.active
            for run in active:
                if kinds != ("panel",):
                    found = self.shared.our_tags(run)
                    wanted = tags_for(run.code, len(active) - 1)
                    rest = {"runtriage.version", "runtriage.config", "runtriage.cursor", ALERTS}
                    kept = {"runtriage.kept.files", "runtriage.kept.note"}
                    assert {k: v for k, v in found.items() if k not in rest | kept} == wanted
                if "panel" in kinds or "all" in kinds:
                    run.touched = run.touched and not fresh
                    if not run.touched:
                        self.check_panel(run)
            if {"view", "all"} & set(kinds):
                self.check_experiment(active)

        def check_panel(self, run: Run) -> None:
            block, files = self.shared.our_block(run), self.shared.our_files(run)
            flagged = is_flagged(run.code)
            assert set(files) == ({"runtriage/panel.svg", "runtriage/panel.html"} if flagged else set())
            if flagged and len(run.note or "") < SMALL:
                assert block is not None
                check_block(block, run.code)
            assert flagged or block is None

        def check_experiment(self, active: list[Run]) -> None:
            whole = self.shared.whole
            found, block = self.shared.our_tags(whole), self.shared.our_block(whole)
            assert ("runtriage.view" in found, block is not None) == (bool(active), bool(active))
            assert VIEW_TAG in whole.tags or (VIEW_TAG in found) == bool(active)
            if block is not None and len(active) > 1 and len(whole.note or "") < SMALL:
                for run in self.shared.runs:
                    assert block.count(f"`{run.name}`") == (run in active and is_flagged(run.code))

        @invariant()
        def theirs_is_untouched(self) -> None:
            steps[0] += 1
            self.shared.check_theirs()

        def teardown(self) -> None:
            if not hasattr(self, "shared"):
                return
            writes.reset()
            for run in self.shared.runs:
                if run.deleted:
                    self.shared.restore(run)
            self.clear_all()
            self.shared.check_theirs()

    return Machine


def drive(folder: Path, examples: int, length: int) -> int:
    """Run the machine; return how many steps it took."""
    steps = [0]
    wanted = settings(
        max_examples=examples, stateful_step_count=length, deadline=None, suppress_health_check=list(HealthCheck)
    )
    judged: Callable[..., object] = spelt_out
    with real_server(folder) as server, watched() as writes, mock.patch("runtriage.sweep.job.triage_cohort", judged):
        run_state_machine_as_test(machine(server, writes, steps), settings=wanted)
    return steps[0]


def test_sweeps_among_others(tmp_path: Path) -> None:
    """Some hundred steps in the fast suite."""
    assert drive(tmp_path, 4, 25) >= 60


@pytest.mark.statistical
@pytest.mark.timeout(3600)
def test_ten_thousand_steps(tmp_path: Path) -> None:
    """In ten thousand steps nothing of others is changed, no finding lost or doubled, nothing written twice."""
    assert drive(tmp_path, 280, 50) >= 10_000

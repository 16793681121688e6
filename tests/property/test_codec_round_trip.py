"""A report is the same after writing and reading, whatever its names hold."""

from __future__ import annotations

import json
import math
import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from runtriage.codec import decode_report, encode_report
from runtriage.model.report import BaselineUse, Cause, Finding, Phase, Report, RunSummary, Tool
from runtriage.model.vocab import BaselineKind, CauseId, Explanation, FindingKind, Level, Outcome, RunState, Severity

HOSTILE = ("NaN", "Infinity", '"}\n{', "\x1b[2J", "\u202egnp.exe", "\u2028", "\x85", "</script>", "\\", "\x00", "")
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(HOSTILE)
numbers = st.floats(allow_nan=True, allow_infinity=True)
steps = st.integers(-(2**62), 2**62)
tuples = st.lists(texts, max_size=3).map(tuple)
causes = st.builds(
    Cause, id=st.sampled_from(CauseId), weight=numbers, because=tuples, verify=tuples, try_=tuples
)
findings = st.builds(
    Finding, kind=st.sampled_from(FindingKind), metric=texts, role=texts, start_step=steps, end_step=st.none() | steps,
    peak_step=steps, severity=st.sampled_from(Severity), z=numbers, p_false_alarm=st.none() | numbers,
    outcome=st.none() | st.sampled_from(Outcome), explained_by=st.none() | st.sampled_from(Explanation),
    evidence=tuples, causes=st.lists(causes, max_size=2).map(tuple),
)
reports = st.builds(
    Report,
    run=st.builds(
        RunSummary, source=texts, id=texts, name=texts, state=st.sampled_from(RunState), url=st.none() | texts
    ),
    verdict=st.sampled_from(Level), reason=texts, p_false_alarm=st.none() | numbers,
    baseline=st.builds(
        BaselineUse, kind=st.sampled_from(BaselineKind), runs=st.integers(0, 99), fingerprint=texts,
        paired=st.booleans(), excluded=tuples, formed_by=texts,
    ),
    phases=st.lists(st.builds(Phase, name=texts, start_step=steps, end_step=steps), max_size=2).map(tuple),
    findings=st.lists(findings, max_size=2).map(tuple), missing=tuples,
    series=st.dictionaries(texts | st.sampled_from(["z", "weight"]), texts, max_size=3),
    tool=st.builds(Tool, name=texts, version=texts),
)


def refuse(word: str) -> None:
    """Fail on a constant that strict JSON does not have."""
    raise AssertionError(word)


@given(reports)
def test_reading_gives_back_what_was_written(report: Report) -> None:
    """Nothing is lost or changed, numbers that are not finite included."""
    again = decode_report(encode_report(report))
    assert repr(again) == repr(report)  # equal also where NaN is


@given(reports)
def test_a_report_is_one_strict_line(report: Report) -> None:
    """Any JSON parser reads it, and no line splitter or terminal acts on what is in it."""
    text = encode_report(report).decode()
    json.loads(text, parse_constant=refuse)
    assert len((text + "x").splitlines()) == 1
    assert not ACTING.search(text)


@given(st.text(max_size=10), st.sampled_from(["name", "id", "source"]))
def test_lone_surrogates_do_not_stop_a_report(text: str, where: str) -> None:
    """A name that UTF-8 cannot carry is written with replacement characters."""
    run = msgspec.structs.replace(
        RunSummary(source="s", id="i", name="n", state=RunState.UNKNOWN), **{where: text + "\ud800"}
    )
    report = Report(run=run, verdict=Level.HEALTHY, reason="", baseline=BaselineUse(kind=BaselineKind.NONE))
    assert "\ufffd" in getattr(decode_report(encode_report(report)).run, where)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_numbers_survive_to_the_last_bit(weight: float, z: float) -> None:
    """Finite numbers are written so that they read back equal, signed zeros too."""
    cause = Cause(id=CauseId.UNKNOWN, weight=weight)
    finding = Finding(
        kind=FindingKind.PLATEAU, metric="m", role="loss", start_step=0, peak_step=0, severity=Severity.INFO, z=z,
        causes=(cause,),
    )
    report = Report(
        run=RunSummary(source="s", id="i", name="n", state=RunState.UNKNOWN), verdict=Level.HEALTHY, reason="",
        baseline=BaselineUse(kind=BaselineKind.NONE), findings=(finding,),
    )
    found = decode_report(encode_report(report)).findings[0]
    assert (found.z, found.causes[0].weight) == (z, weight)
    assert math.copysign(1, found.z) == math.copysign(1, z)

"""MLflow's JSON, turned into our nouns."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtriage.model.vocab import RunState
from runtriage.trackers.mlflow import wire
from runtriage.trackers.mlflow.histories import offset_token, token_offset
from runtriage.trackers.mlflow.params import parse_param
from runtriage.trackers.mlflow.rows import Rows, track

INT64 = st.integers(-(2**63), 2**63 - 1)
DBL_MAX = 1.7976931348623157e308


def word(value: float) -> float | str:
    return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")


def page(points: list[tuple[int, float, int]], **more: Any) -> bytes:
    rows = [{"key": "k", "step": s, "value": word(v), "timestamp": t} for s, v, t in points]
    return json.dumps({"metrics": rows, **more}).encode()


def run(**more: Any) -> wire.RunRecord:
    info = {"run_id": "r", "experiment_id": "1", "status": "FINISHED", **more.pop("info", {})}
    return wire.decode_run(json.dumps({"run": {"info": info, "data": more}}).encode())


@given(st.lists(st.tuples(INT64, st.floats(), st.integers(0, 2**62)), max_size=20))
def test_any_point_survives(points: list[tuple[int, float, int]]) -> None:
    """Steps of 64 bits, NaN, infinities, huge and tiny values arrive as sent."""
    rows = wire.decode_history(page(points)).rows
    assert rows.step.tolist() == [step for step, _, _ in points]
    wanted = [math.copysign(math.inf, v) if abs(v) >= DBL_MAX else v for _, v, _ in points]
    assert np.array_equal(rows.value, np.array(wanted), equal_nan=True)


@pytest.mark.parametrize(("sent", "meant"), [(DBL_MAX, math.inf), (-DBL_MAX, -math.inf), (1.7e308, 1.7e308)])
def test_the_stores_stand_in_for_infinity_is_undone(sent: float, meant: float) -> None:
    """SQL stores keep an infinity as the largest double."""
    assert wire.decode_history(page([(0, sent, 0)])).rows.value.tolist() == [meant]


def test_numbers_as_text_are_numbers() -> None:
    """Some servers send 64-bit integers as strings."""
    body = b'{"metrics": [{"value": "NaN", "step": "12", "timestamp": "34"}]}'
    rows = wire.decode_history(body).rows
    assert (rows.step.tolist(), rows.timestamp.tolist()) == ([12], [34])


@pytest.mark.parametrize(("token", "meant"), [("", None), (None, None), ("abc", "abc")])
def test_the_last_page_has_no_token(token: str | None, meant: str | None) -> None:
    """An empty token means what a missing one means."""
    assert wire.decode_history(page([], next_page_token=token)).next_token == meant


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"metrics": {}}', b'{"metrics": [{"step": 1.5}]}'])
def test_other_shapes_are_refused(body: bytes) -> None:
    """What is not a page of a history is an error of the codec, for the client to translate."""
    with pytest.raises(msgspec.MsgspecError):
        wire.decode_history(body)


@given(st.integers(0, 2**62))
def test_page_tokens_can_be_made(offset: int) -> None:
    """A token we make is one we can read."""
    assert token_offset(offset_token(offset)) == offset


@pytest.mark.parametrize("token", ["", "x", "\xe9", "eyJvIjoxfQ==", "WzFd", "eyJvZmZzZXQiOjEsInoiOjF9"])
def test_tokens_of_another_make_are_left_alone(token: str) -> None:
    """A token that holds anything but an offset has no offset."""
    assert token_offset(token) is None


ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1.0, math.nan]), st.integers(10**12, 10**12 + 3)))


def rows_of(points: list[tuple[int, float, int]]) -> Rows:
    return wire.decode_history(page(points)).rows


@given(ROWS, ROWS)
def test_overlapping_pages_give_each_point_once(first: list[Any], second: list[Any]) -> None:
    """Rows that come twice are one point; those that differ in anything are two."""
    joined = track([rows_of(first), rows_of(second)])
    distinct = {(step, repr(value), stamp) for step, value, stamp in [*first, *second]}
    assert len(joined.step) == len(distinct)


@given(ROWS)
def test_points_are_in_order_of_time(points: list[Any]) -> None:
    """Whatever the order of the rows, the clock does not go back."""
    wall = track([rows_of(points)]).wall
    assert wall is None or bool(np.all(np.diff(wall) >= 0))


def test_a_client_without_a_clock_has_none() -> None:
    """Time stamps that are all zero are no time."""
    assert track([rows_of([(0, 1.0, 0), (1, 2.0, 0)])]).wall is None


def test_joined_arrays_cannot_be_written() -> None:
    """A track is not changed by accident."""
    assert not track([rows_of([(0, 1.0, 0)])]).value.flags.writeable


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1", 1),
        ("-3", -3),
        ("0.1", 0.1),
        ("1e-4", 1e-4),
        ("3.", 3.0),
        (".5", 0.5),
        ("True", True),
        ("false", False),
        ("None", None),
        ("[1, 'a']", [1, "a"]),
        ("(1, 2)", "(1, 2)"),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("{'a': (1, 2)}", {"a": [1, 2]}),
        ("007", "007"),
        ("1_000", "1_000"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1e999", "1e999"),
        ("9" * 19, "9" * 19),
        (" 1", " 1"),
        ("\u0663", "\u0663"),
        ("{1: 2}", "{1: 2}"),
        ("{'a'}", "{'a'}"),
        ("[__import__('os')]", "[__import__('os')]"),
        ("[" * 5000, "[" * 5000),
        ("", ""),
    ],
)
def test_parameters_are_read_where_there_is_no_doubt(text: str, meant: object) -> None:
    """A parameter becomes what it was before it was text, or stays text."""
    assert (parse_param(text), type(parse_param(text))) == (meant, type(meant))


@example("{{}}")
@given(st.one_of(st.text(), st.text(alphabet="[]{}()'\"\\,:0123456789.eE-+ nulTrue")))
def test_no_parameter_is_an_error(text: str) -> None:
    """Any text at all can be a parameter, and the result can go into a report."""
    msgspec.json.encode(parse_param(text))


@pytest.mark.parametrize(("word_", "state"), [("SCHEDULED", RunState.RUNNING), ("NEW", RunState.UNKNOWN)])
def test_words_for_states(word_: str, state: RunState) -> None:
    """A scheduled run counts as running, a word of a later version as unknown."""
    assert run(info={"status": word_}).state == state


def test_a_run_without_anything_is_a_run() -> None:
    """Fields that a server leaves out have defaults."""
    assert (run().last_steps, run().config, run().started) == ({}, {}, None)


def test_the_cursor_ignores_tags_and_order() -> None:
    """Marks of ours, and the order in which a server lists things, do not change the cursor."""
    a, b = {"key": "a", "value": 1, "step": 1}, {"key": "b", "value": "NaN", "step": 1}
    assert run(metrics=[a, b]).cursor == run(metrics=[b, a], tags=[{"key": "t", "value": "v"}]).cursor


@pytest.mark.parametrize("field", ["value", "step", "timestamp"])
def test_the_cursor_sees_the_latest_point(field: str) -> None:
    """Another latest value, step or time stamp is another cursor."""
    point = {"key": "a", "value": 1.0, "step": 1, "timestamp": 1}
    assert run(metrics=[point]).cursor != run(metrics=[{**point, field: 2}]).cursor


def test_folders_among_files_have_no_size() -> None:
    """A listing of artifacts tells folders from empty files."""
    body = b'{"files": [{"path": "a", "is_dir": true}, {"path": "b", "file_size": "0"}]}'
    assert wire.decode_files(body).sizes == {"a": None, "b": 0}

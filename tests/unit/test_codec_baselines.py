"""The file of learned baselines: what was learned comes back, and what is no such file is said."""

from __future__ import annotations

import zlib

import msgspec
import numpy as np
import pytest

from runtriage import pipeline
from runtriage.codec_baselines import SCHEMA, decode_baselines, encode_baselines
from runtriage.errors import CodecError
from runtriage.model.baseline import Baseline, BaselineSet, Member
from tests.drawn_cohort import cohort, histories


@pytest.fixture(scope="module")
def learned() -> BaselineSet:
    """Return baselines of four drawn runs."""
    return pipeline.learn(histories(cohort(4, count=300)), source="files:somewhere")


def _document(content: bytes) -> dict[str, object]:
    return msgspec.msgpack.decode(zlib.decompress(content), type=dict[str, object])


def _written(document: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(document))


def test_everything_comes_back(learned: BaselineSet) -> None:
    """Edges, levels, excursions, rows and provenance are equal after a round trip."""
    again = decode_baselines(encode_baselines(learned))
    assert (again.source, again.tool, set(again.cohorts)) == (learned.source, learned.tool, set(learned.cohorts))
    for name, cohort_ in learned.cohorts.items():
        other = again.cohorts[name]
        np.testing.assert_array_equal(other.edges, cohort_.edges)
        assert (other.excluded, other.paired, other.formed_by) == (cohort_.excluded, cohort_.paired, cohort_.formed_by)
        for a, b in zip(cohort_.members, other.members, strict=True):
            assert (a.run_id, set(a.level), set(a.peak), set(a.event), set(a.rows)) == (
                b.run_id, set(b.level), set(b.peak), set(b.event), set(b.rows),
            )
            for role, level in a.level.items():
                np.testing.assert_array_equal(b.level[role], level)
            for role, event in a.event.items():
                np.testing.assert_array_equal(b.event[role], event)


def test_equal_baselines_are_equal_bytes(learned: BaselineSet) -> None:
    """Writing twice, or what was read, gives the same file."""
    content = encode_baselines(learned)
    assert encode_baselines(decode_baselines(content)) == content


def test_nothing_learned_is_a_file_too() -> None:
    """An empty set comes back empty."""
    assert not decode_baselines(encode_baselines(BaselineSet(cohorts={}))).cohorts


def test_hostile_names_come_back() -> None:
    """Run ids and fingerprints may hold anything."""
    member = Member(run_id="\x1b[2J</script>\u202e")
    made = BaselineSet(
        cohorts={"\0|": Baseline(fingerprint="\0|", edges=np.array([0.0, 1.0]), members=(member,))}, source="'\n"
    )
    again = decode_baselines(encode_baselines(made))
    assert again.cohorts["\0|"].members[0].run_id == member.run_id


@pytest.mark.parametrize(
    "content",
    [b"", b"not compressed", b"{}", zlib.compress(b"not msgpack"), _written([1, 2]), _written({"schema": 3})],
    ids=["empty", "text", "json", "rubbish", "list", "number"],
)
def test_other_files_are_refused(content: bytes) -> None:
    """What is no baseline file gives the typed error with a hint."""
    with pytest.raises(CodecError, match="baseline file") as caught:
        decode_baselines(content)
    assert caught.value.hint


def test_file_that_is_cut_short_is_refused(learned: BaselineSet) -> None:
    """Every proper beginning of a file is refused."""
    content = encode_baselines(learned)
    for size in range(0, len(content), max(1, len(content) // 25)):
        with pytest.raises(CodecError, match="baseline file"):
            decode_baselines(content[:size])


def test_flipped_bytes_are_refused_or_read(learned: BaselineSet) -> None:
    """A byte that changed on disk gives the typed error: the checksum notices it."""
    content = bytearray(encode_baselines(learned))
    content[len(content) // 2] ^= 0xFF
    with pytest.raises(CodecError, match="baseline file"):
        decode_baselines(bytes(content))


def test_later_version_is_named(learned: BaselineSet) -> None:
    """A file of another schema says which, and which is read here."""
    document = _document(encode_baselines(learned)) | {"schema": "runtriage.baselines/2"}
    with pytest.raises(CodecError, match=r"runtriage\.baselines/2.*" + SCHEMA):
        decode_baselines(_written(document))


def _edit(learned: BaselineSet, what: str, value: object) -> bytes:
    document = msgspec.msgpack.decode(zlib.decompress(encode_baselines(learned)))
    [part] = document["cohorts"].values()
    if what in part:
        part[what] = value
    else:
        member = part["members"][0]
        member[what][next(iter(member[what]))] = value
    return _written(document)


@pytest.mark.parametrize(
    ("what", "value", "said"),
    [
        ("edges", np.array([0.0, 0.0, 1.0]).tobytes(), "do not rise"),
        ("edges", np.array([0.0, np.nan, 1.0]).tobytes(), "do not rise"),
        ("edges", b"1234567", "mid-number"),
        ("level", np.zeros(3).tobytes(), "3 values where there are"),
        ("peak", b"123", "mid-number"),
        ("event", b"123456789", "mid-number"),
        ("rows", [np.zeros(3).tobytes(), np.zeros(2).tobytes()], "differ in number"),
    ],
    ids=["flat-bins", "nan-bins", "cut-bins", "other-bins", "cut-peaks", "cut-events", "odd-rows"],
)
def test_arrays_that_do_not_fit_are_refused(learned: BaselineSet, what: str, value: object, said: str) -> None:
    """Each inconsistency is named together with its place."""
    with pytest.raises(CodecError, match=said) as caught:
        decode_baselines(_edit(learned, what, value))
    assert caught.value.where is not None
    assert caught.value.where.startswith("$.cohorts")

"""Our block in somebody else's note."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runtriage.trackers.mlflow.note import (
    BEGIN,
    BEGIN_APART,
    END,
    NOTE_LIMIT,
    fit,
    put_block,
    recall,
    remember,
    remove_block,
    take_apart,
)

# Text as people write it, and pieces of our own grammar in every wrong order.
PIECES = st.sampled_from(["\n", "\n\n", "\r\n", " ", "text", "<!--", "-->", "```", "| a |", "\u200b", "\0"])
SHARDS = st.sampled_from([BEGIN, BEGIN_APART, BEGIN[:9], END[3:]])
FOREIGN = st.lists(st.one_of(PIECES, SHARDS, st.text(max_size=20)), max_size=12).map("".join)
NOTES = st.one_of(st.none(), FOREIGN.filter(lambda text: END not in text))
BLOCKS = st.lists(st.one_of(PIECES, SHARDS, st.just(END), st.text(max_size=20)), max_size=12).map("".join)


def _has_no_marker(text: str) -> bool:
    return "runtriage:" not in text


PLAIN = st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=12).map("".join).filter(_has_no_marker)


@given(NOTES, BLOCKS)
def test_removing_what_was_put_gives_back_every_byte(note: str | None, block: str) -> None:
    """Put and remove leaves the note as it was, down to whether there was one."""
    assert remove_block(put_block(note, block)) == note


@given(NOTES, BLOCKS, BLOCKS)
def test_replacing_touches_nothing_else(note: str | None, first: str, second: str) -> None:
    """A block put over another gives the note that the second alone gives."""
    assert put_block(put_block(note, first), second) == put_block(note, second)


@given(NOTES, PLAIN)
def test_a_plain_block_is_found_as_it_was_put(note: str | None, block: str) -> None:
    """A block without our markers in it is read as it was written."""
    assert take_apart(put_block(note, block) or "").block == block


@given(NOTES, BLOCKS)
def test_the_users_text_stays_in_front(note: str | None, block: str) -> None:
    """A new block goes behind everything that was there."""
    assert (put_block(note, block) or "").startswith(note or "")


@given(NOTES, PLAIN, PLAIN, PLAIN)
def test_what_is_written_around_the_block_stays(note: str | None, block: str, before: str, after: str) -> None:
    """Text that a person adds before and behind our block is there after our block is gone."""
    put = put_block(note, block)
    assert put is not None
    assert remove_block(before + put + after) == ((before + (note or "") + after) or note)


@given(FOREIGN, st.integers(0, 300), BLOCKS)
def test_a_note_never_grows_beyond_the_limit(note: str, room: int, block: str) -> None:
    """With any room left, the whole fits where it has to be stored."""
    assume(END not in note)
    limit = len(note) + room
    assert len(put_block(note, block * 20, limit=limit) or "") <= limit


@given(BLOCKS, st.integers(0, 400))
def test_a_cut_block_is_whole_lines_and_says_so(block: str, room: int) -> None:
    """What is left of a block is its first lines and the sentence."""
    clean = block.replace("<!-- runtriage:", "&lt;!-- runtriage:")
    cut = fit(block, room)
    if cut is None:
        assert len(clean) > room
    elif cut != clean:
        kept = cut.rpartition("\n\n")[0]
        assert cut.endswith("description.")
        assert clean.startswith(kept + "\n")


@given(PLAIN, st.one_of(st.none(), PLAIN))
def test_what_was_wanted_is_remembered(wanted: str, written: str | None) -> None:
    """The block that was wanted is known as long as what was written in its place stands there."""
    assert recall(remember(wanted, written), written) == wanted


@pytest.mark.parametrize("memory", ["", ";", "x;y", remember("a", "b")[:-3], remember("a", "other")])
def test_a_damaged_memory_is_none(memory: str) -> None:
    """What cannot be recalled leaves the block that is there."""
    assert recall(memory, "b") == "b"


def test_the_limit_is_the_servers() -> None:
    """A block that just fits makes a note of exactly the length that the server keeps, or a little less."""
    text = put_block("u" * 100, "x" * (NOTE_LIMIT - 100 - 57)) or ""
    assert NOTE_LIMIT - 10 <= len(text) <= NOTE_LIMIT


def test_a_copied_block_is_replaced_once() -> None:
    """Of two blocks, as after copying a note, the last is ours; the other stays."""
    once = put_block(None, "old") or ""
    assert put_block(once + once, "new") == once + (put_block(None, "new") or "")

"""Chinese reports: hostile names stay harmless, wide characters count as two, ids stay beside the words."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest

from runtriage.cli import table
from runtriage.model.curve import Triage
from runtriage.model.vocab import Lang, Level
from runtriage.outputs.marks import run_tags
from runtriage.outputs.report import words
from runtriage.outputs.report.html import render_html
from runtriage.outputs.report.markdown import render_digest, render_note
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.report.text import render_text
from tests.golden.made import report, spike_finding, triage

HOSTILE = "<img src=x onerror=y>\x1b[31m\u202e{0.__class__}|`[a](http://evil)"


def hostile() -> Triage:
    """Return a triage in Chinese with a hostile name, metric, reason and piece of evidence."""
    finding = msgspec.structs.replace(spike_finding(HOSTILE), evidence=(HOSTILE,))
    whole = report(Level.SUSPICIOUS)
    run = msgspec.structs.replace(whole.run, name=HOSTILE)
    whole = msgspec.structs.replace(whole, run=run, findings=(finding,), reason=HOSTILE, lang=Lang.ZH)
    return Triage(report=whole, curves=triage().curves)


OUTPUTS: dict[str, Callable[[Triage], str]] = {
    "page": lambda one: render_html([one], "t"),
    "picture": render_svg,
    "note": lambda one: render_note(one.report),
    "digest": lambda one: render_digest([one.report]),
    "text": lambda one: render_text(one, width=90),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_hostile_words_are_as_harmless_as_in_english(output: str) -> None:
    """No control or bidirectional character anywhere, no element in pages and pictures, no link in Markdown."""
    told = OUTPUTS[output](hostile())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", told)
    if output in {"page", "picture"}:
        assert "<img" not in told
    if output in {"note", "digest"}:
        assert not re.search(r"(?<!\\)<img|(?<!\\)\[a\]", re.sub(r"(`+) ?.*?\1", "", told))


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Chinese characters fill two columns each; closing punctuation may hang over by one."""
    one = triage()
    chinese = Triage(report=msgspec.structs.replace(one.report, lang=Lang.ZH), curves=one.curves)
    assert max(words.width(line) for line in render_text(chinese, width=width).splitlines()) <= width + 2


def test_columns_of_the_table_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The second column begins at one place on the screen in every row, whatever the verdict's words are."""
    levels = (Level.BROKEN, Level.WATCH, Level.HEALTHY, Level.WITHHELD)
    names = [f"run-{level}" for level in levels]
    chosen = []
    for level, name in zip(levels, names, strict=True):
        whole = report(level)
        run = msgspec.structs.replace(whole.run, name=name)
        chosen.append(msgspec.structs.replace(whole, run=run, lang=Lang.ZH))
    table.show(chosen)
    lines = capsys.readouterr().out.splitlines()
    places = {words.width(line[: line.index(name)]) for name in names for line in lines if name in line}
    assert len(places) == 1


def test_tags_are_the_same_in_every_language() -> None:
    """What filters and saved views rest on does not move."""
    english = report(Level.SUSPICIOUS)
    assert run_tags(english) == run_tags(msgspec.structs.replace(english, lang=Lang.ZH))

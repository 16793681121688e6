"""The digest for a GitHub issue: order, hostile words, and its end."""

from __future__ import annotations

import re

import msgspec
import pytest

from runtriage.model.report import Report
from runtriage.model.vocab import Lang, Level
from runtriage.outputs.report.issue import ISSUE_LIMIT, render_issue
from tests.golden.made import report, spike_finding

HOSTILE = "@team #12 GH-7 o/r#3 <img src=x onerror=y> </summary></details> [a](http://evil) |x| ![i](u) `c` www.evil.x"


def made(level: Level = Level.SUSPICIOUS, name: str = "run", **facts: object) -> Report:
    whole = report(level)
    run = msgspec.structs.replace(whole.run, name=name, id=name)
    return msgspec.structs.replace(whole, run=run, **facts)


def test_counts_stand_first_and_the_worst_runs_next() -> None:
    """Broken before suspicious before watch; healthy runs are only counted."""
    levels = {"w": Level.WATCH, "b": Level.BROKEN, "h": Level.HEALTHY, "s": Level.SUSPICIOUS}
    text = render_issue(made(level, name) for name, level in levels.items())
    assert text.startswith("**runtriage: 3 of 4 runs need a look** (1 broken, 1 suspicious, 1 watch, 1 healthy).")
    assert re.findall(r"<code>(\w)</code>", text) == ["b", "s", "w"]


def test_a_run_says_what_was_seen_what_may_be_the_cause_and_how_to_check() -> None:
    """The three parts are folded away below one line."""
    text = render_issue([made()])
    seen, likely, check = (text.index(part) for part in ("Seen: ", "Likely: ", "Check: "))
    assert text.index("<details>") < seen < likely < check < text.index("</details>")


def test_a_digest_is_told_in_its_language() -> None:
    """Chinese words, and beside them the ids that tags and JSON have."""
    text = render_issue([msgspec.structs.replace(made(), lang=Lang.ZH)], Lang.ZH)
    assert text.startswith("**runtriage：1 个 run 中有 1 个需要查看**（1 个可疑）。\n")
    assert "**损失尖峰（loss_spike）**" in text


def test_nothing_to_see_is_one_line() -> None:
    """A digest of healthy runs, and one of no runs."""
    assert render_issue([made(Level.HEALTHY)]) == "**runtriage: none of 1 runs needs a look** (1 healthy).\n"
    assert render_issue([]) == "**runtriage: none of 0 runs needs a look**.\n"


@pytest.mark.parametrize("lang", Lang)
@pytest.mark.parametrize("where", ["name", "metric", "evidence", "reason", "url"])
def test_hostile_words_reach_nobody_and_close_nothing(where: str, lang: Lang) -> None:
    """Outside of code no mention, reference, link, image or markup of others is left."""
    finding = spike_finding()
    if where in {"metric", "evidence"}:
        finding = msgspec.structs.replace(finding, **{where: HOSTILE if where == "metric" else (HOSTILE,)})
    whole = made(name=HOSTILE if where == "name" else "n", findings=(finding,))
    if where == "reason":
        whole = msgspec.structs.replace(whole, reason=HOSTILE)
    if where == "url":
        whole = msgspec.structs.replace(whole, run=msgspec.structs.replace(whole.run, url="http://x/) @team #1"))
    text = render_issue([msgspec.structs.replace(whole, lang=lang)], lang)
    outside = re.sub(r"(`+) ?.*?\1|<code>.*?</code>", "", text)
    assert (outside.count("<details>"), outside.count("</details>"), outside.count("</summary>")) == (1, 1, 1)
    assert not re.search(r"@\w|(?<!\\)<img|#\d|GH-\d|://evil|(?<!\\)\[a|(?<!\\)\||www\.e", outside)
    assert "<img" not in re.sub(r"(`+) ?.*?\1", "", text).replace("\\<img", "")


def test_many_runs_end_with_how_many_are_left_out() -> None:
    """The digest stays below GitHub's limit, and shown and left out make up the whole."""
    text = render_issue(made(name=f"run {i:04}") for i in range(1200))
    shown = text.count("<details>")
    assert len(text.encode()) <= ISSUE_LIMIT < 65_536
    assert f"… {1200 - shown} more runs that need a look left out here" in text
    assert shown > 20


def test_the_order_of_reports_does_not_matter() -> None:
    """Equal sweeps give equal digests."""
    reports = [made(level, str(i)) for i, level in enumerate([Level.WATCH, Level.BROKEN, Level.SUSPICIOUS] * 5)]
    assert render_issue(reports) == render_issue(reports[::-1])

"""News in words."""

from __future__ import annotations

from runtriage.model.report import BaselineUse, Cause, Finding, Report, RunSummary
from runtriage.model.rule import AlertRule, NonFinite
from runtriage.model.vocab import BaselineKind, CauseId, FindingKind, Level, RunState, Severity
from runtriage.notify.message import Bulletin, messages
from runtriage.notify.news import Change, News

CRITICAL = Severity.CRITICAL
RULES = {
    "nan": AlertRule(id="nan", about="The loss is NaN.", role="loss", condition=NonFinite(), severity=CRITICAL),
    "band": AlertRule(id="band", about="The loss is high.", role="loss", condition=NonFinite()),
}
HOSTILE = "x\x1b[31m <!channel> @here\n[a](http://evil)" + "y" * 500


def news(rule: str = "nan", change: Change = Change.STARTED, step: int = 100) -> News:
    return News(rule=rule, run_id="r", change=change, step=step, value=2.5)


def report() -> Report:
    cause = Cause(id=CauseId.LR_TOO_LARGE, weight=0.7, because=("lr at its peak",), verify=("Replay with lr / 10.",))
    finding = Finding(
        kind=FindingKind.NON_FINITE, metric="loss", role="loss", start_step=99, peak_step=99,
        severity=Severity.CRITICAL, z=9.0, causes=(cause,),
    )
    return Report(
        run=RunSummary(source="s", id="r", name="n", state=RunState.RUNNING), verdict=Level.BROKEN, reason="x",
        baseline=BaselineUse(kind=BaselineKind.NONE), findings=(finding,),
    )


def bulletin(*some: News, name: str = "run", known: bool = True) -> Bulletin:
    return Bulletin(
        run_id="r", name=name, url="https://t/r", news=some or (news(),), report=report() if known else None
    )


def test_a_message_has_three_parts_and_a_link() -> None:
    """What was seen, what may have caused it, how to check, and where to look."""
    (message,) = messages([bulletin()], RULES)
    assert message.title == "run: The loss is NaN"
    assert message.body.splitlines() == [
        "Seen", "- The loss is NaN. Step 100, value 2.5.", "", "Likely causes", "- lr_too_large (70%): lr at its peak",
        "", "Check", "- Replay with lr / 10.", "", "https://t/r",
    ]


def test_without_a_finding_no_cause_is_made_up() -> None:
    """When only the rule speaks, the message says that the analysis does not."""
    (message,) = messages([bulletin(known=False)], RULES)
    assert "None yet" in message.body


def test_an_end_is_told_without_causes() -> None:
    """What is over needs no checks."""
    (message,) = messages([bulletin(news(change=Change.ENDED))], RULES)
    assert (message.title, "Likely" in message.body, message.severity) == (
        "run: over: The loss is NaN", False, Severity.INFO
    )


def test_much_news_is_one_digest() -> None:
    """Forty runs make one message that lists twenty-five and counts the rest; its severity is the worst."""
    many = [bulletin(news("band"), news("nan"), name=f"run {i}") for i in range(40)]
    (message,) = messages(many, RULES)
    assert message.title == "runtriage: 80 alerts, 0 over, on 40 runs"
    assert "and 15 more runs" in message.body
    assert message.severity == Severity.CRITICAL


def test_runs_without_news_are_left_out() -> None:
    """Silence is not told."""
    assert messages([Bulletin(run_id="r", name="n", url=None, news=())], RULES) == []


def test_hostile_names_call_nobody() -> None:
    """No control character, mention or endless name reaches a chat."""
    (message,) = messages([bulletin(name=HOSTILE)], RULES)
    assert message.title.isprintable()
    assert len(message.title) < 150
    assert not {"@", "<", ">"} & set(message.title)

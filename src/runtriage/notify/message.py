"""News in words: what was seen, what may have caused it, how to check, where to look. Pure; names are hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtriage.model.report import Cause, Finding, Report
from runtriage.model.rule import AlertRule, Ended
from runtriage.model.vocab import Severity
from runtriage.notify.news import Change, News

DIGEST_FROM = 5
"""So many pieces of news in one round are told in one message."""

_LISTED = 25
_NAME = 80
_CAUSES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Plain text to be sent.

    Attributes
    ----------
    title
        One line.
    body
        Several lines.
    severity
        The worst of what it tells.
    runs
        Ids of the runs it is about.
    """

    title: str
    body: str
    severity: Severity
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulletin:
    """The news of one run with what is known of it.

    Attributes
    ----------
    run_id, name, url
        The run; the name is hostile input.
    news
        What is new.
    report
        The verdict on the run, or None.
    """

    run_id: str
    name: str
    url: str | None
    news: tuple[News, ...]
    report: Report | None = None


def messages(bulletins: Sequence[Bulletin], rules: Mapping[str, AlertRule]) -> list[Message]:
    """Return what to send: one message a run, or a digest when there is much news.

    Parameters
    ----------
    bulletins
        Runs; those without news are left out.
    rules
        Rule id to rule; a rule that is no longer in the file is told by its id.
    """
    telling = [bulletin for bulletin in bulletins if bulletin.news]
    if sum(len(bulletin.news) for bulletin in telling) >= DIGEST_FROM and len(telling) > 1:
        return [_digest(telling, rules)]
    return [_single(bulletin, rules) for bulletin in telling]


def _single(bulletin: Bulletin, rules: Mapping[str, AlertRule]) -> Message:
    first = bulletin.news[0]
    lines = ["Seen"]
    lines += [f"- {_seen(news, rules)}" for news in bulletin.news]
    starting = [news for news in bulletin.news if news.change != Change.ENDED]
    if starting:
        lines += _diagnosis(bulletin.report, starting[0])
        lines += _trust(rules.get(starting[0].rule))
    if bulletin.url:
        lines += ["", bulletin.url]
    state = "over: " if not starting else ""
    more = f" and {len(bulletin.news) - 1} more" if len(bulletin.news) > 1 else ""
    title = f"{_plain(bulletin.name)}: {state}{_about(first, rules).rstrip('.')}{more}"
    return Message(title=title, body="\n".join(lines), severity=_worst(bulletin.news, rules), runs=(bulletin.run_id,))


def _digest(bulletins: Sequence[Bulletin], rules: Mapping[str, AlertRule]) -> Message:
    lines = []
    for bulletin in bulletins[:_LISTED]:
        lines.append(f"{_plain(bulletin.name)}" + (f"  {bulletin.url}" if bulletin.url else ""))
        lines += [f"- {_seen(news, rules)}" for news in bulletin.news[:3]]
        if len(bulletin.news) > 3:
            lines.append(f"- and {len(bulletin.news) - 3} more")
    if len(bulletins) > _LISTED:
        lines.append(f"and {len(bulletins) - _LISTED} more runs")
    everything = [news for bulletin in bulletins for news in bulletin.news]
    started = sum(news.change != Change.ENDED for news in everything)
    title = f"runtriage: {started} alerts, {len(everything) - started} over, on {len(bulletins)} runs"
    ids = tuple(bulletin.run_id for bulletin in bulletins)
    return Message(title=title, body="\n".join(lines), severity=_worst(everything, rules), runs=ids)


def _seen(news: News, rules: Mapping[str, AlertRule]) -> str:
    about = _about(news, rules)
    if news.change == Change.ENDED:
        return f"Over since step {news.step}: {about}"
    often = f", {news.times} times since the last look" if news.times > 1 else ""
    over = ", and is over" if news.change == Change.PASSED else ""
    rule = rules.get(news.rule)
    if rule is not None and isinstance(rule.condition, Ended):
        return f"{about} Before step {news.step}."
    return f"{about} Step {news.step}, value {news.value:.4g}{often}{over}."


def _diagnosis(report: Report | None, news: News) -> list[str]:
    """Return likely causes and how to check them, from the finding that is nearest to the firing."""
    finding = _nearest(report, news.step)
    if finding is None or not finding.causes:
        verdict = f" (the verdict is {report.verdict})" if report is not None else ""
        return [
            "", "Likely causes", f"- None yet: the analysis has no finding there{verdict}.", "", "Check",
            "- Look at the curve around that step, then at the batch and the learning rate.",
        ]
    causes: Sequence[Cause] = finding.causes[:_CAUSES]
    lines = ["", "Likely causes"]
    for cause in causes:
        why = f": {_plain(cause.because[0], 160)}" if cause.because else ""
        lines.append(f"- {cause.id} ({cause.weight:.0%}){why}")
    checks = [_plain(cause.verify[0], 200) for cause in causes if cause.verify]
    return [*lines, "", "Check", *(f"- {check}" for check in checks)]


def _nearest(report: Report | None, step: int) -> Finding | None:
    if report is None:
        return None
    telling = [finding for finding in report.findings if finding.explained_by is None]
    return min(telling, key=lambda finding: abs(finding.start_step - step), default=None)


def _trust(rule: AlertRule | None) -> list[str]:
    if rule is None or rule.measured is None:
        return []
    pooled = rule.measured.pooled
    return ["", f"This kind of rule fired on {pooled.fired} of {pooled.runs} healthy runs left out ({rule.id})."]


def _about(news: News, rules: Mapping[str, AlertRule]) -> str:
    rule = rules.get(news.rule)
    return _plain(rule.about, 200) if rule is not None else f"Rule {news.rule}."


def _worst(news: Sequence[News], rules: Mapping[str, AlertRule]) -> Severity:
    order = list(Severity)
    found = [rules[one.rule].severity for one in news if one.rule in rules and one.change != Change.ENDED]
    return max(found, key=order.index, default=Severity.INFO)


def _plain(text: str, limit: int = _NAME) -> str:
    """Return text on one line, without control characters, mentions (@here, <!channel>) and links a chat would make."""
    flat = "".join(c if c.isprintable() else "?" for c in text)
    flat = flat.replace("@", "(at)").replace("<", "[").replace(">", "]")
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"

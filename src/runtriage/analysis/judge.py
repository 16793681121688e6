"""From findings to a verdict."""

from __future__ import annotations

from runtriage.analysis.form import Form
from runtriage.model.phrase import Phrase, phrase
from runtriage.model.vocab import FindingKind, Level, Outcome, Severity

_CRITICAL = frozenset({FindingKind.NON_FINITE, FindingKind.DIVERGENCE})
_MILD = frozenset({FindingKind.LOGGING_GAP})


def severity(form: Form) -> Severity:
    """Weigh a form: explained ones inform, lasting damage is critical, the rest warns."""
    if form.explained_by is not None or form.kind in _MILD or form.mild:
        return Severity.INFO
    if form.outcome == Outcome.DIVERGED or (form.kind in _CRITICAL and form.outcome != Outcome.RECOVERED):
        return Severity.CRITICAL
    return Severity.WARNING


def level(forms: list[Form]) -> Level:
    """Return the verdict for the forms found; explained forms never raise it.

    Parameters
    ----------
    forms
        After :func:`~runtriage.analysis.select.select`.
    """
    weights = {severity(f) for f in forms if f.explained_by is None}
    if Severity.CRITICAL in weights:
        return Level.BROKEN
    if Severity.WARNING in weights:
        return Level.SUSPICIOUS
    return Level.WATCH if weights else Level.HEALTHY


def reason(forms: list[Form], members: int) -> Phrase:
    """Give the verdict as one sentence; it begins with a capital letter once it is in words."""
    telling = [f for f in forms if f.explained_by is None]
    against = phrase("reason.cohort", members=members) if members else phrase("reason.past")
    if not telling:
        explained = [f for f in forms if f.explained_by is not None]
        if explained:
            f = explained[0]
            return phrase(
                "reason.explained", against=against, kind_words=f.kind, step=f.start, why_words=f.explained_by
            )
        return phrase("reason.within", against=against)
    f = telling[0]
    return phrase(
        "reason.found", title=_title(f), step=f.start, against=against,
        end=phrase("reason.outcome", outcome=f.outcome) if f.outcome is not None else "",
        more=phrase("reason.more", count=len(telling) - 1) if len(telling) > 1 else "",
    )


def _title(form: Form) -> Phrase:
    """Name a form and where it is, as a noun phrase."""
    if form.kind == FindingKind.NON_FINITE:
        return phrase("reason.non_finite", role_words=form.role)
    if form.kind == FindingKind.LR_DISCONTINUITY:
        return phrase("reason.lr")
    if form.kind == FindingKind.RESUME_DISCONTINUITY:
        return phrase("reason.seam", role_words=form.role)
    return phrase("reason.form", kind_words=form.kind, role_words=form.role)

"""From findings to a verdict."""

from __future__ import annotations

from runtriage.analysis.form import Form
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


def reason(forms: list[Form], members: int) -> str:
    """Say the verdict in one sentence."""
    telling = [f for f in forms if f.explained_by is None]
    against = f"{members} runs of the same config" if members else "its own past"
    if not telling:
        explained = [f for f in forms if f.explained_by is not None]
        if explained:
            f = explained[0]
            why = _words(f.explained_by or "")
            return f"Within the band of {against}; a {_words(f.kind)} at step {f.start} is explained by {why}."
        return f"Within the band of {against}."
    f = telling[0]
    end = f", {f.outcome.value}" if f.outcome is not None else ""
    more = f"; {len(telling) - 1} more" if len(telling) > 1 else ""
    title = _title(f)
    return f"{title[0].upper()}{title[1:]} from step {f.start}{end}, against {against}{more}."


def _words(term: str) -> str:
    return str(term).replace("_", " ")


def _title(form: Form) -> str:
    """Name a form and where it is, as a noun phrase."""
    if form.kind == FindingKind.NON_FINITE:
        return f"{_words(form.role)} not finite"
    if form.kind == FindingKind.LR_DISCONTINUITY:
        return "jump of the learning rate"
    if form.kind == FindingKind.RESUME_DISCONTINUITY:
        return f"seam of a resume in {_words(form.role)}"
    return f"{_words(form.kind)} in {_words(form.role)}"

"""The order of things, in one place: prepare, group, compare, diagnose, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from runtriage import __version__
from runtriage.analysis.chance import run_chance
from runtriage.analysis.cohorts import fingerprint
from runtriage.analysis.compare import Compared, compare, to_members
from runtriage.analysis.diagnose import diagnose
from runtriage.analysis.form import Form
from runtriage.analysis.judge import level, reason, severity
from runtriage.analysis.order_stats import Array, moving_median
from runtriage.analysis.prepare import prepare
from runtriage.analysis.sketch import make_axis
from runtriage.model.baseline import Baseline, BaselineSet
from runtriage.model.curve import Curve, Triage
from runtriage.model.history import RunHistory, RunInfo
from runtriage.model.phrase import Phrase, phrase
from runtriage.model.report import BaselineUse, Finding, Report, RunSummary, Tool, stated
from runtriage.model.series import PreparedRun
from runtriage.model.texts import say, text
from runtriage.model.vocab import BaselineKind, Lang, Level, Role

__all__ = ["Params", "fingerprint", "learn", "triage_cohort"]

MAX_COHORT = 64
"""Runs of one config that are compared with each other at once; a larger cohort is judged in parts of this size."""

_LEAST_ROWS = 3
_SMOOTH = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """What a user may set.

    Attributes
    ----------
    false_alarm_budget
        Chance that a healthy run is called suspicious or worse, over all metrics and detectors together.
    roles
        Metric names to roles, beating the built-in table.
    ignore_keys
        Further config keys (regular expressions) that do not change training.
    lang
        Language of the sentences in reports.
    """

    false_alarm_budget: float = 0.01
    roles: Mapping[str, str] = field(default_factory=dict)
    ignore_keys: tuple[str, ...] = ()
    lang: Lang = Lang.EN


@np.errstate(all="ignore")  # what was logged may hold any number; not a number then means not known
def triage_cohort(
    histories: Sequence[RunHistory], *, baselines: BaselineSet | None = None, params: Params | None = None
) -> list[Triage]:
    """Judge runs.

    Parameters
    ----------
    histories
        Any runs; they are grouped by what their configs train.
    baselines
        Judge against these learned cohorts; without them each run is judged against the others of its config.
    params
        Settings; defaults otherwise.

    Returns
    -------
    list of Triage
        One per history, in order. Bad data gives a withheld verdict with its reason, never an exception.
    """
    params = params or Params()
    groups: dict[str, list[int]] = {}
    for i, history in enumerate(histories):
        name = fingerprint(history.info.config, params.ignore_keys) or f"\0{i}"
        groups.setdefault(name, []).append(i)
    out: list[Triage | None] = [None] * len(histories)
    for name, places in groups.items():
        baseline = baselines.cohorts.get(name) if baselines is not None else None
        known = "" if name.startswith("\0") else name
        size = len(places) if baselines is not None else MAX_COHORT
        for at in range(0, len(places), max(1, size)):
            part = places[at : at + size]
            group = [prepare(histories[i], params.roles, params.lang) for i in part]
            judged = _judge(group, baseline, known, params, alone=baselines is not None and baseline is None)
            for i, triage in zip(part, judged, strict=True):
                out[i] = triage
    return [t for t in out if t is not None]


@np.errstate(all="ignore")
def learn(histories: Sequence[RunHistory], params: Params | None = None, *, source: str = "") -> BaselineSet:
    """Learn one baseline per config from runs, leaving out those (or the parts of those) that are not healthy.

    Parameters
    ----------
    histories
        Runs to learn from; at least two of a config make a baseline.
    params
        Settings.
    source
        Where they come from, for provenance.
    """
    params = params or Params()
    groups: dict[str, list[PreparedRun]] = {}
    for history in histories:
        name = fingerprint(history.info.config, params.ignore_keys)
        run = prepare(history, params.roles)
        if name and _judgeable(run) is None:
            groups.setdefault(name, []).append(run)
    cohorts = {}
    for name, runs in groups.items():
        if len(runs) < 2:
            continue
        compared = compare(runs[:MAX_COHORT], None, params.false_alarm_budget)
        members, excluded = to_members(runs[:MAX_COHORT], compared)
        paired = 2 * sum(c.view.paired for c in compared) > len(compared)
        if members:
            edges = make_axis(runs[:MAX_COHORT]).edges
            cohorts[name] = Baseline(
                fingerprint=name, edges=edges, members=tuple(members), excluded=tuple(excluded), paired=paired
            )
    return BaselineSet(cohorts=cohorts, source=source, tool=__version__)


def _judge(
    runs: list[PreparedRun], baseline: Baseline | None, name: str, params: Params, *, alone: bool
) -> list[Triage]:
    usable = [r for r in runs if _judgeable(r) is None]
    if alone:
        compared = [compare([r], None, params.false_alarm_budget)[0] for r in usable]
    else:
        compared = compare(usable, baseline, params.false_alarm_budget) if usable else []
    by_run = {id(r): c for r, c in zip(usable, compared, strict=True)}
    return [
        _triage(r, by_run[id(r)], baseline, name, params.lang) if id(r) in by_run
        else _withheld(r, _judgeable(r), name, params.lang)
        for r in runs
    ]


def _judgeable(run: PreparedRun) -> Phrase | None:
    """Say why nothing can be judged, or None."""
    loss = run.by_role.get(Role.LOSS)
    if loss is None:
        return phrase("withheld.no_loss")
    if loss.step.size < _LEAST_ROWS:
        return phrase("withheld.few", rows=loss.step.size, least=_LEAST_ROWS)
    return None


def _triage(run: PreparedRun, compared: Compared, baseline: Baseline | None, name: str, lang: Lang) -> Triage:
    view, forms = compared.view, compared.forms
    findings = tuple(_finding(run, f, lang) for f in forms)
    verdict = level(forms)
    kind = BaselineKind.COHORT if view.has_cohort else BaselineKind.SELF
    use = BaselineUse(
        kind=kind, runs=view.members, fingerprint=name, paired=view.paired,
        excluded=compared.excluded if baseline is None else baseline.excluded,
        formed_by=(
            "" if kind == BaselineKind.SELF
            else text("formed.learned" if baseline is not None else "formed.siblings", lang)
        ),
    )
    report = Report(
        run=_summary(run.info), verdict=verdict, reason=_sentence(reason(forms, view.members), lang),
        p_false_alarm=run_chance(view, forms), baseline=use, phases=view.phases, findings=findings,
        missing=run.notes, series={s.metric: role for role, s in run.by_role.items()}, tool=Tool(version=__version__),
        lang=stated(lang),
    )
    return Triage(report=report, curves=_curves(run, compared))


def _withheld(run: PreparedRun, why: Phrase | None, name: str, lang: Lang) -> Triage:
    report = Report(
        run=_summary(run.info), verdict=Level.WITHHELD, reason=say(why, lang) if why is not None else "",
        baseline=BaselineUse(kind=BaselineKind.NONE, fingerprint=name),
        missing=run.notes, series={s.metric: role for role, s in run.by_role.items()}, tool=Tool(version=__version__),
        lang=stated(lang),
    )
    return Triage(report=report)


def _summary(info: RunInfo) -> RunSummary:
    return RunSummary(source=info.source, id=info.id, name=info.name or info.id, state=info.state, url=info.url)


def _sentence(what: Phrase, lang: Lang) -> str:
    words = say(what, lang)
    return f"{words[0].upper()}{words[1:]}"


def _finding(run: PreparedRun, form: Form, lang: Lang) -> Finding:
    series = run.by_role.get(form.role)
    return Finding(
        kind=form.kind, metric=series.metric if series is not None else form.role, role=form.role,
        start_step=form.start,
        end_step=form.end, peak_step=form.peak, severity=severity(form),
        z=round(form.z, 3) if np.isfinite(form.z) else form.z,
        p_false_alarm=form.p, outcome=form.outcome, explained_by=form.explained_by,
        evidence=tuple(say(seen, lang) for seen in form.evidence),
        causes=() if form.explained_by is not None else diagnose(form, lang),
    )


def _curves(run: PreparedRun, compared: Compared) -> tuple[Curve, ...]:
    out = []
    bands = _bands(compared)
    for role in (Role.LOSS, Role.GRAD_NORM, Role.LR):
        series = run.by_role.get(role)
        if series is None or not series.step.size:
            continue
        rows = series.step.size
        noisy = role != Role.LR and rows >= 2 * _SMOOTH and np.isfinite(series.value).all()
        half = min(_SMOOTH, rows // 20 + 1) if noisy else 0
        out.append(
            Curve(
                metric=series.metric, role=role, step=series.step, value=series.value, half_window=half,
                **bands.get(role, {}),
            )
        )
    return tuple(out)


def _bands(compared: Compared) -> dict[str, dict[str, Array]]:
    """Three standard deviations about the cohort's centre, where both are known, for the curves that have a cohort."""
    view = compared.view
    roles = [role for role in (Role.LOSS, Role.GRAD_NORM, Role.LR) if role in view.z and role in view.centre]
    if not roles:
        return {}
    r, z, centres = (np.array([table[role] for role in roles]) for table in (view.r, view.z, view.centre))
    reaches = moving_median(np.where(z != 0, 3.0 * np.abs(r / z), np.nan), 4)
    out = {}
    for role, centre, reach in zip(roles, centres, reaches, strict=True):
        known = np.isfinite(centre) & np.isfinite(reach)
        low, high = np.exp(centre[known] - reach[known]), np.exp(centre[known] + reach[known])
        out[role.value] = {"band_step": view.axis.mid[known], "band_low": low, "band_high": high}
    return out

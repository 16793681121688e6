"""Derive rules from the cohorts of a source, each with the false-alarm rate it was measured to have.

Each healthy run is replayed against limits from the other healthy runs of its config (leave-one-out). The margin of a
kind of rule is widened until its rate over all configs keeps the budget, then further for the configs that need it; a
rule that cannot keep the budget is dropped, with the reason. Limits are rounded outwards, expiry dates fall on the
first of a month, and rules stand in the order of their ids: a second derivation from nearly the same runs gives nearly
the same file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import msgspec
import numpy as np
from scipy.special import betaincinv

from runtriage.model.rule import RULES_SCHEMA, AlertRule, Dropped, Measured, Provenance, RuleSet
from runtriage.model.vocab import Role
from runtriage.rules.band import band_recipes
from runtriage.rules.recipes import Made, Member, Recipe, plain_recipes
from runtriage.rules.replay import firings

WIDENING: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
LEAST_HEALTHY = 3
MOST_HEALTHY = 32
"""Healthy runs of one config that are looked at; more add nothing to a limit but time."""

NO_RULES = "all-"
"""First part of the id under which a config without any rules stands among the dropped."""

_MONTHS = 4
_WARM_PART = 0.01


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cohort:
    """The runs of one config.

    Attributes
    ----------
    config
        Fingerprint.
    healthy
        Runs from which limits come.
    bad
        Runs known to be faulty, for the hit rate.
    """

    config: str
    healthy: Sequence[Member]
    bad: Sequence[Member] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class _Trial:
    """One recipe on one cohort."""

    cohort: Cohort
    after: int
    facts: list[Any]
    fired: dict[float, int] = field(default_factory=dict)
    reason: str = ""


def derive(cohorts: Sequence[Cohort], *, today: date, budget: float = 0.02, source: str = "") -> RuleSet:
    """Return the rules that some cohorts support.

    Parameters
    ----------
    cohorts
        Any; one with fewer than three healthy runs gets no rules, which is said.
    today
        Decides the expiry.
    budget
        Largest leave-one-out false-alarm rate of a rule, per healthy run.
    source
        Canonical address, for provenance.
    """
    rules: list[AlertRule] = []
    dropped: list[Dropped] = []
    usable = []
    for cohort in sorted(cohorts, key=lambda one: one.config):
        if len(cohort.healthy) < LEAST_HEALTHY:
            reason = f"{len(cohort.healthy)} healthy run(s) of this config; limits take {LEAST_HEALTHY}"
            dropped.append(Dropped(id=f"{NO_RULES}{cohort.config}", reason=reason))
        else:
            usable.append(cohort)
    guards = [_warm_up(cohort) for cohort in usable]
    for recipe in (*plain_recipes(), *band_recipes()):
        trials = [t for t in map(_trial, [recipe] * len(usable), usable, guards) if t is not None]
        for trial, widen in zip(trials, _levels(recipe, trials, budget), strict=True):
            if widen is None:
                dropped.append(Dropped(id=f"{recipe.name}-{trial.cohort.config}", reason=trial.reason))
            else:
                rules.append(_rule(recipe, trial, widen, trials, _expiry(today)))
    return RuleSet(schema=RULES_SCHEMA, source=source, budget=budget, rules=tuple(rules), dropped=tuple(dropped))


def merge(new: RuleSet, old: RuleSet) -> RuleSet:
    """Keep the rules of ``old`` that say ``keep``, in the place of new ones with the same id.

    Parameters
    ----------
    new, old
        Just derived, and as the file had it.
    """
    kept = {rule.id: rule for rule in old.rules if rule.keep}
    rules = [rule for rule in new.rules if rule.id not in kept]
    dropped = tuple(one for one in new.dropped if one.id not in kept)
    return RuleSet(
        schema=new.schema, source=new.source, budget=new.budget, dropped=dropped,
        rules=tuple(sorted([*rules, *kept.values()], key=lambda rule: rule.id)),
    )


def most_likely_rate(fired: int, runs: int) -> float:
    """Return the upper end of the one-sided 95 % Clopper-Pearson interval of a rate.

    Examples
    --------
    >>> round(most_likely_rate(0, 5), 2)
    0.45
    """
    return 1.0 if fired >= runs else float(betaincinv(fired + 1, runs - fired, 0.95))


def _trial(recipe: Recipe, cohort: Cohort, guard: int) -> _Trial | None:
    """Look at the healthy runs of a cohort; None when they do not log what the recipe needs."""
    after = guard if recipe.guard else 0
    facts = [recipe.facts(member, after) for member in cohort.healthy[:MOST_HEALTHY]]
    if sum(fact is not None for fact in facts) < LEAST_HEALTHY:
        return None
    return _Trial(cohort=cohort, after=after, facts=facts)


def _levels(recipe: Recipe, trials: list[_Trial], budget: float) -> list[float | None]:
    """Return the widening of each trial that keeps the budget for itself and for all together; None where none does."""
    own = [next((w for w in WIDENING if _within(recipe, trial, w, budget)), None) for trial in trials]
    good = [trial for trial, widen in zip(trials, own, strict=True) if widen is not None]
    runs = sum(_count(trial) for trial in good)
    for widen in WIDENING:
        if sum(_fired(recipe, trial, widen) for trial in good) <= budget * runs:
            return [None if w is None else max(w, widen) for w in own]
    return own


def _within(recipe: Recipe, trial: _Trial, widen: float, budget: float) -> bool:
    made = recipe.make(_known(trial), widen)
    if isinstance(made, str):
        trial.reason = trial.reason or made
        return False
    fired = _fired(recipe, trial, widen)
    if fired > budget * _count(trial):
        trial.reason = (
            f"it fires on {fired} of {_count(trial)} healthy runs left out, at {widen:g} times the margin still"
        )
        return False
    return True


def _fired(recipe: Recipe, trial: _Trial, widen: float) -> int:
    """Count the healthy runs on which the rule fires when its limits come from the others."""
    lower = [fired for level, fired in trial.fired.items() if level < widen]
    if widen not in trial.fired:
        trial.fired[widen] = 0 if 0 in lower else sum(
            _fires_left_out(recipe, trial, i, widen) for i, fact in enumerate(trial.facts) if fact is not None
        )
    return trial.fired[widen]


def _fires_left_out(recipe: Recipe, trial: _Trial, i: int, widen: float) -> bool:
    others = [fact for j, fact in enumerate(trial.facts) if j != i and fact is not None]
    made = recipe.make(others, widen)
    return not isinstance(made, str) and _fires(_named(recipe, trial, made), trial.cohort.healthy[i])


def _fires(rule: AlertRule, member: Member) -> bool:
    return bool(firings(rule, member.run, member.history))


def _named(recipe: Recipe, trial: _Trial, made: Made) -> AlertRule:
    metric = next(m.run.by_role[recipe.role].metric for m in trial.cohort.healthy if recipe.role in m.run.by_role)
    return AlertRule(
        id=f"{recipe.name}-{trial.cohort.config}", about=recipe.about, role=recipe.role, metric=metric,
        config=trial.cohort.config, condition=made.condition, for_points=made.for_points, after_step=trial.after,
        severity=recipe.severity,
    )


def _rule(recipe: Recipe, trial: _Trial, widen: float, trials: list[_Trial], expires: str) -> AlertRule:
    made = recipe.make(_known(trial), widen)
    if isinstance(made, str):
        raise TypeError(made)  # `_within` has made it before
    rule = _named(recipe, trial, made)
    same = [t for t in trials if not isinstance(recipe.make(_known(t), widen), str)]
    pooled = Measured(fired=sum(_fired(recipe, t, widen) for t in same), runs=sum(map(_count, same)))
    seen = [member for member in trial.cohort.bad if recipe.role in member.run.by_role]
    measured = Provenance(
        runs=_count(trial), pooled=pooled,
        false_alarms=Measured(fired=_fired(recipe, trial, widen), runs=_count(trial)),
        at_most=float(f"{most_likely_rate(pooled.fired, pooled.runs):.2g}"),
        hits=Measured(fired=sum(_fires(rule, member) for member in seen), runs=len(seen)), widened=widen,
    )
    return msgspec.structs.replace(rule, expires=expires, measured=measured)


def _known(trial: _Trial) -> list[Any]:
    return [fact for fact in trial.facts if fact is not None]


def _count(trial: _Trial) -> int:
    return len(_known(trial))


def _warm_up(cohort: Cohort) -> int:
    """Return the step behind warm-up: where the lr has risen to its peak, or one part in a hundred of the run."""
    ends = []
    for member in cohort.healthy:
        last = member.run.last_step()
        end = _WARM_PART * last
        lr = member.run.by_role.get(Role.LR)
        if lr is not None and lr.value.size and np.isfinite(lr.value).any():
            peak = int(np.nanargmax(lr.value))
            if lr.value[0] < 0.5 * lr.value[peak] and lr.step[peak] < last / 2:
                end = max(end, float(lr.step[peak]))
        ends.append(end)
    return int(np.ceil(np.median(ends)))


def _expiry(today: date) -> str:
    """Return the first of a month, so that deriving again within the month changes nothing."""
    months = today.year * 12 + today.month - 1 + _MONTHS
    return date(months // 12, months % 12 + 1, 1).isoformat()

"""How good rules are: on how many healthy runs they fired, how many faulty runs they caught, and how late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from runtriage.errors import CodecError
from runtriage.model.rule import AlertRule, Firing, Measured

ANY = "any rule"
_TOLERANCE = 0.01


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run: a line of a file of labels, or what runtriage itself found.

    Attributes
    ----------
    run_id
        The run.
    healthy
        Whether nothing is wrong with it.
    onset
        First step of the fault, or None if unknown.
    tolerance
        Share of the run by which a firing may come before the onset.
    """

    run_id: str
    healthy: bool
    onset: float | None = None
    tolerance: float = _TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replayed:
    """One run after replay.

    Attributes
    ----------
    run_id, name
        The run; the name is hostile input.
    first_step, last_step
        Extent of its history.
    rules
        Ids of the rules that are for it.
    firings
        In the order of steps.
    """

    run_id: str
    name: str
    first_step: int
    last_step: int
    rules: tuple[str, ...]
    firings: tuple[Firing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The rules of one kind over some runs.

    Attributes
    ----------
    kind
        First part of the ids, or :data:`ANY`.
    rules
        How many rules.
    false_alarms
        Healthy runs with a firing, of those the rules are for.
    hits
        Faulty runs with a firing from the onset on, of those the rules are for.
    early
        Faulty runs with a firing before the onset.
    delays
        Steps from onset to the first firing, one for each hit with a known onset, rising.
    """

    kind: str
    rules: int
    false_alarms: Measured
    hits: Measured
    early: int
    delays: tuple[int, ...] = field(default=())

    @property
    def median_delay(self) -> float | None:
        """Median of the delays; None without any."""
        return float(median(self.delays)) if self.delays else None


def kind_of(rule_id: str, config: str) -> str:
    """Return the id of a rule without the config at its end.

    Examples
    --------
    >>> kind_of("loss-band-0a1b", "0a1b")
    'loss-band'
    """
    return rule_id.removesuffix(f"-{config}") if config else rule_id


def score(rules: Iterable[AlertRule], runs: Sequence[Replayed], known: Mapping[str, Known]) -> tuple[Score, ...]:
    """Return one score a kind of rule, in the order of their names, and one for all of them together at the end.

    Parameters
    ----------
    rules
        That were replayed.
    runs
        Those of which nothing is known are left out.
    known
        Run id to what is known of it.
    """
    kinds: dict[str, set[str]] = {}
    for rule in rules:
        kinds.setdefault(kind_of(rule.id, rule.config), set()).add(rule.id)
    everything = set().union(*kinds.values()) if kinds else set()
    told = [(run, known[run.run_id]) for run in runs if run.run_id in known]
    return (
        *(_score(kind, ids, told) for kind, ids in sorted(kinds.items())),
        _score(ANY, everything, told),
    )


def decode_known(content: bytes) -> dict[str, Known]:
    """Read labels, one JSON object a line: ``run_id``, ``healthy``, and where known ``onset``.

    Raises
    ------
    CodecError
        A line that is not such an object; ``where`` names the line and the path.
    """
    out = {}
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(line, type=Known)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise CodecError(f"not a label: {error}", where=f"line {number}") from None
        out[one.run_id] = one
    return out


def _score(kind: str, ids: set[str], told: Sequence[tuple[Replayed, Known]]) -> Score:
    healthy = healthy_fired = faulty = hit = early = 0
    delays = []
    for run, label in told:
        if not ids.intersection(run.rules):
            continue
        steps = [firing.step for firing in run.firings if firing.rule in ids]
        if label.healthy:
            healthy += 1
            healthy_fired += bool(steps)
            continue
        faulty += 1
        onset = int(label.onset) if label.onset is not None else run.first_step
        slack = label.tolerance * (run.last_step - run.first_step) if label.onset is not None else 0.0
        late = [step for step in steps if step >= onset - slack]
        early += any(step < onset - slack for step in steps)
        if late:
            hit += 1
            if label.onset is not None:
                delays.append(max(0, late[0] - onset))
    return Score(
        kind=kind, rules=len(ids), false_alarms=Measured(fired=healthy_fired, runs=healthy),
        hits=Measured(fired=hit, runs=faulty), early=early, delays=tuple(sorted(delays)),
    )

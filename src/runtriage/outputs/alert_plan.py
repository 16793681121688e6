"""What has to change at a tracker to watch for exactly our alerts. Pure; others' alerts are never in a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from runtriage.model.alert import Alert, Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPlan:
    """Changes, and what they leave alone.

    Attributes
    ----------
    make, change, remove
        What to do; a change keeps the alert's id and whether it is switched on.
    same
        Ours, as they should be.
    edited
        Those of ``same`` whose trigger somebody changed at the tracker: it stays until the rule itself changes.
    kept
        Ours, of rules about which nothing can be said now.
    blocked
        Wanted ones whose name somebody else's alert has.
    """

    make: tuple[Alert, ...] = ()
    change: tuple[tuple[Placed, Alert], ...] = ()
    remove: tuple[Placed, ...] = ()
    same: tuple[Placed, ...] = ()
    edited: tuple[Placed, ...] = ()
    kept: tuple[Placed, ...] = ()
    blocked: tuple[Alert, ...] = ()

    def __bool__(self) -> bool:
        """Return True if there is anything to do."""
        return bool(self.make or self.change or self.remove)


def plan_alerts(
    wanted: Iterable[Alert], present: Iterable[Placed], *, prefix: str,
    keep: Callable[[str], bool] = lambda _name: False,
) -> AlertPlan:
    """Return the difference between the alerts wanted and those found.

    Parameters
    ----------
    wanted
        With unique names.
    present
        All that the tracker shows, in any order.
    prefix
        Of the names of ours in this project; others of ours belong to other projects.
    keep
        Tells of a name that is not wanted whether its alert stays all the same.
    """
    ours: dict[str, list[Placed]] = {}
    foreign: set[str] = set()
    for one in sorted(present, key=lambda placed: placed.id):
        if one.digest is None:
            foreign.add(one.name)
        elif one.name.startswith(prefix):
            ours.setdefault(one.name, []).append(one)
    extra = [one for twins in ours.values() for one in twins[1:]]
    first = {name: twins[0] for name, twins in ours.items()}
    by_name = {alert.name: alert for alert in wanted}
    same = [first[name] for name, alert in by_name.items() if name in first and first[name].digest == alert.digest]
    return AlertPlan(
        make=tuple(a for name, a in by_name.items() if name not in first and name not in foreign),
        change=tuple((first[n], a) for n, a in by_name.items() if n in first and first[n].digest != a.digest),
        remove=(*extra, *(one for name, one in first.items() if name not in by_name and not keep(name))),
        same=tuple(same),
        edited=tuple(one for one in same if one.trigger is not None and one.trigger != by_name[one.name].trigger),
        kept=tuple(one for name, one in first.items() if name not in by_name and keep(name)),
        blocked=tuple(alert for name, alert in by_name.items() if name not in first and name in foreign),
    )

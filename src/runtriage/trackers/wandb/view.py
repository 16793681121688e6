"""What to show of a project, out of our tag ``runtriage.view``, in W&B's words. Pure.

The tag holds a JSON object all of whose members may be missing: ``name``, ``filter``, ``columns`` (as
"tags.`runtriage.status`"), ``charts`` (``{"metric": "loss", "log": true}`` or a name). The filter is always that of the
tags of flagged runs.
"""

from __future__ import annotations

import re

import msgspec

from runtriage.model.marks import OWN_PREFIX

_COLUMN = re.compile(rf"tags\.`({re.escape(OWN_PREFIX)}[\w.]+)`")


class Chart(msgspec.Struct, frozen=True):
    """A curve to draw, one line a run."""

    metric: str
    log: bool = False


USUAL = (Chart("train/loss", log=True), Chart("train/grad_norm", log=True), Chart("train/learning_rate"))
"""Charts where the tag names none: what the Hugging Face trainer calls loss, gradient norm and learning rate."""


class View(msgspec.Struct, frozen=True):
    """A view as the tag has it."""

    name: str = "runtriage: flagged runs"
    columns: tuple[str, ...] = ()
    charts: tuple[Chart | str, ...] = ()

    @property
    def drawn(self) -> list[Chart]:
        """Curves to draw; the usual ones where none are named."""
        return [Chart(chart) if isinstance(chart, str) else chart for chart in self.charts or USUAL]

    @property
    def pinned(self) -> list[str]:
        """Columns of the run table: our values live in the summary."""
        return [f"summary:{found[1]}" for column in self.columns if (found := _COLUMN.fullmatch(column))]


def read_view(value: str) -> View:
    """Return the view that a value of ``runtriage.view`` describes; the usual one if it describes none.

    Examples
    --------
    >>> view = read_view('{"columns": ["tags.`runtriage.status`"], "charts": ["lm loss"]}')
    >>> view.pinned, view.drawn
    (['summary:runtriage.status'], [Chart(metric='lm loss', log=False)])
    """
    try:
        return msgspec.json.decode(value, type=View)
    except (msgspec.MsgspecError, UnicodeError):
        return View()

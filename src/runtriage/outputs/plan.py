"""Reconciliation: the difference between the marks that should hang on a run and those that do. Pure.

``plan(wanted, present)`` is empty exactly if nothing needs to change, so a second run of the same sweep writes nothing.
What is not ours is not in :class:`~runtriage.model.marks.Marks` and, should it ever get there, is not touched.
"""

from __future__ import annotations

import msgspec

from runtriage.model.marks import Marks, WritePlan
from runtriage.outputs import tags

TAGS, PANEL, VIEW = "tags", "panel", "view"
EVERYTHING = frozenset({TAGS, PANEL, VIEW})
"""Kinds of marks. ``panel`` is the note block and the files of a run; ``view`` is everything on an experiment."""


def plan(wanted: Marks, present: Marks, *, what: frozenset[str] = EVERYTHING) -> WritePlan:
    """Return the changes that turn ``present`` into ``wanted``.

    Parameters
    ----------
    wanted
        From :mod:`runtriage.outputs.marks`; every file has its content.
    present
        As the tracker read them.
    what
        Kinds that may be changed; marks of another kind are left as they are, wanted or not.

    Returns
    -------
    WritePlan
        Falsy if there is nothing to do.
    """
    set_tags: dict[str, str] = {}
    delete_tags: tuple[str, ...] = ()
    if what & {TAGS, VIEW}:
        set_tags = {key: value for key, value in sorted(wanted.tags.items()) if present.tags.get(key) != value}
        delete_tags = tuple(
            sorted(k for k in present.tags if k not in wanted.tags and tags.is_own(k) and k != tags.ALERTS)
        )
    if not what & {PANEL, VIEW}:
        return WritePlan(set_tags=set_tags, delete_tags=delete_tags)
    stale = sorted(path for path in present.files if path not in wanted.files and tags.is_own_file(path))
    changed = sorted(path for path, digest in wanted.files.items() if present.files.get(path) != digest)
    return WritePlan(
        set_tags=set_tags,
        delete_tags=delete_tags,
        set_note=wanted.note if wanted.note != present.note else None,
        delete_note=wanted.note is None and present.note is not None,
        put_files={path: wanted.contents[path] for path in changed},
        delete_files=tuple(stale),
    )


def clear(present: Marks) -> WritePlan:
    """Return the changes that remove every trace of ours, and nothing else."""
    change = plan(Marks(), present)
    if tags.ALERTS not in present.tags:
        return change
    return msgspec.structs.replace(change, delete_tags=tuple(sorted([*change.delete_tags, tags.ALERTS])))

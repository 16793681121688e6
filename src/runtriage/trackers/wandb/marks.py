"""Our marks in W&B's words: tags ``rt:*``, summary ``runtriage.*``. Pure.

A tag is ours only if it is ``rt:`` and a word of our vocabularies: ``rt:todo`` of somebody else's stays. Beside the
verdict there is ``rt:watched``: on a run that goes on it says that people were told of it, which no listing shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from runtriage.errors import MarkWriteError
from runtriage.model.marks import OWN_PREFIX, WritePlan
from runtriage.model.vocab import FindingKind, Level
from runtriage.trackers.wandb.summary import is_own

TAG_PREFIX = "rt:"
FOLDER = "runtriage/"
LIVE_FILE = "runtriage/marks.json"
"""Where the values of a run that still runs are kept: its own process would overwrite them in the summary."""

STATUS, FINDINGS, NOTE = f"{OWN_PREFIX}status", f"{OWN_PREFIX}findings", f"{OWN_PREFIX}note"
ALERTS = f"{OWN_PREFIX}alerts"
WATCHED = "watched"
_LEVELS = frozenset(level.value for level in Level)
_KINDS = frozenset(kind.value for kind in FindingKind)
GONE = "(tag removed)"
"""Shown instead of a value whose tag somebody took off."""


def is_own_tag(tag: str) -> bool:
    """Tell whether a tag is ours."""
    return tag.startswith(TAG_PREFIX) and tag.removeprefix(TAG_PREFIX) in _LEVELS | _KINDS | {WATCHED}


def tags_for(values: Mapping[str, str]) -> list[str]:
    """Return the tags that say what the values say."""
    words = [values[STATUS]] if values.get(STATUS) in _LEVELS else []
    words += [kind for kind in dict.fromkeys(_listed(values.get(FINDINGS, ""))) if kind in _KINDS]
    return [TAG_PREFIX + word for word in words]


def merged_tags(present: Iterable[str], values: Mapping[str, str], *, live: bool) -> list[str]:
    """Return the tags of a run with ours replaced: others keep their order, their spelling and their duplicates."""
    watched = [TAG_PREFIX + WATCHED] if live and values.get(ALERTS) else []
    return [*(tag for tag in present if not is_own_tag(tag)), *tags_for(values), *watched]


def values_found(present: Iterable[str], values: Mapping[str, str]) -> dict[str, str]:
    """Return our values as they are, after a look at the tags.

    The tags are what people see and filter by: where they do not say what the values say, the value is reported as the
    tags have it, so that a plan sees the difference.
    """
    out = dict(values)
    own = [tag.removeprefix(TAG_PREFIX) for tag in present if is_own_tag(tag)]
    if WATCHED in own:
        out.setdefault(ALERTS, "")  # what people were told is there to be read, even if not in a listing
    said = {STATUS: [w for w in own if w in _LEVELS], FINDINGS: [w for w in own if w in _KINDS]}
    for key, words in said.items():
        meant = [tag.removeprefix(TAG_PREFIX) for tag in tags_for({key: out.get(key, "")})]
        if sorted(meant) != sorted(words):
            out[key] = ",".join(words) or GONE
    return out


def after(values: Mapping[str, str], plan: WritePlan) -> dict[str, str]:
    """Return our values as they will be after a plan; the note is one of them."""
    out = {key: value for key, value in values.items() if key not in plan.delete_tags}
    out.update(plan.set_tags)
    if plan.delete_note:
        out.pop(NOTE, None)
    if plan.set_note is not None:
        out[NOTE] = plan.set_note
    return out


def check(plan: WritePlan, where: str) -> None:
    """Refuse a plan that touches what is not ours.

    Raises
    ------
    MarkWriteError
        A tag key or a path that is not ours.
    """
    foreign = [key for key in (*plan.set_tags, *plan.delete_tags) if not is_own(key)]
    foreign += [path for path in (*plan.put_files, *plan.delete_files) if not is_own_path(path)]
    if foreign:
        raise MarkWriteError(f"the plan touches what is not ours: {', '.join(map(repr, foreign[:3]))}", where=where)


def is_own_path(path: str) -> bool:
    """Tell whether a file of a run is ours to write: below our folder, without a way out of it."""
    return path.startswith(FOLDER) and not {"", ".", ".."} & set(path.split("/")) and "\\" not in path


def encode_values(values: Mapping[str, str]) -> bytes:
    """Write values as the content of :data:`LIVE_FILE`."""
    return msgspec.json.encode(dict(sorted(values.items())))


def decode_values(content: bytes) -> dict[str, str]:
    """Read :data:`LIVE_FILE`; what is not ours or not readable counts as not there."""
    try:
        found = msgspec.json.decode(content, type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {key: value for key, value in found.items() if is_own(key)}


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]

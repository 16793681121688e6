"""What hangs on a run afterwards, and the difference between what should hang there and what does.

Only our own marks are ever represented here, so nothing else can be written, changed or removed.
"""

from __future__ import annotations

import hashlib

import msgspec

OWN_PREFIX = "runtriage."
"""Every tag key of ours starts with this; nothing else is ever written."""

CONFIG_KEY = "runtriage.config"
"""Fingerprint of the run's config: what rules for one config, asked of the tracker's database, find runs by."""

USER_KEYS = frozenset({"runtriage.contract"})
"""Keys with our prefix that people write themselves: never part of :class:`Marks`, never changed."""


def content_digest(content: bytes) -> str:
    """Return the digest by which file contents are compared in :attr:`Marks.files`: 16 hex digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """Our marks on one run (or on one experiment), as wanted or as found.

    Attributes
    ----------
    tags
        Our tags, key to value. Keys all start with ``runtriage.``.
    note
        Our block of the run note, without the markers; None for no block.
    files
        Path below the run's artifact root to :func:`content_digest`. As wanted, the content is in ``contents``.
    contents
        Path to bytes, only for wanted marks.
    """

    tags: dict[str, str] = msgspec.field(default_factory=dict)
    note: str | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    contents: dict[str, bytes] = msgspec.field(default_factory=dict)


class WritePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that turn the marks found into the marks wanted.

    Attributes
    ----------
    set_tags, delete_tags
        Tag changes.
    set_note
        New text of our block, or None to leave it as it is.
    delete_note
        True to take our block out.
    put_files
        Path to content.
    delete_files
        Paths of ours to remove.
    """

    set_tags: dict[str, str] = msgspec.field(default_factory=dict)
    delete_tags: tuple[str, ...] = ()
    set_note: str | None = None
    delete_note: bool = False
    put_files: dict[str, bytes] = msgspec.field(default_factory=dict)
    delete_files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return True if there is anything to do."""
        return bool(
            self.set_tags
            or self.delete_tags
            or self.set_note is not None
            or self.delete_note
            or self.put_files
            or self.delete_files
        )

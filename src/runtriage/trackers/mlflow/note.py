"""Our block in a Markdown note that belongs to someone else. Pure text.

The user's text is never touched, not by one byte. A block that is put into a note for the first time goes to its end,
after an empty line of ours, which its marker remembers; later ones replace it where it stands.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from dataclasses import dataclass

BEGIN = "<!-- runtriage:begin -->"
BEGIN_APART = "<!-- runtriage:begin apart -->"
END = "<!-- runtriage:end -->"
NOTE_LIMIT = 8000
"""Characters a run tag holds; the server would cut the rest off without a word."""

_MARKER = re.compile(f"{re.escape(BEGIN)}|{re.escape(BEGIN_APART)}")
_SEPARATOR = "\n\n"
_SENTENCE = "The rest is cut off: MLflow does not keep more of a description."
_ROOM = len(BEGIN_APART) + len(END) + len(_SEPARATOR) + 2


@dataclass(frozen=True, slots=True)
class NoteParts:
    """A note taken apart: ``before + opening + block + after``.

    Attributes
    ----------
    before, after
        The user's own text.
    opening
        Our separator, if one stands there, and our begin marker; empty if there is no block.
    block
        Our text, None if there is no block.
    """

    before: str
    opening: str
    block: str | None
    after: str

    @property
    def foreign(self) -> str:
        """The user's own text."""
        return self.before + self.after


def take_apart(text: str) -> NoteParts:
    """Find our block: the last begin marker that has an end marker after it and no other begin marker between."""
    stop = len(text)
    for marker in reversed(list(_MARKER.finditer(text))):
        end = text.find(END, marker.end(), stop)
        if end >= 0:
            before, opening = text[: marker.start()], marker[0]
            if opening == BEGIN_APART and before.endswith(_SEPARATOR):
                before, opening = before.removesuffix(_SEPARATOR), _SEPARATOR + opening
            return NoteParts(
                before=before,
                opening=opening,
                block=text[marker.end() : end].removeprefix("\n").removesuffix("\n"),
                after=text[end + len(END) :],
            )
        stop = marker.start()
    return NoteParts(before=text, opening="", block=None, after="")


def put_block(text: str | None, block: str, *, limit: int = NOTE_LIMIT) -> str | None:
    """Return the note with our block in it.

    Parameters
    ----------
    text
        The note as it is; None if there is none.
    block
        Our text; cut at a line, with a sentence that says so, if it does not fit.
    limit
        Characters that the place of the note holds.

    Returns
    -------
    str or None
        The new note. If the user's text leaves no room, the note without our block.
    """
    parts = take_apart(text or "")
    opening = parts.opening or (BEGIN if text is None else _SEPARATOR + BEGIN_APART)
    fitted = fit(block, limit - _ROOM - len(parts.foreign))
    if fitted is None:
        return remove_block(text)
    return f"{parts.before}{opening}\n{fitted}\n{END}{parts.after}"


def remove_block(text: str | None) -> str | None:
    """Return the note without our block and its separator; None if nothing was there before us."""
    if text is None:
        return None
    parts = take_apart(text)
    if parts.block is None:
        return text
    return parts.foreign if parts.foreign or parts.opening != BEGIN else None


def fit(block: str, room: int) -> str | None:
    """Return the block without our own markers in it, cut to ``room`` characters at a line, or None if none fits."""
    clean = block.replace("<!-- runtriage:", "&lt;!-- runtriage:")
    if len(clean) <= room:
        return clean
    lines, used = [], len(_SENTENCE) + 2
    for line in clean.split("\n"):
        used += len(line) + 1
        if used > room:
            break
        lines.append(line)
    return "\n".join([*lines, "", _SENTENCE]) if lines and used else None


def remember(wanted: str, written: str | None) -> str:
    """Return the text that lets a later reading know which block was wanted although another one was written."""
    packed = base64.b64encode(zlib.compress(wanted.encode("utf-8", "surrogatepass"), 9)).decode("ascii")
    return f"{_digest(written)};{packed}"


def recall(memory: str, present: str | None) -> str | None:
    """Return the block that was wanted when ``present`` was written; ``present`` itself if it is not that one."""
    digest, _, packed = memory.partition(";")
    if digest != _digest(present):
        return present
    try:
        return zlib.decompress(base64.b64decode(packed, validate=True)).decode("utf-8", "surrogatepass")
    except (binascii.Error, zlib.error, ValueError):
        return present


def _digest(block: str | None) -> str:
    return hashlib.sha256((block or "").encode("utf-8", "surrogatepass")).hexdigest()[:16]

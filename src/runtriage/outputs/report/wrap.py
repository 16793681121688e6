"""Lines for text whose characters are not all of one width: Chinese breaks between any two characters, almost. Pure."""

from __future__ import annotations

import re

from runtriage.outputs.report.words import width

_NOT_FIRST = "，。；：、！？）》」』”…"
_NOT_LAST = "（《「『“"
_PIECE = re.compile(r"\s+|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+|.", re.DOTALL)
"""A blank, a word of narrow characters, or one wide character."""


def wrap_wide(sentence: str, columns: int) -> list[str]:
    """Return a sentence in lines of at most so many columns, wide characters counted twice.

    Parameters
    ----------
    sentence
        On one line.
    columns
        Columns of a line. Closing punctuation may stand one character beyond them, rather than begin a line; a word
        that is longer than a line is broken.

    Examples
    --------
    >>> wrap_wide("损失尖峰，自第 12 步起", 10)
    ['损失尖峰，', '自第 12 步', '起']
    """
    lines: list[str] = []
    line = ""
    for piece in _joined(_PIECE.findall(sentence)):
        if line and width(line) + width(piece.rstrip("".join(_NOT_FIRST))) > columns:
            lines.append(line.rstrip())
            line = ""
        line += piece.lstrip() if not line else piece
        while width(line) > columns + 2:
            cut = _cut(line, columns)
            lines.append(line[:cut])
            line = line[cut:]
    return [*lines, line.rstrip()] if line.strip() else lines


def _joined(pieces: list[str]) -> list[str]:
    """Join closing punctuation to what it closes, and opening punctuation to what it opens."""
    out: list[str] = []
    for piece in pieces:
        if out and (piece in _NOT_FIRST or out[-1][-1] in _NOT_LAST):
            out[-1] += piece
        else:
            out.append(piece)
    return out


def _cut(line: str, columns: int) -> int:
    """Return how many characters fill the columns."""
    at = used = 0
    while at < len(line) and used + width(line[at]) <= columns:
        used += width(line[at])
        at += 1
    return max(at, 1)

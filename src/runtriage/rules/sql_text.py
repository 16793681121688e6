"""Text and numbers from outside as literals of PostgreSQL that neither it nor Grafana takes for anything else. Pure."""

from __future__ import annotations

import re

INFINITE = "1.7976931348623157e308"
"""What MLflow stores for infinity: the largest double."""

_PLAIN = re.compile(r"[A-Za-z0-9_ ./:-]*")
_PLAIN_LETTER = re.compile(r"[A-Za-z0-9_ ./:-]")


def quoted(text: str) -> str:
    r"""Return text as a literal of plain letters and escapes, whatever ``standard_conforming_strings`` says.

    Parameters
    ----------
    text
        Without NUL and surrogates, which no database holds.

    Examples
    --------
    >>> quoted("train/loss"), quoted("a'b"), quoted("$__file{x}")
    ("'train/loss'", "E'a\\u0027b'", "E'\\u0024__file\\u007bx\\u007d'")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return "E'" + "".join(map(_escaped, text)) + "'"


def number(value: float) -> str:
    """Return a finite number as a literal.

    Examples
    --------
    >>> number(-0.1)
    "float8 '-0.1'"
    """
    return f"float8 '{value!r}'"


def _escaped(letter: str) -> str:
    if _PLAIN_LETTER.fullmatch(letter):
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""A sentence before it is put into words: the key of a text and the values that go into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is to be said, in no language yet; :func:`runtriage.model.texts.say` puts it into words.

    Attributes
    ----------
    key
        Of a text in the catalogue.
    values
        Placeholder to number, word or further phrase. Words may be hostile; they never act as templates.
    """

    key: str
    values: Mapping[str, object] = field(default_factory=dict)


def phrase(key: str, /, **values: object) -> Phrase:
    """Return a phrase; nothing is formatted, so one that is dropped later has cost next to nothing.

    Examples
    --------
    >>> phrase("loss.gradual", step=12)
    Phrase(key='loss.gradual', values={'step': 12})
    """
    return Phrase(key, values)

"""Every sentence that a report says, in each language: one catalogue, English and Chinese side by side.

A sheet maps a key to its texts, one for each :class:`~runtriage.model.vocab.Lang`, with the same placeholders in
each. Ids of forms, causes, roles and verdicts are a contract and stay as they are in JSON and tags; here are the words
that people read for them. Numbers look the same in all languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter

from runtriage.model.phrase import Phrase
from runtriage.model.texts.causes import CAUSES
from runtriage.model.texts.labels import LABELS
from runtriage.model.texts.remedies import REMEDIES
from runtriage.model.texts.seen import SEEN
from runtriage.model.texts.terms import TERMS
from runtriage.model.vocab import Lang

__all__ = ["CATALOGUE", "say", "term", "text"]

CATALOGUE: Mapping[str, tuple[str, str]] = {**SEEN, **CAUSES, **REMEDIES, **TERMS, **LABELS}
"""Key to texts, in the order of :class:`~runtriage.model.vocab.Lang`."""

_PLACE = {lang: place for place, lang in enumerate(Lang)}
_IDS = {"role": "role", "other": "role", "kind": "kind", "outcome": "outcome"}
"""Placeholders for ids that English shows as they are, and where the other languages have words for them."""
_SPACED = {"role_words": "role", "kind_words": "kind", "why_words": "why"}
"""Placeholders for ids that English shows with spaces."""


def text(key: str, lang: Lang) -> str:
    """Return the text of a key, placeholders and all.

    Raises
    ------
    KeyError
        There is no such text; a test holds all keys in the code to the catalogue.
    """
    return CATALOGUE[key][_PLACE[lang]]


def say(phrase: Phrase, lang: Lang) -> str:
    """Put a phrase into words.

    Parameters
    ----------
    phrase
        Its values are inserted as they are, never read as templates.
    lang
        The language. Chinese gets the space that belongs between it and Latin letters or digits, also at the edges of
        values.

    Examples
    --------
    >>> say(Phrase("loss.gradual", {"step": 12}), Lang.EN)
    'builds up gradually from about step 12'
    """
    values = {name: _value(name, value, lang) for name, value in phrase.values.items()}
    template = text(phrase.key, lang)
    return template.format_map(values) if lang is Lang.EN else _joined(template, values)


def term(group: str, word: str, lang: Lang) -> str:
    """Return the word for an id, or the id where the catalogue has none."""
    texts = CATALOGUE.get(f"{group}.{word}")
    return word if texts is None else texts[_PLACE[lang]]


def _value(name: str, value: object, lang: Lang) -> object:
    if isinstance(value, Phrase):
        return say(value, lang)
    if lang is Lang.EN:
        return str(value).replace("_", " ") if name in _SPACED else value
    group = _IDS.get(name) or _SPACED.get(name)
    return value if group is None else _word(group, str(value), lang)


def _word(group: str, word: str, lang: Lang) -> str:
    base, _, part = word.partition("/")
    known = term(group, base, lang)
    return text("word.part", lang).format(name=known, layer=part) if part else known


def _joined(template: str, values: Mapping[str, object]) -> str:
    """Fill a template, with a space wherever a value and its surroundings are of different script."""
    out = ""
    for literal, name, form, _ in Formatter().parse(template):
        out = _beside(out, literal)
        if name is not None:
            out = _beside(out, format(values[name], form or ""))
    return out


def _beside(left: str, right: str) -> str:
    apart = bool(left and right) and {_script(left[-1]), _script(right[0])} == {"latin", "han"}
    return f"{left} {right}" if apart else left + right


def _script(char: str) -> str:
    if "\u4e00" <= char <= "\u9fff":
        return "han"
    return "latin" if char.isascii() and (char.isalnum() or char in "%+-_/") else ""

"""The catalogue: both languages say the same, every key is used, and Chinese is spaced as it should be."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

import runtriage
from runtriage.model.phrase import phrase
from runtriage.model.texts import CATALOGUE, say, term, text
from runtriage.model.vocab import CauseId, Explanation, FindingKind, Lang, Level, Outcome, Role, RunState
from runtriage.outputs.report.page import MACROS, PAGE

SOURCES = [
    path for path in Path(runtriage.__file__).parent.rglob("*.py")
    if "texts" not in path.parts and "demo_data" not in path.parts
]
VOCABULARIES = {
    "kind": FindingKind, "cause": CauseId, "role": Role, "outcome": Outcome, "why": Explanation, "level": Level,
    "state": RunState,
}
HAN = re.compile("[\u4e00-\u9fff]")


def _strings() -> set[str]:
    """Return all strings in the code."""
    found: set[str] = set()
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return found


def _calls(*names: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return module, literal key and keywords of the calls of some functions."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
                and getattr(node.func, "attr", getattr(node.func, "id", "")) in names
            ):
                keywords = tuple(sorted(k.arg for k in node.keywords if k.arg is not None))
                found.append((path.stem, str(node.args[0].value), keywords))
    return found


def _placeholders(template: str) -> list[tuple[str, str]]:
    return sorted((name, form or "") for _, name, form, _ in Formatter().parse(template) if name is not None)


@pytest.mark.parametrize("key", CATALOGUE)
def test_both_languages_have_the_same_placeholders(key: str) -> None:
    """A translation that loses a number, or formats it in its own way, is wrong."""
    english, chinese = CATALOGUE[key]
    assert _placeholders(english) == _placeholders(chinese)


@pytest.mark.parametrize("key", CATALOGUE)
def test_a_translation_is_in_its_language(key: str) -> None:
    """English has no Chinese in it, and Chinese has some, unless there is no word in either."""
    english, chinese = CATALOGUE[key]
    assert not HAN.search(english)
    latin = re.sub(r"\{[^}]*\}|\b(run|runtriage)\b", "", chinese)
    assert HAN.search(chinese) or not re.search("[A-Za-z]", latin)


@pytest.mark.parametrize("key", CATALOGUE)
def test_chinese_is_punctuated_and_spaced_as_chinese(key: str) -> None:
    """Full-width punctuation, and one space between Chinese and Latin letters or digits."""
    chinese = re.sub(r"\{[^}]*\}", "\0", CATALOGUE[key][1])
    assert not re.search("[\u4e00-\u9fff][,;:!?()]|[,;:!?()][\u4e00-\u9fff]", chinese)
    assert not re.search("[\u4e00-\u9fff][A-Za-z0-9%]|[A-Za-z0-9%][\u4e00-\u9fff]", chinese)
    assert not re.search(" [，。；：（）、]|[，。；：（）、] ", chinese)


def test_keys_are_unique_over_all_sheets() -> None:
    """No sheet hides a text of another."""
    folder = Path(runtriage.__file__).parent / "model" / "texts"
    sheets = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    keys = [key for sheet in sheets for key in re.findall(r'^    "([a-z0-9_.]+)": \(', sheet, re.MULTILINE)]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(CATALOGUE)


def test_every_key_in_the_code_is_in_the_catalogue_with_its_values() -> None:
    """What a phrase gives is what its text asks for."""
    for module, key, keywords in _calls("phrase", "label", "_said"):
        wanted = {name for name, _ in _placeholders(text(key, Lang.EN))}
        assert set(keywords) == wanted, f"{module}: {key}"


def test_every_text_in_the_catalogue_is_used() -> None:
    """A text that nobody says is no text."""
    words = {f"{group}.{word}" for group, words in VOCABULARIES.items() for word in words}
    page = {f"page.{key}" for key in re.findall("'([a-z_]+)'", PAGE + MACROS)}
    assert not set(CATALOGUE) - _strings() - words - page


@pytest.mark.parametrize("group", VOCABULARIES)
def test_every_id_has_words(group: str) -> None:
    """Each member of a vocabulary that people read is in the catalogue."""
    assert not {f"{group}.{word}" for word in VOCABULARIES[group]} - set(CATALOGUE)


def test_an_id_is_a_word_in_chinese_and_stays_in_english() -> None:
    """English evidence names the role as reports do; Chinese has a word for it."""
    seen = phrase("level.against", role=Role.GRAD_NORM, factor=2.0, members=8, z=5.0)
    assert say(seen, Lang.EN) == "grad_norm x 2 against 8 runs of the same config, z 5.0"
    assert say(seen, Lang.ZH) == "梯度范数为同配置 8 个 run 的 2 倍，z 为 5.0"


def test_phrases_hold_phrases() -> None:
    """A value may be a phrase of its own and is said in the same language."""
    seen = phrase("lr.jump", factor=3.0, against=phrase("against.schedule"), step=7)
    assert say(seen, Lang.EN) == "lr x 3 against the cohort's schedule at step 7"
    assert say(seen, Lang.ZH) == "第 7 步的学习率是对照组学习率曲线的 3 倍"


@pytest.mark.parametrize("lang", Lang)
def test_values_are_never_templates(lang: Lang) -> None:
    """A hostile name with braces is told as it is."""
    name = "{0.__class__}{members}%s"
    said = say(phrase("layer.off", layer=name, factor=2.0, members=8, z=1.0), lang)
    assert said.startswith(name)


def test_a_space_stands_between_scripts_at_the_edges_of_values() -> None:
    """Words from outside get the space that Chinese typography asks for."""
    assert say(phrase("reason.form", kind_words="loss_spike", role_words="layer_grad_norm/h.0"), Lang.ZH) == (
        "损失尖峰（单层梯度范数 h.0）"
    )


def test_an_unknown_id_is_its_own_word() -> None:
    """A role that a setting or a plug-in brought is shown as it is."""
    assert term("role", "my_role", Lang.ZH) == "my_role"

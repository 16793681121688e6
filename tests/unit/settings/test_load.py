"""Settings: where they come from, which wins, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtriage.errors import SettingsError
from runtriage.model.vocab import Level
from runtriage.outputs.plan import EVERYTHING
from runtriage.pipeline import Params
from runtriage.settings import Settings, load
from runtriage.settings.schema import MARK_KINDS, AnalysisSettings


def _write(folder: Path, text: str, name: str = "runtriage.toml") -> None:
    (folder / name).write_text(text)


def test_nothing_given_is_the_defaults(tmp_path: Path) -> None:
    """Without a file, a variable or a flag, the settings are the defaults and none has an origin."""
    loaded = load(tmp_path, {})
    assert (loaded.settings, dict(loaded.origin)) == (Settings(), {})


def test_a_file_beats_the_defaults(tmp_path: Path) -> None:
    """A value in runtriage.toml is taken."""
    _write(tmp_path, "[sweep]\nreaders = 9\n")
    assert load(tmp_path, {}).settings.sweep.readers == 9


def test_a_variable_beats_the_file(tmp_path: Path) -> None:
    """An environment variable wins over the file."""
    _write(tmp_path, "[sweep]\nreaders = 9\n")
    assert load(tmp_path, {"RUNTRIAGE_SWEEP__READERS": "7"}).settings.sweep.readers == 7


def test_a_flag_beats_everything(tmp_path: Path) -> None:
    """A flag wins over variable and file."""
    _write(tmp_path, "[sweep]\nreaders = 9\n")
    loaded = load(tmp_path, {"RUNTRIAGE_SWEEP__READERS": "7"}, {"sweep.readers": 5})
    assert loaded.settings.sweep.readers == 5


def test_a_flag_not_given_changes_nothing(tmp_path: Path) -> None:
    """None stands for a flag that was not given."""
    assert load(tmp_path, {"RUNTRIAGE_SWEEP__READERS": "7"}, {"sweep.readers": None}).settings.sweep.readers == 7


def test_the_table_of_pyproject_is_read(tmp_path: Path) -> None:
    """[tool.runtriage] of pyproject.toml is the file where there is no runtriage.toml."""
    _write(tmp_path, '[tool.runtriage.sweep]\nfail_on = "broken"\n', "pyproject.toml")
    assert load(tmp_path, {}).settings.sweep.fail_on is Level.BROKEN


def test_the_own_file_hides_pyproject(tmp_path: Path) -> None:
    """Where runtriage.toml lies, pyproject.toml is not read."""
    _write(tmp_path, "[tool.runtriage.sweep]\nreaders = 3\n", "pyproject.toml")
    _write(tmp_path, "")
    assert load(tmp_path, {}).settings == Settings()


def test_a_list_in_a_variable_is_split_at_commas(tmp_path: Path) -> None:
    """Blanks and empty parts between commas do not count."""
    assert load(tmp_path, {"RUNTRIAGE_SWEEP__WRITE": "tags, view,"}).settings.sweep.write == ("tags", "view")


def test_each_value_says_where_it_came_from(tmp_path: Path) -> None:
    """The lines of --show-settings name file, variable, flag or default."""
    _write(tmp_path, '[analysis.roles]\n"opt/gn" = "grad_norm"\n')
    lines = load(tmp_path, {"RUNTRIAGE_SWEEP__WORKERS": "3"}, {"sweep.readers": 5}).lines()
    assert {line.split(" = ")[0]: line.rpartition("(")[2].rstrip(")") for line in lines} == {
        "analysis.false_alarm_budget": "default",
        "analysis.roles": "runtriage.toml",
        "analysis.ignore_keys": "default",
        "sweep.write": "default",
        "sweep.fail_on": "default",
        "sweep.executor": "default",
        "sweep.readers": "flag",
        "sweep.workers": "RUNTRIAGE_SWEEP__WORKERS",
        "sweep.rules": "default",
        "sweep.notify": "default",
        "cache.address": "default",
        "cache.max_gb": "default",
        "report.lang": "default",
    }


def test_variables_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    """RUNTRIAGE_DEBUG and RUNTRIAGE_CORPORA belong to others."""
    assert load(tmp_path, {"RUNTRIAGE_DEBUG": "1", "RUNTRIAGE_CORPORA": "x"}).settings == Settings()


WRONG = {
    "unknown key in a file": ("[sweep]\nreader = 1\n", {}, {}, "reader", "$.sweep (runtriage.toml)"),
    "unknown variable": ("", {"RUNTRIAGE_NOPE": "1"}, {}, "nope", "$"),
    "too small": ("", {}, {"sweep.readers": 0}, ">= 1", "$.sweep.readers (flag)"),
    "not a number": ("", {"RUNTRIAGE_SWEEP__READERS": "many"}, {}, "int", "$.sweep.readers (RUNTRIAGE_SWEEP__READERS)"),
    "a budget of one half": ("[analysis]\nfalse_alarm_budget = 0.5\n", {}, {}, "< 0.5", "false_alarm_budget"),
    "unknown kind of mark": ("", {}, {"sweep.write": ["tags", "all "]}, "'all ' cannot be written", "$.sweep.write[1]"),
    "unknown executor": ('[sweep]\nexecutor = "gpu"\n', {}, {}, "no executor 'gpu'", "$.sweep.executor"),
    "an address for what has none": ("", {}, {"sweep.executor": "serial:tcp://h:1"}, "no executor", "$.sweep.executor"),
    "withheld as a threshold": ("", {"RUNTRIAGE_SWEEP__FAIL_ON": "withheld"}, {}, "outside", "$.sweep.fail_on"),
    "unknown role": ('[analysis.roles]\na = "b"\n', {}, {}, "no role 'b'", "$.analysis.roles['a']"),
    "no regular expression": ('[analysis]\nignore_keys = ["("]\n', {}, {}, "regular", "$.analysis.ignore_keys[0]"),
    "roles in a variable": ("", {"RUNTRIAGE_ANALYSIS__ROLES": "x"}, {}, "file", "RUNTRIAGE_ANALYSIS__ROLES"),
    "a value where a table is": ("sweep = 3\n", {}, {"sweep.readers": 2}, "not a table", "$.sweep"),
    "not TOML": ("[sweep", {}, {}, "cannot be read", "runtriage.toml"),
}


@pytest.mark.parametrize(("text", "environ", "flags", "what", "where"), WRONG.values(), ids=WRONG)
def test_a_wrong_setting_is_named_with_its_place(
    tmp_path: Path, text: str, environ: dict[str, str], flags: dict[str, object], what: str, where: str
) -> None:
    """The error says what is wrong with which setting, and which place it came from."""
    _write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, environ, flags)
    assert (what in caught.value.message, where in caught.value.where) == (True, True), str(caught.value)


def test_kinds_of_marks_are_those_of_the_plan() -> None:
    """What may be set and what can be planned is one list."""
    assert frozenset(MARK_KINDS) == EVERYTHING


@pytest.mark.parametrize("name", AnalysisSettings.__struct_fields__)
def test_defaults_of_the_analysis_are_its_own(name: str) -> None:
    """Settings and analysis do not state two different defaults."""
    assert getattr(AnalysisSettings(), name) == getattr(Params(), name)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    """The user and the password in an address are left out of --show-settings."""
    lines = load(tmp_path, {"RUNTRIAGE_CACHE__ADDRESS": "ftp://me:s3cret@host/x"}).lines()
    assert 'cache.address = "ftp://host/x"  (RUNTRIAGE_CACHE__ADDRESS)' in lines

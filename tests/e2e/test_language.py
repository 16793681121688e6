"""`--lang zh`: what people read is Chinese, what programs read is not, and the environment is never guessed from."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtriage.model.history import RunHistory
from runtriage.testing.synth import cohort, faulty

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
HAN = re.compile("[\u4e00-\u9fff]")
SENTENCES = {"reason", "because", "verify", "try", "evidence", "missing", "formed_by"}


@pytest.fixture
def mixed(runs: Callable[[RunHistory], Path]) -> str:
    """Write four healthy runs and one that diverges; return their address."""
    for history in (*cohort(4), faulty("divergence", run_id="bad")):
        runs(history)
    return "files:runs"


def _shape(value: Any, key: str = "") -> Any:
    """Return a report without its sentences: what programs may rely on."""
    if isinstance(value, dict):
        return {k: _shape(v, k) for k, v in value.items() if k != "lang"}
    if isinstance(value, list):
        return [_shape(v, key) for v in value]
    return "…" if key in SENTENCES else value


def test_a_sweep_is_told_in_chinese(cli: Cli, mixed: str) -> None:
    """Head of the table, verdicts and the line that counts."""
    lines = cli("sweep", mixed, "--lang", "zh").stdout.splitlines()
    assert re.split(r"\s{2,}", lines[0].strip()) == ["结论", "run", "发现", "比较对象"]
    assert lines[1].startswith(("异常", "可疑"))
    assert re.fullmatch(r"5 个 run：1 个(异常|可疑)，4 个健康.*", lines[-1])


def test_a_check_is_told_in_chinese(cli: Cli, mixed: str) -> None:
    """No English sentence is left: every line with a lower-case English word is a name, a plot or a metric."""
    said = cli("check", f"{mixed}/bad", "--lang", "zh").stdout
    assert all(word in said for word in ("发散", "依据", "验证", "比较对象"))
    assert not re.search(r"\b(the|of|from|step|with|check|because|seen|compared|logged)\b", said)


def test_json_has_the_same_keys_ids_and_numbers(cli: Cli, mixed: str) -> None:
    """Only sentences differ, and the report says their language."""
    english, chinese = (
        [json.loads(line) for line in cli("sweep", mixed, "--json", "-", *flags).stdout.splitlines()]
        for flags in ((), ("--lang", "zh"))
    )
    assert _shape(english) == _shape(chinese)
    assert ({line.get("lang") for line in english}, {line.get("lang") for line in chinese}) == ({None}, {"zh"})
    assert all(HAN.search(said) for line in chinese for said in (line["reason"], *line["missing"]))


def test_page_and_digest_are_in_the_language(cli: Cli, mixed: str, tmp_path: Path) -> None:
    """The page says its language to the browser; the digest for GitHub counts in it."""
    cli("sweep", mixed, "--lang", "zh", "--html", "out.html", "--digest", "out.md")
    page, digest = (tmp_path / "out.html").read_text(), (tmp_path / "out.md").read_text()
    assert '<html lang="zh-Hans">' in page
    assert digest.startswith("**runtriage：5 个 run 中有 1 个需要查看**（")
    assert not re.search(r"\b(Seen|Likely|Check|Compared|look)\b", digest)


def test_the_locale_is_not_asked(cli: Cli, mixed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever schedules a sweep on a machine with a Chinese locale gets what the settings say."""
    for name in ("LANG", "LC_ALL", "LANGUAGE"):
        monkeypatch.setenv(name, "zh_CN.UTF-8")
    assert not HAN.search(cli("sweep", mixed).stdout)


@pytest.mark.parametrize("how", ["file", "variable"])
def test_the_setting_is_the_flag(
    cli: Cli, mixed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """`[report] lang` and its variable say the same, and the flag is above them."""
    if how == "file":
        (tmp_path / "runtriage.toml").write_text('[report]\nlang = "zh"\n')
    else:
        monkeypatch.setenv("RUNTRIAGE_REPORT__LANG", "zh")
    assert HAN.search(cli("sweep", mixed).stdout)
    assert not HAN.search(cli("sweep", mixed, "--lang", "en").stdout)


def test_a_language_that_is_none_is_refused(cli: Cli, mixed: str) -> None:
    """The message names those there are."""
    done = cli("sweep", mixed, "--lang", "xx")
    assert done.returncode == 2
    assert "'en', 'zh'" in done.stderr.replace("\n", " ")

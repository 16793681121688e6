"""A real browser opens what we render."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from runtriage.model.curve import Triage
from runtriage.model.vocab import Level
from runtriage.outputs.report.html import render_html
from runtriage.outputs.report.svg import render_svg
from tests.golden.made import report, triage

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
    "--virtual-time-budget=2000", "--dump-dom",
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.timeout(180),
]


def opened(path: Path, profile: Path) -> tuple[str, list[str]]:
    """Return the document as a browser sees it, and what it wrote to its console."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_a_hostile_page_runs_nothing(tmp_path: Path) -> None:
    """No script runs, the policy is not violated, and the hostile name is seen as text."""
    name = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    hostile = msgspec.structs.replace(report(), run=msgspec.structs.replace(report().run, name=name))
    page = tmp_path / "page.html"
    page.write_text(render_html([Triage(report=hostile, curves=triage().curves), triage(Level.HEALTHY)], name), "utf-8")
    dom, console = opened(page, tmp_path / "profile")
    assert console == []
    assert "owned · runtriage" not in dom
    assert dom.count("&lt;img src=x onerror=") > 2
    assert "<title>owned" not in dom


def test_a_panel_opens_by_itself(tmp_path: Path) -> None:
    """The picture is a document of its own that a browser reads without complaint."""
    picture = tmp_path / "panel.svg"
    picture.write_text(render_svg(triage()), encoding="utf-8")
    dom, console = opened(picture, tmp_path / "profile")
    assert console == []
    assert "parsererror" not in dom
    assert "1 Loss spike" in dom

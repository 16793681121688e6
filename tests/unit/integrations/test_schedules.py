"""The recipes for schedulers: what their own checkers say, and that each command line is one of ours."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from demanded import absent

from runtriage.cli.app import app
from runtriage.model.refs import parse_address

FOLDER = Path(__file__).resolve().parents[3] / "integrations"
SERVICE, TIMER = FOLDER / "systemd/runtriage.service", FOLDER / "systemd/runtriage.timer"
CRONTAB, WORKFLOW = FOLDER / "cron/runtriage.crontab", FOLDER / "github-actions/runtriage.yml"
CRONJOB, DAG = FOLDER / "kubernetes/cronjob.yaml", FOLDER / "airflow/runtriage_dag.py"
YAMLLINT = "{extends: default, rules: {truthy: {check-keys: false}, line-length: {max: 120}, document-start: disable}}"
IN_TEXT = re.compile(r"runtriage (sweep mlflow:[^\n>\"|)]+?)(?: 2?>| \d>|\"|$)", re.MULTILINE)


def ran(*command: str | Path) -> str:
    """Return what a checker printed if it found fault, nothing if it did not."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def arguments(path: Path) -> list[str]:
    """Return the arguments of runtriage in a recipe."""
    if path == CRONJOB:
        return list(container()["args"])
    (found,) = IN_TEXT.findall(path.read_text(encoding="utf-8"))
    return shlex.split(found)


def container() -> Any:
    """Return the container of the CronJob."""
    job = yaml.safe_load(CRONJOB.read_text(encoding="utf-8"))["spec"]["jobTemplate"]
    (found,) = job["spec"]["template"]["spec"]["containers"]
    return found


def schedules() -> list[str]:
    """Return all five-field schedules of the recipes."""
    texts = (path.read_text(encoding="utf-8") for path in (CRONTAB, WORKFLOW, CRONJOB, DAG))
    return [found for text in texts for found in re.findall(r"(?m)(?:^|\")([\d*][\d*/,-]*(?: [\d*/,-]+){4})", text)]


@pytest.mark.parametrize("path", [SERVICE, CRONTAB, WORKFLOW, CRONJOB, DAG], ids=lambda path: path.name)
def test_the_command_is_one_of_ours(path: Path) -> None:
    """Each recipe calls a command that exists, with flags that exist, on an address of a known form."""
    words = arguments(path)
    group: Any = typer.main.get_command(app)
    context = group.commands[words[0]].make_context("runtriage", words[1:])
    assert parse_address(context.params["source"]).scheme == "mlflow"


def test_units_are_valid() -> None:
    """The units are ones that systemd takes."""
    if shutil.which("systemd-analyze") is None:
        absent("no systemd-analyze: apt-get install -y systemd")
    assert not ran("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", SERVICE, TIMER)


def test_the_checker_of_units_finds_faults(tmp_path: Path) -> None:
    """A unit without a command is not one that systemd takes."""
    if shutil.which("systemd-analyze") is None:
        absent("no systemd-analyze: apt-get install -y systemd")
    (tmp_path / "bad.service").write_text("[Service]\nType=oneshoot\n", encoding="utf-8")
    assert "bad.service" in ran("systemd-analyze", "verify", "--man=no", tmp_path / "bad.service")


@pytest.mark.parametrize("path", [WORKFLOW, CRONJOB], ids=lambda path: path.name)
def test_yaml_is_clean(path: Path) -> None:
    """There is nothing that yamllint would change."""
    assert not ran(sys.executable, "-m", "yamllint", "--strict", "-d", YAMLLINT, path)


def test_the_workflow_keeps_the_schema_of_github() -> None:
    """The workflow is one to GitHub's schema."""
    schema = ("--builtin-schema", "vendor.github-workflows")
    assert not ran(sys.executable, "-m", "check_jsonschema", *schema, WORKFLOW)


def test_the_cronjob_keeps_the_schema_of_kubernetes() -> None:
    """The CronJob is one to Kubernetes' schema, which allows no unknown field."""
    import kubernetes_validate  # noqa: PLC0415  slow to import

    job = yaml.safe_load(CRONJOB.read_text(encoding="utf-8"))
    assert kubernetes_validate.validate(job, "1.36", strict=True) is not None
    job["spec"]["shedule"] = ""
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.36", strict=True)


def test_the_dag_is_python_and_makes_no_two_sweeps() -> None:
    """The DAG compiles, and its arguments let no two sweeps overlap or be made up for."""
    tree = ast.parse(DAG.read_text(encoding="utf-8"))
    compile(tree, DAG.name, "exec")
    (made,) = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "DAG")
    given = {word.arg: ast.unparse(word.value) for word in made.keywords}
    assert (given["catchup"], given["max_active_runs"]) == ("False", "1")


def test_there_is_a_schedule_in_each() -> None:
    """Four recipes have five fields that cron would take."""
    limits = (59, 23, 31, 12, 7)
    found = schedules()
    fields = [pair for line in found for pair in zip(line.split(), limits, strict=True)]
    assert len(found) == 4
    assert all(int(number) <= top for field, top in fields for number in re.findall(r"\d+", field))


def test_shell_lines_are_shell() -> None:
    """The crontab's command and the workflow's steps are ones that bash takes."""
    command = CRONTAB.read_text(encoding="utf-8").splitlines()[-1].split(maxsplit=5)[5]
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["sweep"]["steps"]
    assert [ran("bash", "-n", "-c", text) for text in (command, *(step["run"] for step in steps))] == ["", "", ""]


def test_no_per_cent_sign_ends_the_crontab_early() -> None:
    """A bare per cent sign would be the end of the line to cron."""
    assert "%" not in CRONTAB.read_text(encoding="utf-8").splitlines()[-1]


@pytest.mark.parametrize(("code", "left"), [(0, 0), (1, 1), (4, 4)])
def test_the_workflow_keeps_digest_and_exit_code(code: int, left: int, tmp_path: Path) -> None:
    """The script of the workflow shows the digest as summary and leaves as the sweep did."""
    (tmp_path / "runtriage").write_text(f"#!/bin/sh\necho digest\nexit {code}\n", encoding="utf-8")
    (tmp_path / "runtriage").chmod(0o755)
    step = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["sweep"]["steps"][-1]
    summary = tmp_path / "summary"
    places = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(summary)}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env=places, cwd=tmp_path, check=False, timeout=20)
    assert (done.returncode, summary.read_text(encoding="utf-8")) == (left, "digest\n")


def test_every_recipe_is_described() -> None:
    """The README names each file, and no file that is not there."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:systemd|cron|github-actions|kubernetes|airflow)/[\w.]+)`", text))
    assert named == {path.relative_to(FOLDER).as_posix() for path in (SERVICE, TIMER, CRONTAB, WORKFLOW, CRONJOB, DAG)}

"""The recipes for clusters: what their own checkers say, and that each command line is one of ours."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from demanded import absent

from runtriage.cli.app import app

FOLDER = Path(__file__).resolve().parents[3] / "integrations"
SBATCH, ELASTIC = FOLDER / "slurm/runtriage.sbatch", FOLDER / "slurm/elastic.py"
OPERATOR = FOLDER / "dask-kubernetes/runtriage.yaml"
CRD = "operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"
YAMLLINT = "{extends: default, rules: {line-length: {max: 120}, document-start: disable}}"


def documents() -> tuple[Any, Any]:
    """Return the cluster and the job."""
    cluster, job = yaml.safe_load_all(OPERATOR.read_text(encoding="utf-8"))
    return cluster, job


def arguments() -> list[list[str]]:
    """Return the arguments of runtriage in the recipes that say them in one place."""
    (line,) = re.findall(r"(?m)^runtriage (sweep .*)$", SBATCH.read_text(encoding="utf-8"))
    return [shlex.split(line), documents()[1]["spec"]["template"]["spec"]["containers"][0]["args"]]


@pytest.mark.parametrize("place", [0, 1], ids=["slurm", "kubernetes"])
def test_the_command_is_one_of_ours(place: int) -> None:
    """Each recipe calls a command that exists, with flags that exist, on a cluster."""
    words = arguments()[place]
    group: Any = typer.main.get_command(app)
    context = group.commands[words[0]].make_context("runtriage", words[1:])
    assert context.params["executor"].startswith("dask:")


def test_the_batch_script_is_shell() -> None:
    """Bash takes the script."""
    assert subprocess.run(["/bin/bash", "-n", SBATCH], timeout=20, check=False).returncode == 0


def test_the_elastic_script_is_python() -> None:
    """The script compiles; what it does needs a Slurm."""
    assert compile(ELASTIC.read_text(encoding="utf-8"), ELASTIC.name, "exec")


def test_the_yaml_is_clean() -> None:
    """There is nothing that yamllint would change."""
    words = [sys.executable, "-m", "yamllint", "--strict", "-d", YAMLLINT, str(OPERATOR)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert not done.stdout


def test_pods_service_and_job_keep_the_schemas_of_kubernetes() -> None:
    """What the operator makes of the cluster is valid to Kubernetes' own strict schemas."""
    import kubernetes_validate  # noqa: PLC0415  slow to import

    cluster, job = documents()
    made = [job]
    for part in ("worker", "scheduler"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": part}, "spec": cluster["spec"][part]["spec"]}
        made.append(pod)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    made.append({**service, "spec": cluster["spec"]["scheduler"]["service"]})
    assert all(kubernetes_validate.validate(one, "1.36", strict=True) is not None for one in made)


def test_the_cluster_keeps_the_schema_of_its_operator() -> None:
    """The DaskCluster is one to the operator's own CRD, and has no field that the CRD does not know."""
    found = importlib.util.find_spec("dask_kubernetes")
    if found is None or not found.submodule_search_locations:
        absent("no CRD of the operator: `make setup` installs it")
    import jsonschema  # noqa: PLC0415  slow to import

    (place,) = found.submodule_search_locations
    crd = yaml.safe_load((Path(place) / CRD).read_text(encoding="utf-8"))
    schema, (cluster, _) = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], documents()
    jsonschema.validate(cluster, schema)
    assert list(unknown(cluster["spec"], schema["properties"]["spec"])) == []


def unknown(value: Any, schema: Any) -> Iterator[str]:
    """Yield the names of fields that a structural schema does not have: the server would drop them silently."""
    if isinstance(value, list):
        for one in value:
            yield from unknown(one, schema.get("items", {}))
    if isinstance(value, dict) and "properties" in schema:
        for name, inner in value.items():
            if name in schema["properties"]:
                yield from unknown(inner, schema["properties"][name])
            elif not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield name


def test_every_recipe_is_described() -> None:
    """The README names each file."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.relative_to(FOLDER).as_posix()}`" in text for path in (SBATCH, ELASTIC, OPERATOR))

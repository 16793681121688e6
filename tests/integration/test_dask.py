"""Sweeps on real Dask clusters: the same words as alone, whoever dies on the way."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from dask_cluster import Cluster, cluster
from dask_cluster.work import deadly, slow

from runtriage.codec import encode_report
from runtriage.errors import ClusterError, UsageError
from runtriage.model.baseline import BaselineSet
from runtriage.model.history import RunInfo
from runtriage.pipeline import Params, learn
from runtriage.registry import open_source
from runtriage.sweep.elsewhere import CohortJob, do, lost, portable
from runtriage.sweep.executors import SerialExecutor
from runtriage.sweep.executors.dask import DaskExecutor, scheduler_address
from runtriage.sweep.outcome import Outcome
from runtriage.sweep.run import sweep, sweep_elsewhere
from runtriage.sweep.select import group
from runtriage.testing.synth import cohort, faulty

pytestmark = pytest.mark.integration
COHORTS = 6


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write six cohorts of three, one run of each with a fault."""
    folder = tmp_path_factory.mktemp("runs")
    for number in range(COHORTS):
        config = {"lr": 1e-3, "width": 64 * (number + 1)}
        made = [*cohort(2, first_seed=10 * number, config=config), faulty("divergence", 10 * number + 5, config=config)]
        for history in made:
            place = folder / f"{number}-{history.info.id}"
            place.mkdir()
            facts = {"id": place.name, "name": place.name, "state": "finished", "config": dict(history.info.config)}
            (place / "run.json").write_text(json.dumps(facts))
            names = list(history.tracks)
            columns = [history.tracks[name].value.tolist() for name in names]
            lines = [",".join(["step", *names])]
            lines += [",".join(map(repr, (i, *row))) for i, row in enumerate(zip(*columns, strict=True))]
            (place / "history.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster of two workers that nobody kills."""
    with cluster(tmp_path_factory.mktemp("dask"), 2) as made:
        yield made


def on(executor: DaskExecutor, address: str, *, work: Callable[[CohortJob], list[Outcome]] = do, **how: Any) -> Any:
    """Yield the outcomes of a sweep on a cluster."""
    with closing(open_source(address)) as source:
        groups = group(list(source.list_runs()))
    job = CohortJob(sweep=os.urandom(8).hex(), address=portable(address), params=Params(), **how)
    return sweep_elsewhere(map(job.of, groups), groups, executor=executor, do=work)


def alone(address: str, baselines: BaselineSet | None = None) -> list[bytes]:
    """Return the reports of a sweep in this process."""
    with closing(open_source(address)) as source:
        groups = group(list(source.list_runs()))
        swept = sweep(source, groups, analysis=SerialExecutor(), params=Params(), baselines=baselines)
        return [encode_report(outcome.report) for outcome in swept]


def said(outcomes: Any) -> list[bytes]:
    """Return reports as bytes."""
    return [encode_report(outcome.report) for outcome in outcomes]


def test_a_cluster_says_the_same_as_one_process(both: Cluster, runs: Path) -> None:
    """Reports are equal to the byte, in the same order, read under a shared bound."""
    with closing(DaskExecutor(both.address, lost=lost)) as there:
        found = said(on(there, f"files:{runs}", turn=there.shared_turn("bound", 1)))
    assert found == alone(f"files:{runs}")


def test_a_scheduler_file_leads_to_the_cluster(both: Cluster) -> None:
    """The file that a scheduler writes stands for its address."""
    assert scheduler_address(str(both.file)) == both.address


def test_learned_baselines_go_along(both: Cluster, runs: Path) -> None:
    """Each cohort is sent the baselines it is judged against, and they judge as they do here."""
    with closing(open_source(f"files:{runs}")) as source:
        baselines = learn([source.read(info) for info in source.list_runs()])
    with closing(DaskExecutor(both.address, lost=lost)) as there:
        found = said(on(there, f"files:{runs}", baselines=baselines))
    assert found == alone(f"files:{runs}", baselines)


def test_curves_stay_where_they_are_unless_wanted(both: Cluster, runs: Path) -> None:
    """Outcomes come back with curves only where somebody draws them."""
    with closing(DaskExecutor(both.address, lost=lost)) as there:
        bare, drawn = (list(on(there, f"files:{runs}", curves=wanted)) for wanted in (False, True))
    assert (any(o.triage.curves for o in bare), all(o.triage.curves for o in drawn)) == (False, True)


def test_a_dead_worker_changes_nothing(tmp_path: Path, runs: Path) -> None:
    """One of two workers is killed in the middle, and the reports are those of one process."""
    with cluster(tmp_path / "dask", 2) as made:
        with closing(DaskExecutor(made.address, lost=lost)) as there:
            outcomes = on(there, f"files:{runs}", work=slow)
            first = next(outcomes)
            made.workers[0].kill()
            found = said([first, *outcomes])
        assert found == alone(f"files:{runs}")


@pytest.mark.statistical
def test_a_cohort_that_kills_workers_is_a_failure_of_its_own(tmp_path: Path, runs: Path) -> None:
    """Its runs are failed outcomes; innocent neighbours, which died with it, are judged all the same."""
    with cluster(tmp_path / "dask", 12) as made, closing(DaskExecutor(made.address, lost=lost, patience=20)) as there:
        failed = {o.report.run.id[0] for o in on(there, f"files:{runs}", work=deadly) if o.failure is not None}
    assert failed == {"2"}


def test_a_lost_scheduler_loses_nothing_that_is_done(tmp_path: Path, runs: Path) -> None:
    """What was judged before stays; every other run is an outcome that says what happened."""
    with cluster(tmp_path / "dask", 1) as made, closing(DaskExecutor(made.address, lost=lost)) as there:
        outcomes = on(there, f"files:{runs}", work=slow)
        first = next(outcomes)
        made.scheduler.kill()
        rest = list(outcomes)
    whys = {outcome.failure for outcome in rest} - {None}
    assert (first.failure, len(rest), whys) == (None, 3 * COHORTS - 1, {"not tried: the Dask scheduler went away"})


def test_a_cluster_without_workers_is_given_up(tmp_path: Path, runs: Path) -> None:
    """Where no worker comes, each run says so after a while."""
    with cluster(tmp_path / "dask", 0) as made, closing(DaskExecutor(made.address, lost=lost, patience=3)) as there:
        whys = {outcome.failure for outcome in on(there, f"files:{runs}")}
    assert whys == {"not tried: the cluster had no worker for 3 s"}


def test_another_version_on_a_worker_is_said(runs: Path) -> None:
    """A worker that came later and has another runtriage refuses what it is sent."""
    with closing(open_source(f"files:{runs}")) as source:
        (infos, *_) = group(list(source.list_runs()))
    job = CohortJob(sweep="s", address=f"files:{runs}", params=Params(), version="0.0.9")
    assert {o.failure for o in do(job.of(infos))} == {"the worker has runtriage 0.1.0, the sweep 0.0.9"}


def test_a_source_that_a_worker_cannot_open_is_an_outcome(both: Cluster, runs: Path) -> None:
    """A folder that is not there on the worker costs the runs and nothing else."""
    with closing(DaskExecutor(both.address, lost=lost)) as there, closing(open_source(f"files:{runs}")) as source:
        groups = group(list(source.list_runs()))
        job = CohortJob(sweep="none", address="files:/nowhere", params=Params())
        outcomes = list(sweep_elsewhere(map(job.of, groups), groups, executor=there, do=do))
    assert (len(outcomes), all(outcome.failure for outcome in outcomes)) == (3 * COHORTS, True)


def test_a_worker_of_another_environment_does_not_read_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ``mlflow:`` means another server to the worker, it reads nothing there."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    job = CohortJob(sweep="other", address="mlflow:exp", params=Params())
    (outcome,) = do(job.of([RunInfo(source="mlflow://127.0.0.1:5000/exp", id="a")]))
    assert "leads to another server" in (outcome.failure or "")


@pytest.mark.parametrize(
    "address", ["mlflow://me:secret@h:1/exp", "mlflow-sql:postgresql://me:secret@h/db#exp", "wandb://k:secret@team/p"]
)
def test_credentials_are_not_sent(address: str) -> None:
    """An address with a password is refused before anything is done, without showing it."""
    with pytest.raises(UsageError) as caught:
        portable(address)
    assert ("secret" in str(caught.value), "not sent to workers" in str(caught.value)) == (False, True)


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("files:runs", "files:{cwd}/runs"),
        ("mlflow-sql:sqlite:///m.db#exp", "mlflow-sql:sqlite:///{cwd}/m.db#exp"),
        ("mlflow-sql:sqlite:////m.db#exp", "mlflow-sql:sqlite:////m.db#exp"),
        ("mlflow:exp", "mlflow:exp"),
    ],
)
def test_paths_are_sent_whole(typed: str, sent: str) -> None:
    """What is relative to this process's folder is not so in a worker."""
    assert portable(typed) == sent.format(cwd=Path.cwd())


WRONG = ("tcp://", "http://127.0.0.1:1", "tcp://me:secret@h:1", "inproc://a", "/nowhere", "/dev/zero", "tcp://a\x1b[1m:1")


@pytest.mark.parametrize("where", WRONG)
def test_what_is_no_address_is_said(where: str) -> None:
    """A wrong address is a usage error without a password in it."""
    with pytest.raises(UsageError) as caught:
        scheduler_address(where)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"address": 3}', '{"address": "inproc://a"}', "[" * 100_000])
def test_a_file_that_is_no_scheduler_file_is_said(content: str, tmp_path: Path) -> None:
    """Whatever lies there, it is a usage error."""
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(UsageError):
        scheduler_address(str(tmp_path / "s.json"))


STRANGERS = {"http": b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20, "noise": b"\xff" * 4096}


@pytest.mark.parametrize("answer", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_on_the_port_is_not_a_scheduler(answer: bytes) -> None:
    """A server that speaks something else is a clear error."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(ClusterError, match="no Dask scheduler answers"):
            DaskExecutor(f"tcp://127.0.0.1:{server.getsockname()[1]}")

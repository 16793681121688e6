"""What the MLflow source says and does when its server goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from mlflow_server.faults import Answer, FaultServer

from runtriage.errors import (
    AccessRefusedError,
    MarkWriteError,
    RunNotFoundError,
    RunReadError,
    RuntriageError,
    SourceError,
    SourceUnreachableError,
)
from runtriage.model.history import RunInfo
from runtriage.model.marks import WritePlan
from runtriage.trackers.mlflow.access import access_to
from runtriage.trackers.mlflow.client import ApiError, MlflowClient
from runtriage.trackers.mlflow.source import MlflowSource
from runtriage.trackers.pace import AdaptivePace

pytestmark = pytest.mark.integration
SECRET = "hunter2-secret"
EXPERIMENT = Answer(body={"experiment": {"experiment_id": "7", "artifact_location": "mlflow-artifacts:/7"}})
ROOT = "mlflow-artifacts:/7/r/artifacts"
INFO_BODY = {"run_id": "r", "experiment_id": "7", "status": "FINISHED", "artifact_uri": ROOT}
METRICS = {"metrics": [{"key": "loss", "value": 1.0, "timestamp": 5, "step": 0}]}
ONE = Answer(body={"run": {"info": INFO_BODY, "data": METRICS}})
POINTS = Answer(body=METRICS)
HALF = b'{"metrics": [{"va'
DENIED = Answer(status=403, body={"error_code": "PERMISSION_DENIED", "message": "no"})
INFO = RunInfo(source="mlflow:", id="r")

Open = Callable[..., MlflowSource]


@pytest.fixture
def open_at(faults: FaultServer) -> Iterator[Open]:
    """Return a way to open the scripted server with a secret in the address and no patience."""
    faults.script("experiments/get", EXPERIMENT)
    faults.script("runs/get", ONE)
    faults.script("metrics/get-history", POINTS)
    faults.script("artifacts/list", Answer())
    opened: list[MlflowSource] = []

    def make(*, host: str = faults.host, retries: int = 2, timeout: float = 5.0) -> MlflowSource:
        access = access_to(f"mlflow://me:{SECRET}@{host}/7", {})
        pace = AdaptivePace(host, patience=3.0, pause=0.05)
        client = MlflowClient(access, timeout=(timeout, timeout), retries=retries, backoff=0.01, pace=pace)
        opened.append(MlflowSource(access, client=client))
        return opened[-1]

    yield make
    for source in opened:
        source.close()


def listed(source: MlflowSource) -> list[RunInfo]:
    return list(source.list_runs())


def error_of(call: Callable[[], Any]) -> RuntriageError:
    with pytest.raises(RuntriageError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_a_typed_error_at_once(faults: FaultServer, open_at: Open, status: int) -> None:
    """401 and 403 are not retried and name the status."""
    faults.script("runs/search", Answer(status=status))
    error = error_of(lambda: listed(open_at()))
    assert isinstance(error, AccessRefusedError)
    assert (f"({status})" in error.message, faults.count("runs/search")) == (True, 1)


def test_read_only_rights_still_read(faults: FaultServer, open_at: Open) -> None:
    """Where writing is refused, the typed error comes from apply, and reading goes on."""
    faults.script("runs/log-batch", DENIED)
    source = open_at()
    with pytest.raises(AccessRefusedError):
        source.apply(INFO, WritePlan(set_tags={"runtriage.status": "broken"}))
    assert len(source.read(INFO).tracks["loss"].step) == 1


def test_refused_uploads_cost_only_the_file(faults: FaultServer, open_at: Open) -> None:
    """Where a proxy lets tags through and no files, tags are written, and the error is about the panel."""
    faults.script("panel.svg", DENIED)
    faults.script("runs/log-batch", Answer())
    with pytest.raises(MarkWriteError, match="the panel is not stored"):
        open_at().apply(INFO, WritePlan(set_tags={"runtriage.status": "x"}, put_files={"runtriage/panel.svg": b""}))
    assert faults.count("log-batch") == 1


def test_read_only_rights_are_refused_with_files_too(faults: FaultServer, open_at: Open) -> None:
    """Who may write nothing gets the typed error, whether or not the plan holds files."""
    faults.script("panel.svg", DENIED)
    faults.script("runs/log-batch", DENIED)
    with pytest.raises(AccessRefusedError):
        open_at().apply(INFO, WritePlan(set_tags={"runtriage.status": "x"}, put_files={"runtriage/panel.svg": b""}))


def test_read_only_experiment_is_refused(faults: FaultServer, open_at: Open) -> None:
    """The view and the digest raise the typed error too."""
    faults.script("set-experiment-tag", DENIED)
    with pytest.raises(AccessRefusedError):
        open_at().apply_project(WritePlan(set_note="digest"))


def test_a_failing_upload_costs_only_the_file(faults: FaultServer, open_at: Open) -> None:
    """Where the artifact store fails, tags are written all the same, and then the error is raised."""
    faults.script("panel.svg", Answer(status=500))
    faults.script("runs/log-batch", Answer())
    with pytest.raises(MarkWriteError, match="500"):
        open_at().apply(INFO, WritePlan(set_tags={"runtriage.status": "x"}, put_files={"runtriage/panel.svg": b""}))
    assert faults.count("log-batch") == 1


def test_too_many_requests_waits_as_long_as_asked(faults: FaultServer, open_at: Open) -> None:
    """429 with Retry-After is tried again after that time, not before."""
    faults.script("metrics/get-history", Answer(status=429, headers={"Retry-After": "1"}), POINTS)
    assert len(open_at().read(INFO).tracks["loss"].step) == 1
    first, second = (seen.at for seen in faults.seen if "get-history" in seen.path)
    assert 0.9 < second - first < 4


def test_too_many_requests_for_ever_is_bounded(faults: FaultServer, open_at: Open) -> None:
    """A server that never stops saying 429 counts as unreachable once the patience is at its end; it is told how so."""
    faults.script("metrics/get-history", Answer(status=429))
    error = error_of(lambda: open_at().read(INFO))
    assert isinstance(error, SourceUnreachableError)
    tried = faults.count("get-history")
    assert (f"said so {tried} times (429)" in error.message, 2 <= tried < 20) == (True, True)


@pytest.mark.parametrize(
    "bad",
    [Answer(status=500), Answer(status=503), Answer(body=HALF), Answer(body=POINTS.body, cut=20), Answer(reset=True)],
    ids=["500", "503", "half JSON", "body broken off", "connection reset"],
)
def test_a_passing_fault_is_not_noticed(faults: FaultServer, open_at: Open, bad: Answer) -> None:
    """One bad answer is asked for again."""
    faults.script("metrics/get-history", bad, POINTS)
    assert len(open_at().read(INFO).tracks["loss"].step) == 1


@pytest.mark.parametrize("bad", [Answer(body=HALF), Answer(body=POINTS.body, cut=20)])
def test_a_lasting_cut_is_a_typed_error(faults: FaultServer, open_at: Open, bad: Answer) -> None:
    """JSON that is always cut short costs the run, not the sweep."""
    faults.script("metrics/get-history", bad)
    with pytest.raises(RunReadError, match="cut short or damaged"):
        open_at().read(INFO)


@pytest.mark.parametrize("shape", [b"[]", b'{"metrics": 3}', b'{"metrics": [{"value": "abc"}]}', b"null", b"\xff\xfe"])
def test_json_of_another_shape_is_a_typed_error(faults: FaultServer, open_at: Open, shape: bytes) -> None:
    """An answer that is not what MLflow sends costs the run, not the sweep."""
    faults.script("metrics/get-history", Answer(body=shape))
    with pytest.raises(RunReadError):
        open_at().read(INFO)


def test_a_lasting_500_on_one_run_costs_that_run(faults: FaultServer, open_at: Open) -> None:
    """A run on which the server fails is a RunReadError after a stated number of tries."""
    faults.script("runs/get", Answer(status=500, body={"error_code": "INTERNAL_ERROR", "message": "boom"}))
    with pytest.raises(RunReadError, match="500 INTERNAL_ERROR: boom"):
        open_at().read(INFO)
    assert faults.count("runs/get") == 3


def test_a_lasting_500_on_the_listing_is_a_source_error(faults: FaultServer, open_at: Open) -> None:
    """Without a listing there is no sweep."""
    faults.script("runs/search", Answer(status=500))
    with pytest.raises(SourceError, match="500"):
        listed(open_at())


def test_a_slow_server_is_given_up(faults: FaultServer, open_at: Open) -> None:
    """No answer within the time, for each try, is a typed error and takes no longer than that."""
    faults.script("runs/search", Answer(delay=3))
    began = time.monotonic()
    with pytest.raises(SourceUnreachableError, match=r"did not answer in time \(tried 2 times\)"):
        listed(open_at(retries=1, timeout=0.4))
    assert time.monotonic() - began < 2.5


def test_a_server_that_is_down_is_unreachable(open_at: Open) -> None:
    """Nobody listening is a typed error that names the place."""
    error = error_of(lambda: listed(open_at(host="127.0.0.1:1")))
    assert isinstance(error, SourceUnreachableError)
    assert error.where == "http://127.0.0.1:1"


def test_a_login_page_is_recognised(faults: FaultServer, open_at: Open) -> None:
    """HTML instead of JSON is not retried and hints at what it may be."""
    page = Answer(body=f"<html>{SECRET}".encode(), headers={"Content-Type": "text/html"})
    faults.script("runs/search", page)
    error = error_of(lambda: listed(open_at()))
    assert ("not an answer of MLflow" in error.message, faults.count("runs/search")) == (True, 1)


def test_a_redirect_is_not_followed(faults: FaultServer, open_at: Open) -> None:
    """Credentials are not carried to another place."""
    faults.script("runs/search", Answer(status=302, headers={"Location": f"http://{faults.host}/elsewhere"}))
    error = error_of(lambda: listed(open_at()))
    assert ("redirect" in error.message, faults.count("elsewhere")) == (True, 0)


def test_a_missing_run_is_not_found(faults: FaultServer, open_at: Open) -> None:
    """The server's own code for what does not exist becomes RunNotFoundError."""
    faults.script("runs/get", Answer(status=404, body={"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "x"}))
    with pytest.raises(RunNotFoundError):
        open_at().read(INFO)


def test_a_run_emptied_while_it_is_read_is_not_found(faults: FaultServer, open_at: Open) -> None:
    """A listed metric without points means that the run went meanwhile: the server answers that with an empty list."""
    gone = Answer(status=404, body={"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "x"})
    faults.script("runs/get", ONE, gone)
    faults.script("metrics/get-history", Answer(body={}))
    with pytest.raises(RunNotFoundError):
        open_at().read(INFO)


def test_the_servers_words_cannot_break_the_line(faults: FaultServer, open_at: Open) -> None:
    """Control characters and length of a server's message are tamed."""
    said = "a\n\x1b[31mb\u202e" + "x" * 5000
    faults.script("runs/search", Answer(status=400, body={"error_code": "BAD", "message": said}))
    error = error_of(lambda: listed(open_at()))
    assert (str(error).isprintable(), len(str(error)) < 500) == (True, True)


@pytest.mark.parametrize(
    "bad",
    [
        Answer(status=401),
        Answer(status=403),
        Answer(status=500, body={"error_code": "X", "message": "no"}),
        Answer(body=b"{"),
        Answer(reset=True),
        Answer(status=302, headers={"Location": "/login"}),
    ],
)
def test_no_error_shows_credentials(faults: FaultServer, open_at: Open, bad: Answer) -> None:
    """Whatever goes wrong, neither the error nor the address shows the password."""
    faults.script("runs/search", bad)
    source = open_at()
    error = error_of(lambda: listed(source))
    shown = [str(error), repr(error), repr(error.__cause__), source.address, repr(source._access)]
    assert not [text for text in shown if SECRET in text]


def test_credentials_of_the_address_are_sent(faults: FaultServer, open_at: Open) -> None:
    """User and password of the address go as Basic, and win over a token."""
    faults.script("runs/search", Answer())
    listed(open_at())
    wanted = requests.Request("GET", "http://x", auth=("me", SECRET)).prepare().headers["Authorization"]
    assert faults.seen[-1].headers["Authorization"] == wanted


def test_a_token_is_sent_as_bearer(faults: FaultServer) -> None:
    """MLFLOW_TRACKING_TOKEN goes as Bearer, whatever ``~/.netrc`` says."""
    faults.script("experiments/get", EXPERIMENT)
    faults.script("runs/search", Answer())
    source = MlflowSource(access_to(f"mlflow://{faults.host}/7", {"MLFLOW_TRACKING_TOKEN": "abc"}))
    listed(source)
    source.close()
    assert faults.seen[-1].headers["Authorization"] == "Bearer abc"


def test_each_thread_has_its_own_session(open_at: Open) -> None:
    """Sessions are not shared between threads, and one thread keeps its own."""
    client = open_at()._client
    others: list[requests.Session] = []
    threads = [threading.Thread(target=lambda: others.append(client._session())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mine = client._session()
    assert mine is client._session()
    assert len({id(session) for session in (mine, *others)}) == 4


def test_an_api_error_keeps_its_code(faults: FaultServer, open_at: Open) -> None:
    """Callers can tell errors of the server apart."""
    faults.script("runs/search", Answer(status=400, body={"error_code": "INVALID_PARAMETER_VALUE", "message": "m"}))
    error = error_of(lambda: listed(open_at()))
    assert isinstance(error, ApiError)
    assert (error.status, error.code, error.is_missing) == (400, "INVALID_PARAMETER_VALUE", False)

"""A tracker over HTTP: what it answers, and what it refuses."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.records import encode
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.service import Server
from frameworks.mapreduce.tracker.tracker import Tracker
from mesos_py import Resources
from mesos_py.errors import PortInUse
from tests.kit.mapreduce_workers import JOB, FakeWorkers, job, succeed
from tests.kit.waiting import until


class Served:
    """blocked: attempts of reduces run until they are killed."""

    def __init__(self, tmp_path: Path) -> None:
        self.blocked = False
        self.cluster = FakeWorkers(
            {"a1": Resources.of(cpus=4, mem=4096)},
            lambda work: None if self.blocked and work.split is None else succeed(work),
        )
        self.state = str(tmp_path / "state")

    def __enter__(self) -> Served:
        self.cluster.__enter__()
        self.tracker = Tracker(TrackerOptions(master=self.cluster.address, state=self.state))
        self.tracker.start()
        self.server = Server(self.tracker)
        self.port = self.server.start("127.0.0.1", 0)
        assert self.tracker.wait_active(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()
        self.server.close()
        self.tracker.stop(end=True)
        self.cluster.__exit__(None, None, None)

    def raw(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
        status, data = self.raw(method, path, body)
        return status, json.loads(data)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as served:
        yield served


def test_a_job_over_http_from_its_submission_to_its_history(served, tmp_path):
    spec = encode(job(tmp_path, maps=3))
    assert served.ask("POST", "/v1/jobs", spec) == (201, {"job_id": JOB})
    assert served.ask("POST", "/v1/jobs", spec) == (201, {"job_id": JOB})
    version, state = "", ""
    while state != "succeeded":
        path = f"/v1/jobs/{JOB}?wait_s=30&version={version}"
        status, found = served.ask("GET", path)
        assert status == 200
        assert found["version"] != version
        version, state = found["version"], found["view"]["state"]
    until(lambda: served.tracker.is_idle)
    assert [each["job_id"] for each in served.ask("GET", "/v1/jobs")[1]["jobs"]] == [JOB]
    assert served.ask("GET", "/v1/jobs?ended=0")[1] == {"jobs": []}
    status, found = served.ask("GET", f"/v1/jobs/{JOB}/tasks?kind=map&since=1&limit=1")
    assert [(each["kind"], each["number"]) for each in found["tasks"]] == [("map", 1)]
    assert found["more"] is True
    assert served.ask("GET", f"/v1/jobs/{JOB}/tasks")[1]["more"] is False
    # Nothing changes any more: the answer comes when the time is over.
    found = served.ask("GET", f"/v1/jobs/{JOB}")[1]
    again = served.ask("GET", f"/v1/jobs/{JOB}?wait_s=0.01&version={found['version']}")[1]
    assert again == found


def test_a_job_is_killed_over_http(served, tmp_path):
    served.blocked = True
    served.ask("POST", "/v1/jobs", encode(job(tmp_path)))
    status, _ = served.ask("POST", f"/v1/jobs/{JOB}/kill", b'{"why": "it is late"}')
    assert status == 202
    until(lambda: served.tracker.view(JOB).state == "killed")
    assert served.ask("GET", f"/v1/jobs/{JOB}")[1]["view"]["why"] == "it is late"


def test_it_says_who_it_is(served):
    status, info = served.ask("GET", "/v1/tracker")
    assert status == 200
    assert info["active"] is True
    assert info["state"] == f"file://{served.state}"


def test_numbers_are_there_for_prometheus(served, tmp_path):
    served.ask("POST", "/v1/jobs", encode(job(tmp_path)))
    until(lambda: served.tracker.view(JOB).state == "succeeded")
    text = served.raw("GET", "/metrics")[1].decode()
    assert 'mesos_py_mapreduce_jobs_ended_total{outcome="succeeded"} 1.0' in text
    assert "mesos_py_mapreduce_active 1.0" in text
    assert "mesos_py_mapreduce_parts_committed_total 1.0" in text


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/v1/jobs", b"", 400, "job"),
        ("POST", "/v1/jobs", b"[]", 400, "Expected `object`"),
        ("POST", "/v1/jobs", b'{"job_id": 7}', 400, "$.job_id"),
        ("POST", "/v1/jobs", b"\xff\xfe", 400, "job"),
        ("POST", "/v1/jobs", b"[" * 100_000, 400, "job"),
        ("POST", f"/v1/jobs/{JOB}/kill", b'{"why": null}', 400, "$.why"),
        ("POST", f"/v1/jobs/{JOB}/kill", b"", 404, JOB),
        ("GET", f"/v1/jobs/{JOB}", b"", 404, JOB),
        ("GET", f"/v1/jobs/{JOB}/tasks", b"", 404, JOB),
        ("GET", "/v1/jobs/..%2F..%2Fetc", b"", 400, "is not the id of a job"),
        ("GET", "/v1/jobs?ended=many", b"", 400, "ended"),
        ("GET", "/v1/jobs?ended=-1", b"", 400, "ended"),
        ("GET", f"/v1/jobs?ended={'9' * 5000}", b"", 400, "ended"),
        ("GET", f"/v1/jobs/{JOB}?wait_s=nan", b"", 400, "wait_s"),
        ("GET", f"/v1/jobs/{JOB}?wait_s=1e9", b"", 400, "wait_s"),
        ("GET", f"/v1/jobs/{JOB}/tasks?kind=maps", b"", 400, "kind"),
        ("GET", f"/v1/jobs/{JOB}/tasks?state=gone", b"", 400, "state"),
        ("GET", f"/v1/jobs/{JOB}/tasks?limit=10001", b"", 400, "limit"),
        ("GET", "/v1/nothing", b"", 404, "/v1/nothing"),
        ("DELETE", f"/v1/jobs/{JOB}", b"", 405, "DELETE"),
    ],
)
def test_what_is_wrong_is_refused_with_where_and_why(served, method, path, body, status, words):
    found, answer = served.ask(method, path, body)
    assert found == status
    assert words in answer["message"]
    assert answer["code"]
    assert served.ask("GET", "/v1/jobs")[1] == {"jobs": []}


def test_refusals_of_jobs_name_what_is_at_fault(served, tmp_path):
    def refused(**changes: Any) -> tuple[int, str]:
        status, answer = served.ask("POST", "/v1/jobs", encode(job(tmp_path, **changes)))
        return status, answer["message"]

    status, message = refused(inputs=("/not/there",))
    assert (status, "/not/there" in message) == (404, True)
    status, message = refused(output=str(tmp_path))
    assert (status, "exists already" in message) == (409, True)
    status, message = refused(output="gopher://x/y")
    assert (status, "gopher" in message) == (400, True)


class Slow(Tracker):
    """Of jobs that take as long to be taken on as the test wants."""

    def __init__(self, options: TrackerOptions) -> None:
        super().__init__(options)
        self.go_on = threading.Event()

    def submit(self, spec: JobSpec) -> None:
        self.go_on.wait(30)


def test_while_jobs_are_taken_on_others_are_answered(tmp_path):
    state = str(tmp_path / "state")
    slow = Slow(TrackerOptions(master="127.0.0.1:1", state=state))
    server = Server(slow)
    port = server.start("127.0.0.1", 0)
    body = encode(job(tmp_path))
    waiting = [HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(60)]
    try:
        for connection in waiting:
            connection.request("POST", "/v1/jobs", body)
        asking = HTTPConnection("127.0.0.1", port, timeout=10)
        asking.request("GET", "/metrics")
        assert asking.getresponse().status == 200
        asking.close()
        slow.go_on.set()
        assert {connection.getresponse().status for connection in waiting} == {201}
    finally:
        slow.go_on.set()
        for connection in waiting:
            connection.close()
        server.close()


def test_a_port_that_is_taken_is_named(served):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        server = Server(served.tracker)
        with pytest.raises(PortInUse, match=str(port)):
            server.start("127.0.0.1", port)
        server.close()

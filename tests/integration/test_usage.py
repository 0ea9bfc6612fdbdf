"""What containers use, from the processes to `mesos-py top` and Prometheus."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mesos_py.states import TASK_FINISHED
from mesos_py.v1.agent_operator_pb2 import Call, Response
from mesos_py.v1.agent_operator_pb2_grpc import AgentOperatorServiceStub
from tests.kit.cluster import Cluster, Daemon
from tests.kit.framework import Framework, pid_of
from tests.kit.local import MESOS_PY, environment

# Holds 60 MB and a core, with a child that has left its session.
BUSY = [sys.executable, "-c", "x = bytearray(60_000_000)\nwhile True: sum(range(10_000))"]
IDLE = "setsid sleep 1000 & exec sleep 1000"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory: Path = tmp_path_factory.mktemp("usage")
    with Cluster(directory, metrics_port="0") as made:
        made.start_agents("a", "b")
        assert made.operator.agents()
        yield made


@pytest.fixture
def framework(cluster: Cluster) -> Iterator[Framework]:
    with Framework(cluster.address, "usage") as made:
        yield made
    # What is left of it is nothing that the next test should see.
    for name in ("a", "b"):
        cluster.wait_until(partial(is_empty, http_port(cluster, name)))


def is_empty(port: int) -> bool:
    """Whether the agent there has no container."""
    return Scrape(port).value("mesos_py_agent_containers") == 0


class Scrape:
    """What a daemon's /metrics says."""

    def __init__(self, port: int) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            families = text_string_to_metric_families(answer.read().decode())
            self.samples = [sample for family in families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        (found,) = [s.value for s in self.samples if (s.name, s.labels) == (name, labels)]
        return found


def top(cluster: Cluster, *args: str) -> list[dict[str, Any]]:
    """Of all agents: on a machine that stands still one of them may be too late."""
    while True:
        ended = cluster.cli("top", "--json", "--interval", "300ms", *args)
        assert ended.code == 0, ended
        if "did not answer within" not in ended.err:
            break
    found: list[dict[str, Any]] = json.loads(ended.out)
    return found


def settled(rows: list[dict[str, Any]]) -> bool:
    """Whether both tasks are what they are to be; they run before that."""
    by_host = {row["hostname"]: row for row in rows}
    return by_host["a"]["memory"] > 60e6 and by_host["b"]["pids"] == 2 and not by_host["b"]["cpu"]


def test_top_shows_the_busiest_first_with_what_it_uses(cluster, framework):
    busy = framework.run(BUSY, host="a", cpus=1, mem=100)
    idle = framework.run(IDLE, host="b")
    cluster.wait_until(lambda: settled(top(cluster)))
    first, second = top(cluster)
    assert (first["name"], second["name"]) == (busy.task_id.value, idle.task_id.value)
    assert (first["framework"], first["hostname"], first["cpus"]) == ("usage", "a", 1)
    # How much that is, others on the machine decide.
    assert first["cpu"] > 0
    assert 60e6 < first["memory"] < 200e6
    assert (second["cpu"], second["pids"]) == (0, 2)  # the one that left the session too
    assert 0 < second["memory"] < 50e6
    assert top(cluster, "--sort", "pids")[0]["name"] == idle.task_id.value
    (only,) = top(cluster, "--agent", "b")
    assert only["container_id"] == idle.container_status.container_id.value
    (whole,) = top(cluster, "--by", "framework")
    assert (whole["name"], whole["containers"], whole["pids"]) == ("usage", 2, 3)
    hosts = top(cluster, "--by", "agent", "--sort", "name")
    assert [(row["name"], row["containers"]) for row in hosts] == [("a", 1), ("b", 1)]
    table = cluster.cli("top", "--once", "--interval", "100ms").out.decode().splitlines()
    assert table[0].split()[:4] == ["CONTAINER", "FRAMEWORK", "HOST", "CPU"]
    assert len(table) == 3


def test_an_agent_that_does_not_answer_is_named_and_the_others_are_shown(cluster, framework):
    task_id = framework.run(IDLE, host="a").task_id.value
    stopped = cluster.agents[1]
    stopped.pause()
    try:
        while True:
            ended = cluster.cli("top", "--json", "--interval", "100ms")
            if "missing: agent a" not in ended.err:  # else the machine has stood still
                break
    finally:
        stopped.resume()
    assert [row["name"] for row in json.loads(ended.out)] == [task_id]
    assert "missing: agent b" in ended.err
    assert "did not answer within 2 s" in ended.err
    assert ended.code == 0


def test_prometheus_has_series_of_live_containers_only(cluster, framework, tmp_path):
    port, end = http_port(cluster, "a"), tmp_path / "end"
    status = framework.run(f"while ! test -f {end}; do sleep 0.02; done", host="a")
    labels = {
        "framework": framework.id,
        "executor": status.task_id.value,
        "task": status.task_id.value,
        "container": status.container_status.container_id.value,
    }
    found = Scrape(port)
    assert found.value("mesos_py_container_pids", **labels) >= 1
    assert found.value("mesos_py_container_memory_rss_bytes", **labels) > 0
    assert found.value("mesos_py_container_cpu_user_seconds_total", **labels) >= 0
    assert found.value("mesos_py_agent_containers") == 1
    assert found.value("mesos_py_agent_registered") == 1
    master = Scrape(metrics_port(cluster.master))
    assert master.value("mesos_py_master_agents_connected") == 2
    assert master.value("mesos_py_master_tasks_running") == 1
    assert master.value("mesos_py_master_task_states_total", state="TASK_RUNNING") >= 1
    end.touch()
    framework.status(status.task_id.value, TASK_FINISHED)
    cluster.wait_until(
        lambda: not [s for s in Scrape(port).samples if s.name.startswith("mesos_py_container_")]
    )


def http_port(cluster: Cluster, name: str) -> int:
    return cluster.agent_row(name).agent_info.http_port


def metrics_port(daemon: Daemon) -> int:
    (port,) = set(re.findall(r"metrics served ip=127.0.0.1 port=(\d+)", daemon.log))
    return int(port)


def test_the_agent_itself_answers_as_mesos_agents_do(cluster, framework):
    status = framework.run(IDLE, host="a")
    with grpc.insecure_channel(f"127.0.0.1:{cluster.agents[0].port}") as channel:
        agent = AgentOperatorServiceStub(channel)
        answer = agent.Execute(Call(type=Call.GET_CONTAINERS))
        assert answer.type == Response.GET_CONTAINERS
        (container,) = answer.get_containers.containers
        assert container.container_status.executor_pid == pid_of(status)
        assert container.framework_id.value == framework.id
        assert container.resource_statistics.timestamp == pytest.approx(time.time(), abs=60)
        health = agent.Execute(Call(type=Call.GET_HEALTH))
        assert health.get_health.healthy
        names = {m.name for m in agent.Execute(Call(type=Call.GET_METRICS)).get_metrics.metrics}
        assert "mesos_py_agent_containers" in names
        with pytest.raises(grpc.RpcError) as caught:
            agent.Execute(Call(type=77))  # type: ignore[arg-type]
        assert "type: '77': is not supported by this agent" in str(caught.value)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--framework", "nobody"), 1, "framework 'nobody'"),
        (("--agent", "nobody"), 1, "agent 'nobody'"),
        (("--interval", "1ms"), 2, "--interval"),
        (("--sort", "size"), 2, "'size' is not one of"),
    ],
)
def test_what_cannot_be_shown_is_said(cluster, args, code, words):
    ended = cluster.cli("top", "--once", *args)
    assert ended.code == code
    assert words in ended.err


def test_a_port_for_metrics_that_is_taken_ends_the_daemon_with_its_number(cluster):
    taken = str(cluster.master.port)
    ended = cluster.cli("master", "--port", "0", "--http-port", "0", "--metrics-port", taken)
    assert ended.code == 1
    assert f"metrics-port {taken} on 127.0.0.1: " in ended.err


def test_on_a_terminal_it_goes_on_until_it_is_interrupted(cluster, framework):
    task_id = framework.run(IDLE, host="a").task_id.value
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*MESOS_PY, "top", "--interval", "100ms"],
        env={**environment(cluster.address), "TERM": "xterm", "COLUMNS": "150", "LINES": "24"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    try:
        seen = b""
        # Shown, and shown again.
        while seen.count(task_id.encode()) < 3:
            assert select.select([ours], [], [], 60)[0], seen
            seen += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        while select.select([ours], [], [], 60)[0]:
            try:
                os.read(ours, 65536)
            except OSError:
                break  # it has gone
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
    assert b"1 containers" in seen

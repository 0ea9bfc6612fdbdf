"""pymesos, a framework library written for Apache Mesos, unmodified, on a cluster of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.kit.cluster import Cluster
from tests.kit.pymesos_programs import (
    EXECUTOR,
    Operator,
    Scheduler,
    agent_of,
    master_of,
    need_pymesos,
    serving,
)


@pytest.fixture
def cluster(tmp_path: Path, lacking: Callable[[str], NoReturn]) -> Iterator[Cluster]:
    need_pymesos(lacking)
    with serving(tmp_path / "cluster") as made:
        yield made


def test_command_tasks(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_agent("a")
    with Scheduler(tmp_path / "p", master_of(cluster)) as scheduler:
        framework_id = scheduler.wait("registered")
        scheduler.launch("good", "test -d $MESOS_SANDBOX")
        scheduler.launch("bad", "exit 3")
        scheduler.launch("long", "exec sleep 1000")
        scheduler.wait("TASK_FINISHED", "good")
        scheduler.wait("TASK_FAILED", "bad")
        scheduler.wait("TASK_RUNNING", "long")
        scheduler.tell({"kill": "long"})
        scheduler.wait("TASK_KILLED", "long")
        # It acknowledges by itself.
        cluster.wait_for_history(framework_id, 3)
        scheduler.tell({"stop": None})
        assert scheduler.process.wait(60) == 0
    cluster.wait_until(lambda: not cluster.operator.frameworks().frameworks)


def test_a_group_of_tasks(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_agent("a", "cpus:4;mem:4096;disk:100")
    with Scheduler(tmp_path / "p", master_of(cluster)) as scheduler:
        scheduler.wait("registered")
        scheduler.tell({"group_launch": [["long", "exec sleep 1000"], ["bad", "sleep 1; exit 3"]]})
        scheduler.wait("TASK_RUNNING", "long")
        scheduler.wait("TASK_FAILED", "bad")
        scheduler.wait("TASK_KILLED", "long")
        scheduler.tell({"stop": None})
        assert scheduler.process.wait(60) == 0


def test_a_scheduler_that_was_killed_comes_back(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_agent("a")
    with Scheduler(tmp_path / "p", master_of(cluster)) as first:
        framework_id = first.wait("registered")
        first.launch("long", "exec sleep 1000")
        first.wait("TASK_RUNNING", "long")
        first.kill()
    with Scheduler(tmp_path / "p", master_of(cluster), framework_id) as second:
        assert second.wait("reregistered") == framework_id
        second.tell({"reconcile": None})
        second.wait("TASK_RUNNING", "long")
        second.launch("short", "true")
        second.wait("TASK_FINISHED", "short")
        second.tell({"kill": "long"})
        second.wait("TASK_KILLED", "long")
        assert second.said("TASK_LOST") == []
        assert second.leave() == 0


def test_its_executor_lives_through_a_restart_of_the_agent(
    cluster: Cluster, tmp_path: Path
) -> None:
    agent = cluster.start_agent("a", tasks_on_exit="keep", executor_reregistration_timeout="60s")
    with Scheduler(tmp_path / "p", master_of(cluster), executor=EXECUTOR) as scheduler:
        scheduler.wait("registered")
        scheduler.launch("a", "hold")
        scheduler.wait("TASK_RUNNING", "a")
        scheduler.launch("b", "finish")
        scheduler.wait("TASK_FINISHED", "b")
        scheduler.tell({"message": "hello"})
        scheduler.wait("message", "HELLO")
        agent.kill()
        agent.start()
        output = next(agent.work_dir.rglob("runs/*/stdout"))
        cluster.wait_until(lambda: "\nreregistered\n" in output.read_text())
        scheduler.tell({"message": "again"})
        scheduler.wait("message", "AGAIN")
        scheduler.launch("c", "finish")
        scheduler.wait("TASK_FINISHED", "c")
        scheduler.tell({"kill": "a"})
        scheduler.wait("TASK_KILLED", "a")
        assert scheduler.said("TASK_LOST") == []
        scheduler.tell({"stop": None})
        assert scheduler.process.wait(60) == 0
    # The executor ends itself when it is told.
    cluster.wait_until(lambda: "\nshutdown\n" in output.read_text())
    cluster.wait_until(lambda: not cluster.used())


def test_its_operator_client(cluster: Cluster, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(Operator(tmp_path / "p", "master", master_of(cluster)))
        # Before that, what happens is part of the state that it begins with.
        master.wait("subscribed")
        scheduler = stack.enter_context(Scheduler(tmp_path / "p", master_of(cluster)))
        framework_id = scheduler.wait("registered")
        master.wait("frameworkAdded", "pymesos")
        cluster.start_agent("a")
        master.wait("agentAdded", "a")
        scheduler.launch("long", "exec sleep 1000")
        master.wait("taskAdded", "long")
        master.wait("TASK_RUNNING", "long")
        assert master.ask("getHealth")["get_health"] == {"healthy": True}
        [task] = master.ask("getTasks")["get_tasks"]["tasks"]
        assert task["framework_id"] == {"value": framework_id}
        [agent] = master.ask("getAgents")["get_agents"]["agents"]
        assert agent["agent_info"]["hostname"] == "a"
        state = master.ask("getState")["get_state"]
        assert len(state["get_frameworks"]["frameworks"]) == 1
        assert master.ask("getMetrics", 10**9)["get_metrics"]["metrics"]
        with Operator(tmp_path / "p", "agent", agent_of(cluster, "a")) as client:
            [container] = client.ask("getContainers")["get_containers"]["containers"]
            assert container["framework_id"] == {"value": framework_id}
            assert client.ask("getVersion")["get_version"]["version_info"]["version"] == "1.11.0"
            assert client.leave() == 0
        scheduler.tell({"stop": None})
        master.wait("frameworkRemoved", "pymesos")
        assert master.leave() == 0

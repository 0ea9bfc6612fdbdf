"""Real agents taken out of service: drained, deactivated, marked as gone, and back again."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.errors import Conflict
from mesos_py.states import (
    TASK_GONE_BY_OPERATOR,
    TASK_KILLED,
    TASK_KILLING,
    TASK_RUNNING,
    TASK_UNREACHABLE,
)
from mesos_py.tasks import custom_executor, executor_task
from mesos_py.v1.types_pb2 import DRAINED, TaskStatus
from tests.kit import echo_executor, faces
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of
from tests.kit.local import LIMIT_S, MESOS_PY, environment
from tests.kit.proxy import Proxy
from tests.kit.waiting import gone, until

# Does not listen, and says so.
STUBBORN = "trap '' TERM; touch {ready}; while ! [ -e {go} ]; do sleep 0.05; done"
BY_DRAIN = TaskStatus.REASON_AGENT_DRAINING


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    with Cluster(tmp_path, agent_reregister_timeout="300ms") as made:
        yield made


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address, reports_killing=True) as made:
        yield made


def run_stubborn(framework: Framework, directory: Path) -> TaskStatus:
    """A task that ignores SIGTERM until there is a file "go"."""
    ready = directory / "ready"
    running = framework.run(STUBBORN.format(ready=ready, go=directory / "go"))
    until(ready.exists)
    return running


def drained(cluster: Cluster, name: str = "a") -> bool:
    return cluster.agent_row(name).drain_info.state == DRAINED


# --- drain --------------------------------------------------------------------------


def test_a_drain_ends_a_task_that_does_not_want_to_and_the_agent_can_be_taken_back(
    cluster, framework, tmp_path
):
    cluster.start_agent("a")
    stubborn = run_stubborn(framework, tmp_path)
    task_id, agent_id = stubborn.task_id.value, cluster.agent_id("a")
    rest = framework.offer()
    cluster.operator.drain_agent(agent_id, max_grace_s=0.5)
    assert framework.wait_for("rescinded") == rest.id.value
    killed = framework.status(task_id, TASK_KILLED)
    assert killed.reason == BY_DRAIN
    assert gone(pid_of(stubborn))
    assert framework.states(task_id) == ["STARTING", "RUNNING", "KILLING", "KILLED"]
    cluster.wait_until(lambda: drained(cluster))
    row = cluster.agent_row("a")
    assert (row.state, row.active, row.deactivated) == ("connected", False, True)
    assert framework.live_offers() == []
    cluster.operator.reactivate_agent(agent_id)
    again = framework.run("exec sleep 600")
    assert again.agent_id.value == agent_id


def test_an_executor_is_ended_with_its_tasks(cluster, framework):
    cluster.start_agent("a")
    command, env = [sys.executable, echo_executor.__file__], faces.of_executors()
    executor = custom_executor("echo", command, cpus=0.5, mem=64, env=env)
    offer = framework.offer()
    task = executor_task("one", "one", offer, executor, data=b"run", cpus=1, mem=100)
    framework.driver.launch_tasks(offer, task, filters=0)
    framework.status("one", TASK_RUNNING)
    cluster.operator.drain_agent(cluster.agent_id("a"))
    assert framework.status("one", TASK_KILLED).reason == BY_DRAIN
    cluster.wait_until(lambda: drained(cluster))
    assert cluster.used() == {}


def test_an_agent_that_is_away_is_drained_when_it_is_back(cluster, framework):
    with Proxy(cluster.address) as way:
        cluster.start_agent("a", master=way.address, registration_backoff="50ms")
        running = framework.run("exec sleep 600")
        task_id, agent_id = running.task_id.value, cluster.agent_id("a")
        way.cut()
        framework.status(task_id, TASK_UNREACHABLE)
        cluster.operator.drain_agent(agent_id)
        row = cluster.agent_row("a")
        assert (row.state, row.deactivated) == ("unreachable", True)
        assert not gone(pid_of(running))
        way.restore()
        assert framework.status(task_id, TASK_KILLED).reason == BY_DRAIN
        cluster.wait_until(lambda: drained(cluster))
        assert gone(pid_of(running))


def test_an_agent_that_is_killed_in_the_middle_goes_on_draining(cluster, framework, tmp_path):
    agent = cluster.start_agent("a", tasks_on_exit="keep", registration_backoff="50ms")
    stubborn = run_stubborn(framework, tmp_path)
    task_id = stubborn.task_id.value
    # It is to die before that is over, also on a machine that stands still for a while.
    cluster.operator.drain_agent(cluster.agent_id("a"), max_grace_s=4)
    framework.status(task_id, TASK_KILLING)
    agent.kill()
    assert not gone(pid_of(stubborn))
    agent.start()
    assert framework.status(task_id, TASK_KILLED).reason == BY_DRAIN
    cluster.wait_until(lambda: drained(cluster))
    assert gone(pid_of(stubborn))
    agent.flags["tasks_on_exit"] = "end"


def test_a_master_that_is_killed_in_the_middle_goes_on_with_it(cluster, framework, tmp_path):
    cluster.start_agent("a", registration_backoff="50ms")
    stubborn = run_stubborn(framework, tmp_path)
    task_id = stubborn.task_id.value
    cluster.operator.drain_agent(cluster.agent_id("a"), max_grace_s=3)
    framework.status(task_id, TASK_KILLING)
    cluster.restart_master()
    row = cluster.agent_row("a")
    assert (row.deactivated, row.drain_info.config.max_grace_period.nanoseconds) == (True, 3e9)
    assert framework.status(task_id, TASK_KILLED).reason == BY_DRAIN
    cluster.wait_until(lambda: drained(cluster))
    cluster.restart_master()
    cluster.wait_for_agent("a", "connected")
    assert drained(cluster)
    cluster.operator.reactivate_agent(cluster.agent_id("a"))
    framework.run("exec sleep 600")


def test_the_command_waits_until_the_agent_is_drained(cluster, framework, tmp_path):
    cluster.start_agent("a")
    run_stubborn(framework, tmp_path)
    argv = [*MESOS_PY, "drain", "a", "--grace", "1h", "--wait"]
    env = environment(cluster.address)
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True) as command:
        assert command.stderr is not None
        said = ""
        while "waiting: 1 task left" not in said:
            line = command.stderr.readline()
            assert line, said
            said += line
        (tmp_path / "go").touch()
        command.communicate(timeout=LIMIT_S)
    assert command.returncode == 0
    assert drained(cluster)
    [line] = cluster.cli("agents").out.decode().splitlines()[1:]
    assert line.split()[2] == "drained"
    assert cluster.cli("reactivate", "a").code == 0
    assert cluster.agent_row("a").active


# --- deactivate ---------------------------------------------------------------------


def test_nothing_is_offered_of_a_deactivated_agent_also_when_it_comes_again(cluster, framework):
    with Proxy(cluster.address) as way:
        cluster.start_agent("a", master=way.address, registration_backoff="50ms")
        running = framework.run("exec sleep 600")
        rest = framework.offer()
        agent_id = cluster.agent_id("a")
        cluster.operator.deactivate_agent(agent_id)
        assert framework.wait_for("rescinded") == rest.id.value
        way.cut()
        cluster.wait_for_agent("a", "unreachable")
        way.restore()
        cluster.wait_for_agent("a", "connected")
        assert cluster.used() == {"a": "cpus:0.1;mem:16"}
        assert not gone(pid_of(running))
        cluster.operator.reactivate_agent(agent_id)
        with pytest.raises(Conflict, match="is not deactivated"):
            cluster.operator.reactivate_agent(agent_id)
        framework.offer()


# --- gone ---------------------------------------------------------------------------


def test_an_agent_that_is_marked_as_gone_ends_and_is_refused_until_it_is_a_new_one(
    cluster, framework
):
    agent = cluster.start_agent("a", tasks_on_exit="keep")
    running = framework.run("exec sleep 600")
    old_id = cluster.agent_id("a")
    cluster.operator.mark_agent_gone(old_id)
    ended = framework.status(running.task_id.value, TASK_GONE_BY_OPERATOR)
    assert ended.reason == TaskStatus.REASON_AGENT_REMOVED_BY_OPERATOR
    assert framework.wait_for("agent lost") == old_id
    assert agent.wait() == 1
    assert gone(pid_of(running))
    assert f"agent {old_id} was marked as gone by an operator" in agent.log
    assert "--recover cleanup" in agent.log
    # A supervisor starts it again: it is refused, by a later master as well, and says why.
    cluster.restart_master()
    assert cluster.agent_row("a").state == "gone"
    assert agent.launch().wait() == 1
    assert agent.log.count("the master has sent this agent away; its tasks end") == 2
    cleanup = {**agent.flags, "recover": "cleanup"}
    agent.flags, flags = cleanup, agent.flags
    assert agent.launch().wait() == 0
    agent.flags = {**flags, "tasks_on_exit": "end"}
    agent.start()
    assert framework.run("exec sleep 600").agent_id.value != old_id


def test_an_agent_that_is_marked_as_gone_while_it_is_away_ends_its_tasks_on_return(
    cluster, framework
):
    with Proxy(cluster.address) as way:
        agent = cluster.start_agent("a", master=way.address, registration_backoff="50ms")
        running = framework.run("exec sleep 600")
        task_id, agent_id = running.task_id.value, cluster.agent_id("a")
        way.cut()
        framework.status(task_id, TASK_UNREACHABLE)
        cluster.operator.mark_agent_gone(agent_id)
        framework.status(task_id, TASK_GONE_BY_OPERATOR)
        assert not gone(pid_of(running))
        way.restore()
        assert agent.wait() == 1
        until(lambda: gone(pid_of(running)))


def test_a_drained_agent_leaves_if_that_was_wanted(cluster, framework):
    agent = cluster.start_agent("a")
    running = framework.run("exec sleep 600")
    cluster.operator.drain_agent(cluster.agent_id("a"), mark_gone=True)
    ended = framework.status(running.task_id.value, TASK_GONE_BY_OPERATOR)
    assert (ended.reason, ended.source) == (BY_DRAIN, TaskStatus.SOURCE_EXECUTOR)
    assert gone(pid_of(running))
    assert agent.wait() == 1
    assert cluster.agent_row("a").state == "gone"

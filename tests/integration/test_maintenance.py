"""Planned absence of real machines: told to frameworks, begun and ended by an operator."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mesos_py.errors import Conflict, InvalidValue
from mesos_py.resources import Resources
from mesos_py.states import TASK_KILLED, TASK_LOST
from mesos_py.v1.maintenance_pb2 import InverseOfferStatus, Schedule
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of
from tests.kit.operators import machine, window
from tests.kit.waiting import gone

AT = 2_000_000_000


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    with Cluster(tmp_path, agent_reregister_timeout="300ms") as made:
        yield made


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as made:
        yield made


def answers(cluster: Cluster) -> list[str]:
    """What frameworks have answered about the first machine that is to go."""
    [first] = cluster.operator.maintenance_status().draining_machines
    return [InverseOfferStatus.Status.Name(each.status) for each in first.statuses]


def shown(cluster: Cluster) -> list[dict[str, Any]]:
    """The rows of `mesos-py maintenance status`."""
    rows: list[dict[str, Any]] = json.loads(cluster.cli("maintenance", "status", "--json").out)
    return rows


def test_a_framework_is_told_answers_and_leaves(cluster, framework):
    cluster.start_agents("a", "b", registration_backoff="50ms")
    running = framework.run("exec sleep 600", host="a")
    rest = framework.offer("a")
    schedule = Schedule(windows=[window("A", start_s=AT, duration_s=3600)])
    cluster.operator.update_maintenance_schedule(schedule)
    assert framework.wait_for("rescinded") == rest.id.value
    [asked] = framework.wait_for("inverse offers")
    assert asked.agent_id == running.agent_id
    assert Resources.from_proto("held", asked.resources) == Resources.parse("cpus:0.1;mem:16")
    assert asked.unavailability.start.nanoseconds == AT * 10**9
    assert framework.offer("a").unavailability == asked.unavailability
    assert not framework.offer("b").HasField("unavailability")
    assert answers(cluster) == ["UNKNOWN"]
    framework.driver.accept_inverse_offers(asked, filters=600)
    cluster.wait_until(lambda: answers(cluster) == ["ACCEPT"])
    with pytest.raises(Conflict, match="maintenance schedule"):
        cluster.operator.drain_agent(running.agent_id.value)
    framework.driver.kill_task(running.task_id.value)
    framework.status(running.task_id.value, TASK_KILLED)


def test_a_later_master_asks_again(cluster, framework):
    cluster.start_agent("a", registration_backoff="50ms")
    framework.run("exec sleep 600")
    cluster.operator.update_maintenance_schedule(Schedule(windows=[window("a", start_s=AT)]))
    [first] = framework.wait_for("inverse offers")
    cluster.restart_master()
    [second] = framework.wait_for("inverse offers", count=2)
    assert second.id != first.id
    framework.driver.decline_inverse_offers(second, filters=600)
    cluster.wait_until(lambda: answers(cluster) == ["DECLINE"])
    assert len(cluster.operator.maintenance_schedule().windows) == 1
    cluster.operator.update_maintenance_schedule(Schedule())
    # The offer of before is taken back, which the framework hears a moment later.
    cluster.wait_until(
        lambda: [o.HasField("unavailability") for o in framework.live_offers()] == [False]
    )


def test_a_machine_is_taken_away_and_back(cluster, framework):
    agent = cluster.start_agent("a", registration_backoff="50ms")
    cluster.start_agent("b")
    running = framework.run("exec sleep 600", host="a")
    with pytest.raises(InvalidValue, match="'a': is not in the schedule"):
        cluster.operator.start_maintenance([machine("a")])
    cluster.operator.update_maintenance_schedule(Schedule(windows=[window("a")]))
    assert cluster.cli("maintenance", "start", "a").code == 0
    lost = framework.status(running.task_id.value, TASK_LOST)
    assert lost.reason == TaskStatus.REASON_AGENT_REMOVED
    assert "down for maintenance" in lost.message
    assert agent.wait() == 1
    assert gone(pid_of(running))
    assert "sent away: its machine is down for maintenance" in agent.log
    # It is started again, as by a supervisor, and waits, also for a later master.
    agent.launch()
    cluster.wait_until(lambda: "machine a is down for maintenance" in agent.log)
    cluster.restart_master()
    [row] = shown(cluster)
    assert (row["machine"], row["state"]) == ("a", "down")
    assert agent.alive
    assert cluster.cli("maintenance", "stop", "a").code == 0
    agent.ready()
    assert shown(cluster) == []
    assert not framework.offer("a").HasField("unavailability")

"""A part of an agent is reserved for a role, by its operator or by a framework of the role, and
tasks run on that."""

from pathlib import Path

from mesos_py import launch, reserve, reserved_for, unreserve
from mesos_py.resources import Resources
from mesos_py.states import TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import command_task
from mesos_py.v1.types_pb2 import OPERATION_FINISHED
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework

RESOURCES = "cpus:1;mem:64;disk:10;cpus(ads):2;mem(ads):128;ports(ads):[21300-21309]"
MINE = Resources.parse_reserved("cpus(ads):1;mem(ads):64;ports(ads):[21300-21301]")


def test_a_task_on_reserved_amounts_runs_and_is_known_again_when_its_agent_is_back(
    tmp_path: Path,
) -> None:
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("a", RESOURCES, tasks_on_exit="keep")
        with Framework(cluster.address, roles=["ads"]) as framework:
            (offer,) = framework.wait_for("offers")
            given = Resources.from_proto("offer", offer.resources)
            assert given == Resources.parse_reserved(RESOURCES)
            command = 'test "$PORTS" = 21300,21301 && exec sleep 600'
            task = command_task("t1", "t1", offer, command, resources=MINE)
            framework.driver.launch_tasks(offer, task)
            framework.status("t1", TASK_RUNNING)
            agent.kill()
            cluster.wait_for_agent("a", "disconnected")
            agent.start()
            row = cluster.wait_for_agent("a", "connected")
            assert Resources.from_proto("total", row.total_resources) == given
            assert Resources.from_proto("used", row.allocated_resources) == MINE
            framework.driver.kill_task("t1", grace_s=0)
            framework.status("t1", TASK_KILLED)


def test_what_a_framework_reserves_outlives_agent_and_master_until_it_is_given_back(
    tmp_path: Path,
) -> None:
    plain = Resources.parse("cpus:3;mem:256;disk:10;ports:[21310-21319]")
    part = Resources.parse("cpus:1;mem:64;ports:[21310-21311]")
    mine = reserved_for(part, "ads", labels={"for": "t1"})

    def total() -> Resources:
        row = cluster.wait_for_agent("a", "connected")
        return Resources.from_proto("total", row.total_resources)

    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("a", str(plain), tasks_on_exit="keep")
        with Framework(cluster.address, roles=["ads"]) as framework:
            offer = framework.offer(has=plain)
            operation = reserve(part, "ads", labels={"for": "t1"}, operation_id="mine")
            task = command_task("t1", "t1", offer, "exec sleep 600", resources=mine)
            framework.driver.accept_offers(offer, [operation, launch(task)])
            assert framework.outcome("mine").state == OPERATION_FINISHED
            framework.status("t1", TASK_RUNNING)
            assert total() == plain - part + mine
            agent.kill()
            cluster.wait_for_agent("a", "disconnected")
            agent.start()
            assert total() == plain - part + mine
            cluster.restart_master()
            assert total() == plain - part + mine
            framework.wait_for("reregistered")
            framework.driver.kill_task("t1", grace_s=0)
            framework.status("t1", TASK_KILLED)
            back = framework.offer(has=mine)
            framework.driver.accept_offers(back, [unreserve(mine, operation_id="back")])
            assert framework.outcome("back").state == OPERATION_FINISHED
            assert total() == plain
            # What is on offer is taken back for an operator.
            other = reserved_for(part, "web", principal="olga")
            cluster.operator.reserve_resources(cluster.agent_id("a"), other)
            assert total() == plain - part + other
            cluster.operator.unreserve_resources(cluster.agent_id("a"), other)
            assert total() == plain

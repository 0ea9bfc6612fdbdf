"""An agent reserves a part of itself for a role, and its tasks run on that."""

from pathlib import Path

from mesos_py.resources import Resources
from mesos_py.states import TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import command_task
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

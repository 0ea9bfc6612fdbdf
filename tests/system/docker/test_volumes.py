"""A persistent volume in docker containers, and beside them."""

import pytest

from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, command
from tests.kit.docker_tasks import docker_task
from tests.kit.dockerd import NEEDS
from tests.kit.reserving import amount, by, create, reserve, volume

pytestmark = pytest.mark.needs(*NEEDS)

Event = agent_pb2.Event
ADS = by("ads")
OWN = Resources.of(cpus=1, mem=64)


def order(number: int, info: pb.Offer.Operation) -> Event:
    operation = pb.Operation(info=info, uuid=pb.UUID(value=number.to_bytes(16, "big")))
    operation.framework_id.value = FRAMEWORK
    applied = Event.ApplyOperation(operation=operation)
    return Event(type=Event.APPLY_OPERATION, apply_operation=applied)


async def test_each_container_has_it_where_it_says_and_so_has_a_plain_command(master, agent):
    disk = amount(ADS, disk=10)
    master.send(order(1, reserve(disk)), order(2, create(volume(ADS, 10))))
    kept = OWN + volume(ADS, 10, path="/kept")
    master.run(docker_task("write", "echo hello > /kept/file", resources=kept))
    await master.status("write", pb.TASK_FINISHED)
    assert (agent.work_dir / "volumes/roles/ads/v1/file").read_text() == "hello\n"
    seen = OWN + volume(ADS, 10, path="data", read_only=True)
    reads = "cd $MESOS_SANDBOX/data; cat file; touch new || echo read-only"
    master.run(docker_task("read", reads, resources=seen))
    await master.status("read", pb.TASK_FINISHED)
    assert agent.output("read") == "hello\nread-only\n"
    plain = command("plain", "cat data/file")
    plain.resources.extend(volume(ADS, 10).to_proto())
    master.run(plain)
    await master.status("plain", pb.TASK_FINISHED)
    assert agent.output("plain") == "hello\n"

"""What the agent has, as the messages of the operator API."""

from agent.core import listing
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor


def ids(tasks):
    return [each.task_id.value for each in tasks]


def test_tasks_by_what_is_to_be_said_of_them():
    world = AgentWorld()
    world.run(command("runs"), command("waits"), command("settled"), for_executor("queued"))
    for task_id in ("waits", "settled"):
        world.started(task_id, pid=7)
        world.ended(task_id)
    world.acknowledge_all("settled")
    found = listing.tasks(world.core.state)
    assert ids(found.launched_tasks) == ["runs"]
    assert ids(found.terminated_tasks) == ["waits"]
    assert ids(found.completed_tasks) == ["settled"]
    assert ids(found.queued_tasks) == ["queued"]
    assert not found.pending_tasks
    (settled,) = found.completed_tasks
    assert settled.status_update_state == pb.TASK_FINISHED
    assert settled.status_update_uuid == settled.statuses[-1].uuid
    (waits,) = found.terminated_tasks
    assert [each.state for each in waits.statuses] == [
        pb.TASK_STARTING,
        pb.TASK_RUNNING,
        pb.TASK_FINISHED,
    ]
    assert (waits.state, waits.user, waits.agent_id.value) == (pb.TASK_FINISHED, "root", "A1")
    assert waits.status_update_state == pb.TASK_STARTING  # what is in flight


def test_a_task_of_a_user_of_its_own():
    world = AgentWorld()
    world.run(command("t1", command=pb.CommandInfo(value="true", user="nobody")))
    (task,) = listing.tasks(world.core.state).launched_tasks
    assert task.user == "nobody"


def test_executors_those_of_commands_made_up():
    world = AgentWorld()
    labels = pb.Labels(labels=[pb.Label(key="a")])
    custom = executor_info(data=b"secret", name="mine")
    world.run(command("t1", "sleep 9", labels=labels), for_executor("a", custom), command("t2"))
    world.started("t2")
    world.ended("t2")
    found = listing.executors(world.core.state)
    of_command, mine = (each.executor_info for each in found.executors)
    assert (of_command.executor_id.value, of_command.source) == ("t1", "t1")
    assert of_command.framework_id.value == "F1"
    assert (of_command.command.value, of_command.labels) == ("sleep 9", labels)
    assert (mine.name, mine.data) == ("mine", b"")
    assert not mine.HasField("data")
    assert [each.executor_info.name for each in found.completed_executors] == ["t2"]


def test_what_a_command_is_told_in_confidence_is_not_shown():
    world = AgentWorld()
    variable = pb.Environment.Variable(name="PASSWORD", value="secret")
    told = pb.CommandInfo(
        value="true",
        user="root",
        environment=pb.Environment(variables=[variable]),
        uris=[pb.CommandInfo.URI(value="http://me:secret@h/x")],
    )
    world.run(command("t1", command=told))
    (shown,) = listing.executors(world.core.state).executors
    assert shown.executor_info.command == pb.CommandInfo(value="true", user="root")
    (task,) = world.core.state.tasks.values()
    assert task.info.command == told


def test_a_framework_is_completed_when_nothing_of_it_is_left():
    world = AgentWorld()
    world.run(command("t1"), command("t2"))
    world.started("t1")
    world.ended("t1")

    def shown():
        found = listing.frameworks(world.core.state)
        return len(found.frameworks), len(found.completed_frameworks)

    assert shown() == (1, 0)
    world.started("t2")
    world.ended("t2")
    assert shown() == (0, 1)


def test_the_agent_by_its_port_for_http():
    world = AgentWorld()
    assert listing.agent(world.core.state).agent_info == world.core.state.info
    world.core.state.info.port, world.core.state.info.http_port = 5061, 5051
    drain = agent_pb2.Event.Drain(config=pb.DrainConfig(mark_gone=True))
    world.master(agent_pb2.Event(type=agent_pb2.Event.DRAIN, drain=drain))
    found = listing.agent(world.core.state)
    assert found.agent_info.port == 5051
    assert found.drain_config.mark_gone
    assert world.core.state.info.port == 5061

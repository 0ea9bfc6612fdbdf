"""Scenes that several test files of the master's core begin with."""

from __future__ import annotations

from master.core.cluster import Options
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

PARTITION_AWARE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)
WHOLE = "cpus:4;mem:4096;ports:[31000-31005]"


class LaunchScene:
    """One agent, one framework with the agent's offer in its hands."""

    def __init__(self, resources=WHOLE, **info):
        self.world = World()
        self.agent = self.world.agent(resources=resources)
        self.framework = self.world.framework(**info)
        (self.offer,) = self.framework.offers()
        self.agent.take()

    def task(self, task_id="t1", text="cpus:1;mem:32"):
        return self.world.task(task_id, self.agent.id, text=text)

    def custom(self, task_id, executor_id="e1", text="cpus:1;mem:32", own="cpus:0.5;mem:64"):
        """A task for a custom executor."""
        task = self.world.custom_task(task_id, executor_id, text, own)
        task.agent_id.value = self.agent.id
        return task

    def launch(self, *tasks):
        """Launch, and what became of the tasks that were not: state and reason by id."""
        self.framework.launch(self.offer, *tasks)
        updates = self.framework.updates()
        assert all(not u.HasField("uuid") for u in updates)
        assert all(u.source == pb.TaskStatus.SOURCE_MASTER for u in updates)
        return {u.task_id.value: (u.state, u.reason, u.message) for u in updates}

    def ordered(self):
        """The ids of the tasks that the agent was ordered to run."""
        runs = self.agent.take(agent_pb2.Event.RUN_TASKS)
        return [info.task_id.value for run in runs for info in run.run_tasks.tasks]

    @property
    def used(self):
        return self.world.cluster.ledger.allocated(self.agent.id)

    @property
    def free(self):
        return self.world.cluster.ledger.free(self.agent.id)


class ReturningScene:
    """An agent, and a framework whose task t1 was launched there."""

    def __init__(self, aware=False):
        self.world = World()
        self.agent = self.world.agent()
        self.framework = self.world.framework(
            failover_timeout=1e6, capabilities=[PARTITION_AWARE] if aware else []
        )
        self.framework.start("t1")
        self.agent.take()
        self.framework.take()

    @property
    def record(self):
        return self.world.cluster.frameworks[self.framework.id]

    @property
    def used(self):
        return self.world.cluster.ledger.allocated(self.agent.id)

    def drops(self):
        return [reason for reason, _ in self.world.outbox.drops]

    def cut_off(self):
        """The agent is away until it is unreachable; what the framework heard is dropped."""
        self.agent.disconnect()
        self.world.advance(75)
        self.framework.take()

    def back(self, *tasks, executors=(), frameworks=None):
        """The agent registers again; what it is told after REGISTERED."""
        infos = [self.framework.info] if frameworks is None else frameworks
        events = self.agent.register(tasks=tasks, executors=executors, frameworks=infos)
        assert events[0].type == agent_pb2.Event.REGISTERED
        self.world.check()
        return events[1:]

    def task(self, state, task_id="t1", **fields):
        return self.agent.task(task_id, self.framework, state, **fields)

    def updates(self):
        return [(u.task_id.value, u.state, u.reason) for u in self.framework.updates()]


class TaskScene:
    """A task t1 that was launched on the only agent."""

    def __init__(self, **info):
        self.world = World()
        self.agent = self.world.agent()
        self.framework = self.world.framework(**{"failover_timeout": 1000.0, **info})
        self.framework.start("t1")
        self.agent.take()
        self.framework.take()

    @property
    def record(self):
        return self.world.cluster.frameworks[self.framework.id]

    @property
    def task(self):
        return self.record.tasks["t1"]

    @property
    def used(self):
        return self.world.cluster.ledger.allocated(self.agent.id)

    def report(self, state, task_id="t1", **fields):
        return self.agent.report(task_id, state, self.framework, **fields)

    def states(self):
        return [(u.task_id.value, u.state) for u in self.framework.updates()]

    def drops(self):
        return [reason for reason, _ in self.world.outbox.drops]

    def acknowledged(self):
        """The uuids that the agent was told are acknowledged."""
        return [e.acknowledge.uuid for e in self.agent.take(agent_pb2.Event.ACKNOWLEDGE)]


class LeaderScene:
    """A leader with agents, and the next one, which they have not found yet."""

    def __init__(self, count=10, **options):
        self.first = World(Options(durable=True, **options), epoch=1)
        self.agents = [self.first.agent(f"h{n}") for n in range(count)]
        self.world = self.first.successor()
        for agent in self.agents:
            agent.world = self.world

    @property
    def cluster(self):
        return self.world.cluster

    def back(self, *numbers, **fields):
        for number in numbers:
            self.agents[number].register(**fields)
        self.world.check()

    def lost(self):
        return self.cluster.counters["agents_unreachable"]

    def answering(self, numbers, seconds):
        """Time passes, and these answer their pings."""
        for _ in range(int(seconds / 15)):
            self.world.advance(15)
            for number in numbers:
                self.agents[number].pong()


def agent_record(agent_id="a1", resources="cpus:4", **fields):
    record = reg.Agent(**fields)
    record.info.id.value = agent_id
    record.info.hostname = "web1"
    record.info.resources.extend(Resources.parse(resources).to_proto())
    return record


def recovered(records, **options):
    world = World(Options(durable=True, **options), epoch=2)
    given = {
        key: value if isinstance(value, bytes) else value.SerializeToString()
        for key, value in records.items()
    }
    world.core.recover(given, world.clock.now())
    return world

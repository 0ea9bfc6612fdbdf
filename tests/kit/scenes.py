"""Scenes that several test files of the master's core begin with."""

from __future__ import annotations

from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

PARTITION_AWARE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)
WHOLE = "cpus:4;mem:4096;ports:[31000-31005]"


class LaunchScene:
    """One agent, one framework with the agent's offer in its hands."""

    def __init__(self, **info):
        self.world = World()
        self.agent = self.world.agent(resources=WHOLE)
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

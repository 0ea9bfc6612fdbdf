"""An agent with a task, which an operator takes out of service."""

from __future__ import annotations

from master.core.cluster import Options
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.operators import Operator


class Scene:
    """One agent with a task t1 that runs, in a master whose registry outlives it."""

    def __init__(self):
        self.world = World(Options(durable=True))
        self.operator = Operator(self.world)
        self.agent = self.world.agent("web1")
        self.framework = self.world.framework(failover_timeout=1e6)
        self.framework.start("t1")
        self.agent.report("t1", pb.TASK_RUNNING, self.framework)
        self.agent.take()
        self.framework.take()

    @property
    def row(self):
        return self.world.cluster.agents[self.agent.id]

    def record(self):
        """What a successor would read."""
        return reg.Agent.FromString(self.world.records[f"agent/{self.agent.id}"])

    def drain(self, **how):
        done = self.operator.drain(self.agent, **how)
        self.world.stored()
        assert len(done) == 1

    def cut_off(self):
        """The agent is away until it is unreachable."""
        self.agent.disconnect()
        self.world.advance(75)
        self.world.stored()

    def back(self, **what):
        """The agent registers, and the registry has it; what it is told."""
        events = self.agent.register(**what)
        self.world.stored()
        return events + self.agent.greeted()

    def end(self, task_id="t1", acknowledge=True):
        uuid = self.agent.report(task_id, pb.TASK_KILLED, self.framework)
        if acknowledge:
            self.framework.acknowledge(self.agent, task_id, uuid)
        self.world.advance(0)
        self.world.stored()

    def look(self):
        """What is due happens, and the registry has it."""
        self.world.advance(0)
        self.world.stored()

    def drained(self):
        return self.row.drain.state == pb.DRAINED

    def running(self):
        task = self.agent.task("t1", self.framework, pb.TASK_RUNNING)
        return {"tasks": [task], "frameworks": [self.framework.info]}

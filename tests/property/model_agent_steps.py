"""What happens to agents, as steps of a run."""

from __future__ import annotations

import random

from mesos_py.v1 import types_pb2 as pb
from tests.property.model_agent import AgentModel
from tests.property.model_net import Net
from tests.property.model_options import AMOUNTS, MAX_AGENTS
from tests.property.model_scheduler import SchedulerModel


class AgentSteps:
    """Part of `Run`, which has all of this."""

    net: Net
    agents: list[AgentModel]
    schedulers: list[SchedulerModel]
    liars: set[str]
    _agents_made: int

    def note(self, text: str, *args: object) -> None:
        """Write down what happens, for a story of it."""
        raise NotImplementedError

    def _join_agent(self, rng: random.Random) -> None:
        if len(self.agents) < MAX_AGENTS:
            self._agents_made += 1
            faulty = rng.random() < 0.2
            agent = AgentModel(self.net, self._agents_made, rng.choice(AMOUNTS), faulty)
            self.note("new %s faulty=%s", agent.name, faulty)
            self.agents.append(agent)
            agent.register()

    def _twin(self, rng: random.Random) -> None:
        """A second agent at the address of one that is away: that one counts as removed,
        and its tasks as lost for good, until it comes back all the same."""
        away = [a for a in self.agents if a.stream is None and a.id and not a.faulty]
        if not away or len(self.agents) > MAX_AGENTS:
            return
        old = rng.choice(away)
        self._agents_made += 1
        twin = AgentModel(self.net, self._agents_made, AMOUNTS[0], faulty=False)
        twin.info.hostname = old.info.hostname
        old.doubtful = twin.doubtful = True
        self.liars.add(old.id)
        self.note("new %s at the address of %s", twin.name, old.name)
        self.agents.append(twin)
        twin.register()

    def _agent(self, rng: random.Random) -> AgentModel:
        return rng.choice(self.agents)

    def _progress(self, rng: random.Random) -> None:
        agent = self._agent(rng)
        self.note("progress on %s", agent.name)
        agent.progress(rng)

    def _doom(self, rng: random.Random) -> None:
        agent = self._agent(rng)
        self.note("doomed end on %s", agent.name)
        agent.end_doomed()

    def _exit_executor(self, rng: random.Random) -> None:
        agent = self._agent(rng)
        self.note("executor exit on %s", agent.name)
        agent.exit_executor(rng)

    def _repeat(self, rng: random.Random) -> None:
        agent = self._agent(rng)
        if agent.updates:
            agent.repeat(rng.choice(list(agent.updates)))

    def _connect_agent(self, rng: random.Random) -> None:
        """Mostly of those that have lost their stream; now and then one more stream."""
        away = [each for each in self.agents if each.stream is None]
        agent = rng.choice(away or self.agents)
        if agent.stream is None or rng.random() < 0.1:
            self.note("%s registers again", agent.name)
            agent.register()

    def _crash_agent(self, rng: random.Random) -> None:
        agent = self._agent(rng)
        self.note("%s crashes", agent.name)
        agent.crash(rng)

    def _unregister(self, rng: random.Random) -> None:
        """A planned end: everything stops first."""
        agent = self._agent(rng)
        if agent.registered and not agent.faulty:
            self.note("%s unregisters", agent.name)
            agent.unregister()

    def _refuse_task(self, rng: random.Random) -> None:
        agent = self._agent(rng)
        agent.refuse_next = rng.choice((pb.TASK_DROPPED, pb.TASK_ERROR, pb.TASK_FAILED))

    def _agent_lies(self, rng: random.Random) -> None:
        liars = [agent for agent in self.agents if agent.faulty]
        if liars:
            agent = rng.choice(liars)
            known = [(s.id, task_id) for s in self.schedulers for task_id in [*s.tasks][-5:]]
            self.note("%s lies", agent.name)
            agent.lie(rng, known)

"""Agents, as far as offers and workers show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mesos_py.resources import Resources

# An agent of which nothing was seen for so long may be full, or gone: it is not counted on.
RECENT_S: Final = 60.0


@dataclass(slots=True)
class Forgetting:
    """A job whose files the worker is to remove, said again until it has answered."""

    tries: int = 0
    next_s: float = 0.0


@dataclass(slots=True)
class Worker:
    """An executor of ours.

    sure: it is known to run, or will with the launch that was ordered; not so after a
        restart, and when an attempt could not be started in it, until it is heard of: its room may
        have to be paid for once more.
    """

    worker_id: str
    agent_id: str
    sure: bool = True
    running: set[str] = field(default_factory=set)
    idle_since_s: float = 0.0
    heard_s: float = 0.0
    jobs: set[str] = field(default_factory=set)
    forgetting: dict[str, Forgetting] = field(default_factory=dict)

    def forget(self, job_id: str, at_s: float) -> None:
        self.forgetting[job_id] = Forgetting(next_s=at_s)


@dataclass(slots=True)
class Agent:
    """offered: what it had free when it was offered last.  seen_s: when that was."""

    agent_id: str
    hostname: str
    rack: str = ""
    offered: Resources | None = None
    seen_s: float = 0.0
    worker: Worker | None = None

    @property
    def names(self) -> tuple[str, str]:
        """By which places of inputs are named."""
        return self.hostname, self.agent_id


class Cluster:
    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.hosts_of_rack: dict[str, set[str]] = {}
        self.rack_of_host: dict[str, str] = {}
        self._numbers = 0

    def seen(
        self, agent_id: str, hostname: str, rack: str, offered: Resources, at_s: float
    ) -> Agent:
        agent = self.agent(agent_id, hostname)
        agent.hostname, agent.offered, agent.seen_s = hostname, offered, at_s
        if rack and agent.rack != rack:
            agent.rack = rack
            for name in agent.names:
                self.hosts_of_rack.get(self.rack_of_host.get(name, ""), set()).discard(name)
                self.hosts_of_rack.setdefault(rack, set()).add(name)
                self.rack_of_host[name] = rack
        return agent

    def agent(self, agent_id: str, hostname: str) -> Agent:
        found = self.agents.get(agent_id)
        if found is None:
            found = self.agents[agent_id] = Agent(agent_id, hostname)
        return found

    def hostname(self, agent_id: str) -> str:
        found = self.agents.get(agent_id)
        return agent_id if found is None else found.hostname

    def workers(self) -> Iterator[Worker]:
        for agent in self.agents.values():
            if agent.worker is not None:
                yield agent.worker

    def worker_count(self) -> int:
        return sum(1 for _ in self.workers())

    def worker_of(self, agent_id: str) -> Worker | None:
        agent = self.agents.get(agent_id)
        return None if agent is None else agent.worker

    def next_worker_id(self, prefix: str) -> str:
        return f"{prefix}-{self._numbers + 1}"

    def has_worker(self, agent_id: str, hostname: str, worker_id: str, at_s: float) -> Worker:
        """A worker runs there, or will.  One with another id is replaced: it is gone."""
        agent = self.agent(agent_id, hostname)
        number = worker_id.rpartition("-")[2]
        if number.isdigit():
            self._numbers = max(self._numbers, int(number))
        if agent.worker is None or agent.worker.worker_id != worker_id:
            agent.worker = Worker(worker_id, agent_id, idle_since_s=at_s, heard_s=at_s)
        return agent.worker

    def worker_gone(self, agent_id: str, worker_id: str) -> None:
        agent = self.agents.get(agent_id)
        if agent is not None and agent.worker is not None and agent.worker.worker_id == worker_id:
            agent.worker = None

    def drop(self, agent_id: str) -> None:
        agent = self.agents.pop(agent_id, None)
        if agent is not None:
            for name in agent.names:
                rack = self.rack_of_host.pop(name, "")
                self.hosts_of_rack.get(rack, set()).discard(name)

    def usable(self, now_s: float) -> list[str]:
        """Agents to be counted on: seen not long ago, or with a worker."""
        return [
            agent.agent_id
            for agent in self.agents.values()
            if agent.worker is not None or now_s - agent.seen_s <= RECENT_S
        ]

    def offered(self, now_s: float) -> set[Resources]:
        """What agents had free when they were offered, not long ago."""
        return {
            agent.offered
            for agent in self.agents.values()
            if agent.offered is not None and now_s - agent.seen_s <= RECENT_S
        }

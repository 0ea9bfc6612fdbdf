"""The interface of isolators: what keeps containers within what they were given.

An isolator is chosen by name (`mesos-py agent --isolation cgroups,disk`): one of ours,
or an entry point in the group `mesos_py.isolators` of any distribution.  The name must
lead to a callable that takes an `AgentFacts` and returns an `Isolator`.

All methods run in a worker thread: they may block, and must not touch the agent's
event loop.  For one container they are called one at a time, in the order of the
methods below; for different containers at the same time.  What `Isolator` itself does
is nothing, so that a class overrides only what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from mesos_py import plugins
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

GROUP: Final = "mesos_py.isolators"
BUILTINS: Final[Mapping[str, str]] = {
    "posix": "agent.isolation.posix:PosixIsolator",
    "cgroups": "agent.isolation.cgroups.isolator:CgroupIsolator",
    "rlimits": "agent.isolation.rlimits:RlimitsIsolator",
    "disk": "agent.isolation.disk.isolator:DiskIsolator",
    "network": "agent.isolation.network.isolator:NetworkIsolator",
}

# What a task may ask for only where an isolator provides it: `Isolator.provides`.
RLIMITS: Final = "rlimits"
NETWORKS: Final = "networks"


@dataclass(frozen=True)
class AgentFacts:
    """What an isolator may know of the agent that it works for.

    `agent_id` names this agent among all others of the cluster and of the machine:
    whatever an isolator makes carries it in full, in a path or a label, and only
    what carries it is the agent's own.
    """

    agent_id: str
    work_dir: str
    resources: Resources
    # The agent's flags by their fields' names; empty in other programs' tests.
    flags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Container:
    """A container that is to be started."""

    container_id: str
    framework_id: str
    executor_id: str
    # The sandbox, made and owned by the task's user; may be written by tasks: see
    # agent.containers.sandbox for how to open what is in it.
    sandbox: str
    uid: int
    gid: int
    # What it has at its start: the executor's and the first tasks' resources.
    resources: Resources
    # What the framework asked for; None where it asked for nothing special.
    info: pb.ContainerInfo | None
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Recovered:
    """A container of an earlier run of the agent that still runs."""

    container_id: str
    framework_id: str
    executor_id: str
    pid: int
    resources: Resources
    info: pb.ContainerInfo | None


@dataclass(frozen=True)
class Preparation:
    """What an isolator adds to the start of a container's first process.

    `environment` goes over what the agent sets and under what the framework does.
    `enter` are files that the new process writes "0" into before its program runs
    (`cgroup.procs` of a cgroup), `namespaces` files of namespaces that it enters,
    `rlimits` are (resource, soft, hard) as `resource.setrlimit` takes them.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    enter: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    rlimits: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Limitation:
    """A container took more than it was given: the agent kills it for that.

    `message` is for people and names the limit and what was used; `resources` are
    those that were exceeded.  Not `fatal`: the container has lost a part of itself and
    goes on; its tasks are told.
    """

    reason: pb.TaskStatus.Reason.ValueType
    message: str
    resources: Resources
    fatal: bool = True


# Cumulative or momentary numbers by name, in base units: "cpu_user_seconds",
# "memory_bytes".  Every isolator chooses names that no other one uses.
Usage = Mapping[str, float]

NOTHING: Final = Preparation()


class Isolator:
    """Does nothing; the base of all isolators.  See the module for threads and order."""

    # What tasks may ask for because this isolator is there (RLIMITS, NETWORKS): without
    # it the agent refuses such tasks in words.
    provides: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, facts: AgentFacts) -> None:
        """Called once, after the agent knows its id and before the first container.

        Raises MesosPyError when the machine lacks what is needed, naming it: the
        agent then does not start.
        """
        self.facts = facts

    def recover(self, containers: Sequence[Recovered]) -> None:
        """The agent was started again (or for the first time: `containers` is empty then).

        Called once, before all other methods, with the containers of this agent that
        still run.  It takes them up again, so that `update`, `usage` and `cleanup` work
        for them, and removes what carries this agent's full id and is not among them.
        `watch` is called for each of them afterwards.  Raises MesosPyError as
        `__init__` does.
        """

    def prepare(self, container: Container) -> Preparation:
        """Make ready what the container needs; called once, before its process exists.

        An error fails the launch: its text becomes the task's message (REASON_
        CONTAINER_LAUNCH_FAILED), and `cleanup` is called.
        """
        return NOTHING

    def join(self, container_id: str, pid: int) -> Preparation:
        """What one more process needs that is started in the container beside its own.

        Called any number of times while it runs, also after `recover`; `pid` is its
        first process.  An error fails the start of that process alone.
        """
        return NOTHING

    def isolate(self, container_id: str, pid: int) -> None:
        """Its first process exists and runs already; called once, after `prepare`.

        For what can only be done from outside by its pid: nothing that must hold
        from the first instruction on.  An error kills the container.
        """

    def update(self, container_id: str, resources: Resources) -> None:
        """Its tasks have come or gone: from now on it has `resources` in all.

        Called any number of times while it runs, with the newest amount only.  An
        error is logged, and the next `update` is tried as if there had been none.
        """

    def usage(self, container_id: str) -> Usage:
        """What it has used so far.  Called at any time between `prepare` and `cleanup`.

        Numbers that cannot be had are left out; nothing is raised for them.
        """
        return {}

    def addresses(self, container_id: str) -> tuple[str, ...]:
        """The IP addresses of its own network, for its tasks' statuses; () without one.

        Called on the event loop, after `prepare` or `recover`: it must not block.
        """
        return ()

    def watch(self, container_id: str, exceeded: Callable[[Limitation], None]) -> None:
        """Watch its limits: `exceeded` may be called, from any thread.

        Once at most with a fatal limitation.  Called once after `isolate` or `recover`;
        returns at once.  A call of `exceeded` after `end` has returned does nothing.
        """

    def end(self, container_id: str) -> Limitation | None:
        """It must be over: kill what still runs of it, return when nothing does.

        Called when the container is killed, and always once its processes are gone as
        far as the agent can see: only when this has returned is its end reported.
        Returns the limitation that ended it, if one did and `watch` has not told.
        Idempotent; raises Unavailable for what cannot be ended yet: it is called again.
        """
        return None

    def cleanup(self, container_id: str) -> None:
        """Its processes are gone, or never were: remove what is left of it.

        Called once after every container, also when `prepare` was not called or has
        failed, and for containers of an earlier run of the agent that are not known
        here.  Idempotent; raises nothing for what is not there.  An error is logged
        and the call repeated later, until it succeeds or the agent ends.
        """

    def close(self) -> None:
        """The agent ends.  Containers that still run go on, for its next run to find.

        Called once, after all other methods: removes what was made for the agent as a
        whole, unless containers need it.
        """


def provided(factories: Iterable[Callable[[AgentFacts], Isolator]]) -> frozenset[str]:
    """What all of them provide."""
    nothing: frozenset[str] = frozenset()
    return nothing.union(*(getattr(each, "provides", nothing) for each in factories))


def resolve(names: tuple[str, ...]) -> list[Callable[[AgentFacts], Isolator]]:
    """The isolators' factories, in order.  Raises InvalidValue for an unknown name."""
    if len(set(names)) != len(names):
        raise InvalidValue("isolation", ",".join(names), "names an isolator twice")
    return [plugins.resolve(GROUP, BUILTINS, name, "isolation") for name in names]

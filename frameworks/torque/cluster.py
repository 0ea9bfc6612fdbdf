"""The cluster as the engine sees it: what it calls, and offers, tasks and ends in its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from frameworks.torque.backend import Daemon
from frameworks.torque.book import Entry
from frameworks.torque.core.planning import Room
from frameworks.torque.core.records import Size
from mesos_py import (
    Need,
    Offer,
    Resources,
    TaskInfo,
    command_task,
    resources_of,
)
from mesos_py.errors import InvalidResources
from mesos_py.v1.types_pb2 import Role

_KILL_GRACE_S: Final = 5.0
# A node takes so long to come, and to go before the end of its agent's time.
END_EARLY_S: Final = 20.0
NO_LIMIT: Final = 2**31
# The longest that is taken of a host's name for its nodes'.
_NAME: Final = 30


class Cluster(Protocol):
    """What the engine calls; `SchedulerDriver` has it."""

    def launch_tasks(self, offers: Offer, tasks: Sequence[TaskInfo]) -> None: ...

    def decline_offers(self, offers: Iterable[Offer], filters: float | None = None) -> None: ...

    def kill_task(self, task: str, agent: str | None = None) -> None: ...

    def set_needs_offers(self, needs: bool) -> None: ...

    def state_waiting(self, waiting: Iterable[Need]) -> None: ...

    def reconcile_tasks(self, tasks: Iterable[tuple[str, str]] = ()) -> None: ...

    def guaranteed_share(self) -> Resources: ...


def room_of(offer: Offer, now_s: float) -> Room | None:
    """What is offered; None if there is not a whole cpu, or something that we do not understand.
    now_s: of the calendar's clock, for machines that are to be absent.  Of the time that there
    is, jobs get what a node leaves that has to come and to go."""
    try:
        resources = resources_of(offer)
    except InvalidResources:
        return None
    limits: list[float] = []
    if offer.HasField("max_task_duration"):
        limits.append(offer.max_task_duration.nanoseconds / 1e9)
    if offer.HasField("unavailability"):
        limits.append(max(0.0, offer.unavailability.start.nanoseconds / 1e9 - now_s))
    size = size_in(resources)
    if size.cpus < 1:
        return None
    most_s = max(0.0, min(limits) - END_EARLY_S) if limits else None
    return Room(offer.id.value, offer.agent_id.value, offer.hostname, size, most_s)


def size_in(resources: Resources) -> Size:
    """Whole cpus and MB."""
    return Size(int(resources.scalar("cpus")), int(resources.scalar("mem")))


def limit_of(role: str, roles: Iterable[Role]) -> Size | None:
    """What the role may have at most, as far as roles above it let it; None: there is no limit."""
    most = Size(NO_LIMIT, NO_LIMIT)
    for each in roles:
        if role == each.name or role.startswith(f"{each.name}/"):
            limits = each.policy.limits
            cpus = int(limits["cpus"].value) if "cpus" in limits else NO_LIMIT
            mem_mb = int(limits["mem"].value) if "mem" in limits else NO_LIMIT
            most = Size(min(most.cpus, cpus), min(most.mem_mb, mem_mb))
    return most if most != Size(NO_LIMIT, NO_LIMIT) else None


def resources_for(size: Size, overhead_mb: int) -> Resources:
    """What a node with this size takes."""
    return Resources.of(cpus=size.cpus, mem=size.mem_mb + overhead_mb)


def node_name(hostname: str, number: int) -> str:
    """Unlike any other; of the host's name, short or full, its first word."""
    word = hostname.partition(".")[0].lower() if not hostname[:1].isdigit() else "host"
    word = re.sub(r"[^a-z0-9]+", "-", word).strip("-")[:_NAME].strip("-") or "host"
    # A digit at its end would run into the number's for whoever reads "n[1-12]".
    return f"{word}-n{number}"


def task_of(entry: Entry, offer: Offer, daemon: Daemon, overhead_mb: int) -> TaskInfo:
    needs = resources_for(entry.size, overhead_mb)
    if daemon.port is not None:
        port = Resources.of(ports=[(daemon.port, daemon.port)])
        # Where the agent gives ports out it is taken, so that nobody else gets it.
        if resources_of(offer).contains(port):
            needs += port
    return command_task(
        f"node {entry.name}",
        entry.name,
        offer,
        daemon.command,
        resources=needs,
        env=daemon.environment,
        kill_grace_s=_KILL_GRACE_S,
    )


__all__ = [
    "NO_LIMIT",
    "Cluster",
    "limit_of",
    "node_name",
    "resources_for",
    "room_of",
    "size_in",
    "task_of",
]

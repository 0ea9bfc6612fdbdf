"""What an operator says to the master's core, and whether it was carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from master.core import departures, draining, maintenance
from mesos_py.clock import Now
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World


class Operator:
    """Each word returns a list that holds one moment once the word was carried out."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _say(self, word: Callable[..., None], *given: Any) -> list[Now]:
        done: list[Now] = []
        word(self.world.cluster, *given, done.append, self.world.clock.now())
        return done

    def drain(
        self, agent: FakeAgent | str, grace_s: float | None = None, mark_gone: bool = False
    ) -> list[Now]:
        config = pb.DrainConfig(mark_gone=mark_gone)
        if grace_s is not None:
            config.max_grace_period.nanoseconds = int(grace_s * 1e9)
        return self._say(draining.drain, _id(agent), config)

    def deactivate(self, agent: FakeAgent | str) -> list[Now]:
        return self._say(draining.deactivate, _id(agent))

    def reactivate(self, agent: FakeAgent | str) -> list[Now]:
        return self._say(draining.reactivate, _id(agent))

    def mark_gone(self, agent: FakeAgent | str) -> list[Now]:
        return self._say(departures.mark_gone, _id(agent))

    def schedule(self, *windows: mt.Window) -> list[Now]:
        return self._say(maintenance.update_schedule, mt.Schedule(windows=windows))

    def start(self, *machines: pb.MachineID) -> list[Now]:
        return self._say(maintenance.start, machines)

    def stop(self, *machines: pb.MachineID) -> list[Now]:
        return self._say(maintenance.stop, machines)


def machine(hostname: str = "", ip: str = "") -> pb.MachineID:
    return pb.MachineID(hostname=hostname or None, ip=ip or None)


def window(
    *machines: pb.MachineID | str, start_s: float = 2e9, duration_s: float | None = None
) -> mt.Window:
    """When these machines (a text: one with this host name) are to be absent."""
    named = [machine(each) if isinstance(each, str) else each for each in machines]
    made = mt.Window(machine_ids=named)
    made.unavailability.start.nanoseconds = int(start_s * 1e9)
    if duration_s is not None:
        made.unavailability.duration.nanoseconds = int(duration_s * 1e9)
    return made


def _id(agent: FakeAgent | str) -> str:
    return agent if isinstance(agent, str) else agent.id

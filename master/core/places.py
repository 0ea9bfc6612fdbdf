"""Which agents are, or were last, at an address."""

from __future__ import annotations

from typing import TypeAlias

from mesos_py.v1 import types_pb2 as pb

Place: TypeAlias = tuple[str, int, str]  # ip, port, host name


class Places:
    """An index, so that a new agent need not be compared with all others."""

    def __init__(self) -> None:
        self._place_of: dict[str, Place] = {}
        self._at: dict[Place, dict[str, None]] = {}

    def put(self, agent_id: str, info: pb.AgentInfo) -> None:
        """The agent is there now, and nowhere else."""
        place = _place(info)
        if self._place_of.get(agent_id) == place:
            return
        self.forget(agent_id)
        self._place_of[agent_id] = place
        self._at.setdefault(place, {})[agent_id] = None

    def forget(self, agent_id: str) -> None:
        place = self._place_of.pop(agent_id, None)
        if place is not None:
            there = self._at[place]
            del there[agent_id]
            if not there:
                del self._at[place]

    def at(self, info: pb.AgentInfo) -> list[str]:
        """The agents there; none at an address without a port, which nobody has alone."""
        return list(self._at.get(_place(info), ())) if info.port else []


def _place(info: pb.AgentInfo) -> Place:
    return info.ip, info.port, info.hostname


__all__ = ["Place", "Places"]

"""Room on agents that is kept for whom it was taken back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from master.allocator.revocation.amounts import Amounts, add, covers, keep_back, less
from master.allocator.revocation.needs import Bundle
from master.allocator.roles import Contender
from mesos_py.allocation import AgentRow, Revocation
from mesos_py.resources import EMPTY, Resources


@dataclass(slots=True, eq=False)
class Hold:
    """What becomes free on the agent is kept for these bundles of one framework.

    It begins with the revocations, of which some are `in_progress`, and is no offer
    before a whole bundle is free: half of one is no use to anybody.  When they are
    done it lasts until `until_s`.
    """

    framework_id: str
    role: str
    agent_id: str
    bundles: list[Bundle]
    # In the order in which they were planned.
    in_progress: dict[Revocation, None] = field(default_factory=dict)
    until_s: float | None = None
    # Whether anything of it became free.
    freed: bool = False
    # Since when the framework lacks less than what is kept.
    idle_since_s: float | None = None
    # Of the first bundle, what was granted already (offers of part of an agent).
    granted: dict[str, int] = field(default_factory=dict)

    def left(self) -> Amounts:
        """Scalars still to be granted."""
        wanted: dict[str, int] = {}
        for bundle in self.bundles:
            add(wanted, bundle.resources.scalars)
        return less(wanted, self.granted)

    def is_for(self, contender: Contender) -> bool:
        return self.framework_id == contender.framework_id and self.role == contender.role

    def is_ready(self, free: Resources) -> bool:
        return bool(self.granted) or any(free.contains(one.resources) for one in self.bundles)

    def take(self, resources: Resources) -> None:
        """So much was granted of it."""
        add(self.granted, resources.scalars)
        while self.bundles:
            scalars = self.bundles[0].resources.scalars
            if not covers(self.granted, scalars):
                return
            add(self.granted, scalars, -1)
            del self.bundles[0]


class Holds:
    """All holds, by agent: few, each there for a revocation."""

    def __init__(self) -> None:
        self._by_agent: dict[str, list[Hold]] = {}

    def __iter__(self) -> Iterator[Hold]:
        for holds in list(self._by_agent.values()):
            yield from list(holds)

    def __bool__(self) -> bool:
        return bool(self._by_agent)

    def on(self, agent_id: str) -> Sequence[Hold]:
        return self._by_agent.get(agent_id, ())

    def add(self, hold: Hold) -> Hold:
        """Returns the hold that counts: what the framework has there already grows."""
        for known in self._by_agent.setdefault(hold.agent_id, []):
            if (known.framework_id, known.role) == (hold.framework_id, hold.role):
                known.bundles += hold.bundles
                known.in_progress |= hold.in_progress
                known.until_s = known.idle_since_s = None
                return known
        self._by_agent[hold.agent_id].append(hold)
        return hold

    def drop(self, hold: Hold) -> None:
        holds = self._by_agent.get(hold.agent_id, [])
        if hold in holds:
            holds.remove(hold)
        if not holds:
            self._by_agent.pop(hold.agent_id, None)

    def kept(self, agent_id: str) -> Amounts:
        """All that is kept there."""
        kept: dict[str, int] = {}
        for hold in self.on(agent_id):
            add(kept, hold.left())
        return kept


class HeldBack:
    """What holds leave to whom during one cycle, or while one is played.

    `charge` tells of each grant; the holds themselves change when the cycle is over.
    """

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._own: dict[str, list[Hold]] = {}

    def left_to(self, contender: Contender, agent: AgentRow, free: Resources) -> Resources:
        """What of `free` is not kept for others; EMPTY where that is no scalar at all.

        The first hold comes first: what is complete for it does not wait for the others.
        """
        holds: Sequence[Hold] | None = self._own.get(agent.agent_id)
        if holds is None:
            holds = self._holds.on(agent.agent_id)
        rest = free
        own: dict[str, int] = {}
        for hold in holds:
            if hold.is_for(contender) and hold.is_ready(rest):
                add(own, hold.left())
            else:
                rest = keep_back(rest, _beside(own, rest, hold.left()))
        return rest if rest is free or rest.scalars else EMPTY

    def charge(self, contender: Contender, agent: AgentRow, resources: Resources) -> None:
        if not self._holds.on(agent.agent_id):
            return
        own = self._own.get(agent.agent_id)
        if own is None:
            own = self._own[agent.agent_id] = [
                replace(hold, bundles=list(hold.bundles), granted=dict(hold.granted))
                for hold in self._holds.on(agent.agent_id)
            ]
        for hold in own:
            if hold.is_for(contender):
                hold.take(resources)

    def names(self, agent: AgentRow, but: Contender, known: Mapping[str, str]) -> str:
        """For whom something is kept there, in words."""
        found = dict.fromkeys(
            hold.framework_id for hold in self._holds.on(agent.agent_id) if not hold.is_for(but)
        )
        if not found:
            return "the framework itself, until all that it needs there is free"
        return ", ".join(f"{known.get(one, one)!r} ({one})" for one in found)


def _beside(own: Amounts, free: Resources, kept: Amounts) -> Amounts:
    """What can be kept of what is free, when so much is somebody's `own`."""
    if not own:
        return kept
    left = less(free.scalars, own)
    return {name: min(milli, left[name]) for name, milli in kept.items() if name in left}

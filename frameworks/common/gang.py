"""All or nothing: offers are held until the whole of something fits on them.  Pure.

A gang is some number of equal slots.  It takes nothing before there is room for all of
them; what it holds of too little it gives back after a while, so that of two gangs that
each hold a part one gets all.  How long that is must differ from gang to gang and from
time to time: the caller draws it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from mesos_py.errors import InvalidValue
from mesos_py.resources import EMPTY, Resources, milli_text


class Placement(Enum):
    """Which agents are taken when there is a choice."""

    PACK = "pack"
    SPREAD = "spread"
    ONE_PER_AGENT = "one-per-agent"


@dataclass(frozen=True)
class Ask:
    """What the gang needs: `slots` times `each`, a slot whole on one agent.

    per_agent: the most slots of one agent (None: any number).  Raises InvalidValue.
    """

    slots: int
    each: Resources
    per_agent: int | None = None
    placement: Placement = Placement.PACK

    def __post_init__(self) -> None:
        for name in ("slots", "per_agent"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidValue(name, value, "must be at least 1")
        if not self.each.scalars or self.each.ranges or self.each.sets:
            raise InvalidValue("each", str(self.each), "must be amounts, such as cpus and mem")

    @property
    def most(self) -> int:
        """How many slots of one agent can be used."""
        if self.placement is Placement.ONE_PER_AGENT:
            return 1
        return self.slots if self.per_agent is None else min(self.per_agent, self.slots)

    @property
    def whole(self) -> Resources:
        """All slots together."""
        return times(self.each, self.slots)

    def slots_in(self, room: Resources) -> int:
        """How many slots an agent with that much can have."""
        fit = min(room.scalars.get(name, 0) // milli for name, milli in self.each.scalars.items())
        return min(fit, self.most)


@dataclass(frozen=True)
class Piece:
    """An offer: some room on one agent."""

    offer_id: str
    agent_id: str
    room: Resources


@dataclass(frozen=True)
class Share:
    """What one agent contributes: so many slots, on these offers."""

    agent_id: str
    offer_ids: tuple[str, ...]
    slots: int


@dataclass
class Gang:
    """The offers that are held for an ask.

    Never longer than the time that came with the first of them: when `due` says so the
    caller takes all with `give_back`, declines them, and refuses what it is offered for
    a time that it draws.  So at any time either all are held that are needed, and are to be
    used at once, or they go soon.
    """

    ask: Ask
    _held: dict[str, Piece] = field(default_factory=dict)
    _until_s: float | None = None

    @property
    def held(self) -> int:
        """How many slots there is room for now; may be more than are asked for."""
        return sum(self.ask.slots_in(room) for room in self._rooms().values())

    def offered(self, piece: Piece, now_s: float, hold_s: float) -> bool:
        """Whether the piece is of use, and held from now on; one that is not is to be
        declined.  With the first piece the time begins: `hold_s` seconds for all."""
        rooms = self._rooms()
        before = rooms.get(piece.agent_id, EMPTY)
        gain = self.ask.slots_in(before + Resources(piece.room.scalars)) - self.ask.slots_in(before)
        if gain < 1:
            return False
        if self._until_s is None:
            self._until_s = now_s + hold_s
        self._held[piece.offer_id] = piece
        return True

    def gone(self, offer_id: str) -> bool:
        """The offer is dead; whether it was held."""
        held = self._held.pop(offer_id, None) is not None
        if not self._held:
            self._until_s = None
        return held

    def due(self, now_s: float) -> bool:
        """Whether it is time to give everything back."""
        return self._until_s is not None and now_s >= self._until_s

    @property
    def due_s(self) -> float | None:
        """When that is; None: nothing is held."""
        return self._until_s

    def give_back(self) -> list[str]:
        """Hold nothing any more; the ids of the offers that were held."""
        held, self._held, self._until_s = list(self._held), {}, None
        return held

    def complete(self) -> tuple[Share, ...] | None:
        """Where the slots go, agent by agent, if there is room for all.

        `pack` takes as few agents as it can, `spread` as many; either takes what there is.
        Held offers that are in no share are to be declined.
        """
        fits = {agent: self.ask.slots_in(room) for agent, room in self._rooms().items()}
        if sum(fits.values()) < self.ask.slots:
            return None
        pick = packed if self.ask.placement is Placement.PACK else spread
        return tuple(
            Share(agent, tuple(p.offer_id for p in self._held.values() if p.agent_id == agent), n)
            for agent, n in pick(fits, self.ask.slots).items()
        )

    def _rooms(self) -> dict[str, Resources]:
        rooms: dict[str, Resources] = {}
        for piece in self._held.values():
            before = rooms.get(piece.agent_id, EMPTY)
            rooms[piece.agent_id] = before + Resources(piece.room.scalars)
        return rooms


def packed(fits: Mapping[str, int], slots: int) -> dict[str, int]:
    """The largest first; the last is the smallest that has room for the rest."""
    taken: dict[str, int] = {}
    left = sorted(fits, key=lambda agent: -fits[agent])
    while slots and left:
        enough = [agent for agent in left if fits[agent] >= slots]
        agent = enough[-1] if enough else left[0]
        left.remove(agent)
        taken[agent] = min(fits[agent], slots)
        slots -= taken[agent]
    return taken


def spread(fits: Mapping[str, int], slots: int) -> dict[str, int]:
    """In turn, on all that have room."""
    taken = dict.fromkeys(fits, 0)
    while slots:
        usable = [agent for agent in fits if taken[agent] < fits[agent]]
        if not usable:
            break
        for agent in usable[:slots]:
            taken[agent] += 1
        slots -= min(slots, len(usable))
    return {agent: number for agent, number in taken.items() if number}


def never_fits(ask: Ask, agents: Iterable[Resources]) -> str:
    """Why the ask cannot be met by agents of these sizes, were they empty; "" if it can."""
    sizes = list(agents)
    fits = sum(ask.slots_in(size) for size in sizes)
    if fits >= ask.slots:
        return ""
    most = "" if ask.most >= ask.slots else f", at most {ask.most} on an agent"
    has = "1 agent has" if len(sizes) == 1 else f"{len(sizes)} agents have"
    return f"needs {ask.slots} x ({ask.each}){most}; {has} room for {fits} when empty"


def over(ask: Ask, limit: Resources, whose: str) -> str:
    """Why the ask is more than the limit, "" if it is not.  What the limit does not name
    is not limited."""
    whole = ask.whole.scalars
    for name, milli in limit.scalars.items():
        if whole.get(name, 0) > milli:
            return f"needs {milli_text(whole[name])} {name} in all; {whose} {milli_text(milli)}"
    return ""


def times(each: Resources, count: int) -> Resources:
    """So many of them together; amounts only."""
    return Resources({name: milli * count for name, milli in each.scalars.items()})


__all__ = [
    "Ask",
    "Gang",
    "Piece",
    "Placement",
    "Share",
    "never_fits",
    "over",
    "packed",
    "spread",
    "times",
]

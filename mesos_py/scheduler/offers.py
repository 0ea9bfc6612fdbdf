"""Which offers a scheduler holds, and what became of those it held.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mesos_py.errors import InvalidValue
from mesos_py.recent import Recent
from mesos_py.v1.types_pb2 import Offer

# Of this many ended offers it is still known how they ended.
REMEMBERED: Final = 10_000


class Held(NamedTuple):
    """`short`: it is kept for short tasks."""

    agent_id: str
    role: str
    short: bool


class OfferBook:
    """Offers by id: held now, gone (not by our doing), or used by a call of ours."""

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self._gone: Recent[str, str] = Recent(REMEMBERED)
        self._used: Recent[str, str] = Recent(REMEMBERED)
        # Rescinded on this stream, and not answered by us.
        self._late: Recent[str, None] = Recent(REMEMBERED)

    def add(self, offers: Iterable[Offer]) -> None:
        for offer in offers:
            self.held[offer.id.value] = Held(
                offer.agent_id.value,
                offer.allocation_info.role,
                offer.HasField("max_task_duration"),
            )

    def lose(self, offer_id: str, why: str) -> None:
        """The offer ended without us."""
        if self.held.pop(offer_id, None) is not None:
            self._gone.add(offer_id, why)

    def rescind(self, offer_id: str) -> None:
        """The master has taken it back, perhaps since we did not answer."""
        if offer_id in self.held:
            self._late.add(offer_id, None)
        self.lose(offer_id, "rescinded by the master")

    def decline(self, offer_ids: Iterable[str]) -> list[str]:
        """Those to be said: of the ones that are held, which is their end, and of the ones
        that were taken back on this stream, each once."""
        said = []
        for offer_id in offer_ids:
            if offer_id in self.held:
                self.use([offer_id], "declined")
                said.append(offer_id)
            elif offer_id in self._late:
                self._late.discard(offer_id)
                said.append(offer_id)
        return said

    def lose_all(self, why: str) -> None:
        self._late = Recent(REMEMBERED)
        for offer_id in self.held:
            self._gone.add(offer_id, why)
        self.held.clear()

    def use(self, offer_ids: Iterable[str], how: str) -> None:
        """A call of ours consumes them."""
        for offer_id in offer_ids:
            if self.held.pop(offer_id, None) is not None:
                self._used.add(offer_id, how)

    def gone(self, offer_ids: Iterable[str]) -> tuple[str, str] | None:
        """The first that is gone, and why.

        Raises InvalidValue for one that was never offered or that a call has used:
        a mistake of the caller, where a gone offer is bad luck.
        """
        found: tuple[str, str] | None = None
        for offer_id in offer_ids:
            if offer_id in self.held:
                continue
            how = self._used.get(offer_id)
            if how is not None:
                raise InvalidValue("offer_ids", offer_id, f"has been {how} before")
            why = self._gone.get(offer_id)
            if why is None:
                raise InvalidValue("offer_ids", offer_id, "is not known here")
            found = found or (offer_id, why)
        return found

    def common(self, offer_ids: list[str]) -> Held:
        """Agent and role of offers that are all held; raises InvalidValue if they differ."""
        first = self.held[offer_ids[0]]
        for offer_id in offer_ids[1:]:
            other = self.held[offer_id]
            if other.agent_id != first.agent_id:
                raise InvalidValue(
                    "offer_ids",
                    offer_id,
                    f"is of agent {other.agent_id}, {offer_ids[0]} of {first.agent_id}: "
                    "one call takes offers of one agent",
                )
            if other.role != first.role:
                raise InvalidValue(
                    "offer_ids",
                    offer_id,
                    f"is of role {other.role}, {offer_ids[0]} of {first.role}: "
                    "one call takes offers of one role",
                )
            if other.short != first.short:
                short, long = (offer_id, offer_ids[0])[:: 1 if other.short else -1]
                raise InvalidValue(
                    "offer_ids",
                    offer_id,
                    f"{short} is kept for short tasks, {long} is not: "
                    "one call takes offers of one kind",
                )
        return first

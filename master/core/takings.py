"""What is being taken back from whom: the records of revoking.py.

Amounts are scalars in thousandths.  All that is taken from one framework in one role on
one agent shares an account, so that nothing that becomes free counts twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mesos_py.allocation import Revocation


class Place(NamedTuple):
    agent_id: str
    framework_id: str
    role: str


@dataclass(slots=True)
class Taking:
    """One revocation in progress.  `name` is that of its deadline.

    `offer_id`: its inverse offer, while that is not answered, sent over `link`.  `answer`
    is what the framework said.  `over`: the deadline has passed.
    """

    name: str
    plan: Revocation
    deadline_s: float
    deadline_wall_s: float
    offer_id: str = ""
    link: int | None = None
    answer: str = ""
    over: bool = False

    @property
    def place(self) -> Place:
        return Place(self.plan.agent_id, self.plan.framework_id, self.plan.role)

    @property
    def wanted(self) -> Mapping[str, int]:
        return self.plan.resources.scalars


@dataclass(slots=True)
class Account:
    """`base` is what the framework held there at the beginning, and all that it was
    offered there since, less what was taken back already; so what it lacks of that is
    free.  The takings are served in their order."""

    base: dict[str, int]
    takings: list[Taking] = field(default_factory=list)

    def freed(self, held: Mapping[str, int]) -> dict[str, int]:
        for name, milli in held.items():
            # More than before: its agent has come back with tasks that nobody knew of.
            self.base[name] = max(milli, self.base.get(name, 0))
        return {name: milli - held.get(name, 0) for name, milli in self.base.items()}

    def settle(self, amounts: Mapping[str, int]) -> None:
        """So much of what is free has been counted for a taking that is over."""
        for name, milli in amounts.items():
            self.base[name] = self.base.get(name, 0) - milli


@dataclass(slots=True)
class Revoking:
    """All that is being taken back.  `touched`: agents on which something became free,
    or changed in another way, since they were looked at last."""

    accounts: dict[Place, Account] = field(default_factory=dict)
    agents: dict[str, dict[Place, None]] = field(default_factory=dict)
    by_name: dict[str, Taking] = field(default_factory=dict)
    by_offer: dict[str, Taking] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def open(self, taking: Taking, held: Mapping[str, int]) -> None:
        place = taking.place
        account = self.accounts.get(place)
        if account is None:
            account = self.accounts[place] = Account(dict(held))
            self.agents.setdefault(place.agent_id, {})[place] = None
        account.takings.append(taking)
        self.by_name[taking.name] = taking
        self.touched.add(place.agent_id)

    def close(self, taking: Taking) -> None:
        place = taking.place
        account = self.accounts[place]
        account.takings.remove(taking)
        del self.by_name[taking.name]
        self.by_offer.pop(taking.offer_id, None)
        if not account.takings:
            del self.accounts[place]
            places = self.agents[place.agent_id]
            del places[place]
            if not places:
                del self.agents[place.agent_id]
                self.touched.discard(place.agent_id)

    def granted(self, place: Place, amounts: Mapping[str, int]) -> None:
        """The framework is offered more there: that is not what is to become free."""
        account = self.accounts.get(place)
        if account is not None:
            account.settle({name: -milli for name, milli in amounts.items()})

    def of_framework(self, framework_id: str) -> list[Taking]:
        return [each for each in self.by_name.values() if each.plan.framework_id == framework_id]

"""Strict priorities of roles and frameworks, fair inside a level.

Among siblings in the tree of roles those with the highest RolePolicy.priority come
first, whatever they hold, and among the frameworks of a role those with the highest
FrameworkRow.priority; the others get what those do not take.  Where priorities are
equal (0 unless somebody says otherwise) the order is that of weighted DRF (`ranking`).
A role's own frameworks compete with the roles below it at priority 0.

Strict means that who comes first may starve the rest: it is what an operator asks for
by a priority.  What runs is let alone, unless `AllocatorOptions.preempt` has it taken
back (`outranks` says for whom).
"""

from __future__ import annotations

from itertools import zip_longest

from master.allocator.engine import Engine, Seat
from master.allocator.ranking import OnFailure, Order, Ranking
from master.allocator.roles import Contender, Role
from mesos_py.allocation import ClusterView
from mesos_py.policy import ancestors


class PriorityRanking(Ranking):
    """Of the highest priority first, then as Ranking."""

    def level_of_role(self, role: Role) -> int:
        return -role.policy.priority

    def level_of(self, contender: Contender) -> int:
        return -contender.priority

    def level_text(self, winner: int, other: int) -> str:
        return f"priority {-winner} before {-other}"


class PriorityAllocator(Engine):
    """Strict priorities; see the module's docstring."""

    def make_ranking(self, view: ClusterView, grants_made: int, on_failure: OnFailure) -> Order:
        return PriorityRanking(
            self.roster.root, view, self.shares_now(view), grants_made, on_failure
        )

    def outranks(self, one: Seat, other: Seat) -> bool:
        if one.role == other.role:
            return self._priority(one) > self._priority(other)
        # Where their paths part, the siblings are compared; a role that ends there
        # stands among those below it with its own frameworks.
        paths = zip_longest(reversed(ancestors(one.role)), reversed(ancestors(other.role)))
        mine, theirs = next(pair for pair in paths if pair[0] != pair[1])
        return self._role_priority(mine) > self._role_priority(theirs)

    def _priority(self, seat: Seat) -> int:
        row = self.roster.row(seat.framework_id)
        return row.priority if row is not None else 0

    def _role_priority(self, role: str | None) -> int:
        known = self.roster.roles.get(role) if role is not None else None
        return known.policy.priority if known is not None else 0

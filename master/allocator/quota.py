"""Guarantees and limits of roles, at every level of the tree.

**Limit**: a role, with the roles below it, never gets more.  What roles below it are
guaranteed and lack is kept for them inside the limit, too.

**Guarantee**: as in Mesos (hierarchical.cpp, `requiredHeadroom`), what roles lack of
their guarantees stays free in the cluster: others get only the surplus.  It is kept
also while nobody in the role wants it, so that it is there at once.  A role needs what
it lacks itself, or what the roles below it need together, whichever is more: a
guarantee below counts inside the one above.  What is free on agents that a role has
for itself counts as had, as reservations do in Mesos.

All amounts are sums over the cluster; whether what is free is on one agent, or on one
that the role can use, is not looked at, neither here nor in Mesos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from master.allocator.sums import SHARED
from mesos_py.policy import RolePolicy, ancestors

_NOTHING: Mapping[str, Mapping[str, int]] = {}


class Holdings(Protocol):
    """What is looked at of a ClusterView."""

    def held_under(self, role: str) -> Mapping[str, int]: ...


class Cap(NamedTuple):
    """At most `most` thousandths more; `code` is "limit" or "quota", `role` the one that
    has the limit."""

    most: int
    code: str
    role: str = ""


class _Node:
    """A role with a guarantee or a limit.  `lacking` of its own guarantee, `below` what
    roles below it need together, `need` what has to be kept for all of them."""

    __slots__ = (
        "below",
        "error",
        "guarantee",
        "held",
        "kept",
        "lacking",
        "limit",
        "name",
        "need",
        "parent",
    )

    def __init__(self, name: str, policy: RolePolicy, parent: _Node | None) -> None:
        self.name = name
        self.limit = policy.limit
        self.guarantee = policy.guarantee
        self.parent = parent
        self.reset()

    def reset(self) -> None:
        self.held: dict[str, int] = {}
        # Free on agents of its own, and of the roles below it.
        self.kept: dict[str, int] = {}
        self.lacking: dict[str, int] = {}
        self.below: dict[str, int] = {}
        self.need: dict[str, int] = {}
        self.error: Exception | None = None

    def left(self, name: str) -> int | None:
        """Of its limit; None: there is none."""
        limit = self.limit.get(name)
        return None if limit is None else max(limit - self.held.get(name, 0), 0)

    def settle(self, name: str) -> int:
        """Work out anew what it needs; how much that changed."""
        have = self.held.get(name, 0) + self.kept.get(name, 0)
        self.lacking[name] = max(self.guarantee.get(name, 0) - have, 0)
        need = max(self.lacking[name], self.below.get(name, 0))
        left = self.left(name)
        if left is not None and left < need:
            # It could not be given more.
            need = left
        change = need - self.need.get(name, 0)
        self.need[name] = need
        return change


class Quota:
    """What roles may have more during one cycle, from what the view showed at `begin`
    and the grants told since."""

    def __init__(self, policies: Mapping[str, RolePolicy]) -> None:
        self._nodes: dict[str, _Node] = {}
        self._chains: dict[str, tuple[_Node, ...]] = {}
        ruled = {role: one for role, one in policies.items() if one.guarantee or one.limit}
        for role in sorted(ruled, key=lambda name: name.count("/")):
            above = [self._nodes[name] for name in ancestors(role)[1:] if name in self._nodes]
            self._nodes[role] = _Node(role, ruled[role], above[0] if above else None)
        self._guaranteed = frozenset(name for one in ruled.values() for name in one.guarantee)
        limited = frozenset(name for one in ruled.values() for name in one.limit)
        self._names = tuple(sorted(self._guaranteed | limited))
        self._free: dict[str, int] = {}
        # All that has to be kept for roles.
        self._needed: dict[str, int] = {}
        self._caps: dict[tuple[str, bool], dict[str, Cap]] = {}
        self._owed: dict[str, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._nodes)

    @property
    def guarantees(self) -> bool:
        """Whether anything is guaranteed: only then it matters what is free in all."""
        return bool(self._guaranteed)

    # ---- One cycle ------------------------------------------------------

    def begin(
        self,
        view: Holdings,
        pools: Mapping[str, Mapping[str, int]],
        reserved: Mapping[str, Mapping[str, int]] = _NOTHING,
    ) -> None:
        """O(roles with a guarantee or a limit).  `reserved` for roles, and free."""
        self._caps.clear()
        self._owed.clear()
        self._free = dict(pools.get(SHARED, {}))
        self._needed = {}
        for node in self._nodes.values():
            node.reset()
            try:
                node.held = dict(view.held_under(node.name))
            except Exception as error:
                # Whoever is under it is passed over; what it lacks is kept as a whole.
                node.error = error
        for pool, free in pools.items():
            for node in self.chain(pool) if pool != SHARED else ():
                for name, milli in free.items():
                    node.kept[name] = node.kept.get(name, 0) + milli
        for role, amounts in reserved.items():
            for node in self.chain(role):
                for name, milli in amounts.items():
                    node.held[name] = node.held.get(name, 0) + milli
        for node in reversed(self._nodes.values()):
            for name in self._names:
                self._raise_need(node, name, node.settle(name))

    def charge(self, role: str, granted: Mapping[str, int], pool: str | None) -> None:
        """Something of the pool was granted to the role.  O(depth)."""
        chain = self.chain(role)
        owners = self.chain(pool) if pool else ()
        for name, milli in granted.items():
            if name not in self._names:
                continue
            if pool == SHARED:
                self._free[name] = self._free.get(name, 0) - milli
            for node in chain:
                node.held[name] = node.held.get(name, 0) + milli
                if node in owners:
                    node.kept[name] = node.kept.get(name, 0) - milli
                self._raise_need(node, name, node.settle(name))
        self._caps.clear()
        self._owed.clear()

    def charge_reserved(self, role: str, owner: str, granted: Mapping[str, int]) -> None:
        """Something that is reserved for `owner`, which counts as had by it already, was
        granted to the role."""
        owners = self.chain(owner)
        for node in self.chain(role):
            for name, milli in granted.items():
                if node not in owners:
                    node.held[name] = node.held.get(name, 0) + milli
                if name in self._names:
                    # Also of those that had it already what is needed below changes.
                    self._raise_need(node, name, node.settle(name))
        self._caps.clear()
        self._owed.clear()

    def _raise_need(self, node: _Node, name: str, change: int) -> None:
        above = node.parent.below if node.parent is not None else self._needed
        above[name] = above.get(name, 0) + change

    # ---- What it comes to -----------------------------------------------

    def caps(self, role: str, own: bool) -> Mapping[str, Cap]:
        """The most that the role may have more, by name; a name that is absent is free
        for it.  `own`: on agents that it has for itself, where no guarantee of others
        counts.  Raises what the view raised for the role."""
        found = self._caps.get((role, own))
        if found is None:
            found = self._caps[role, own] = self._find_caps(role, own)
        return found

    def owed(self, role: str) -> Mapping[str, int]:
        """What is kept for the role by guarantees that it is under, and that it lacks."""
        found = self._owed.get(role)
        if found is None:
            chain = self.chain(role)
            found = {}
            for name in self._guaranteed:
                before, after = self._served(chain, name, {})
                if before > after:
                    found[name] = before - after
            self._owed[role] = found
        return found

    @property
    def owes(self) -> bool:
        """Whether anybody lacks something of a guarantee."""
        return any(self._needed.values())

    def surplus(self, name: str) -> tuple[int, int]:
        """What is free for everybody, and what of it is kept."""
        return self._free.get(name, 0), self._needed.get(name, 0)

    def held(self, role: str, name: str) -> int:
        return self._nodes[role].held.get(name, 0)

    def limit(self, role: str, name: str) -> int:
        return self._nodes[role].limit[name]

    def lacking(self, name: str, besides: str) -> list[tuple[str, int, int]]:
        """(role, guaranteed, lacking) of the roles for which some of it is kept, but for
        those that `besides` is under; the most first."""
        chain = self.chain(besides)
        found = [
            (node.name, node.guarantee.get(name, 0), node.lacking.get(name, 0))
            for node in self._nodes.values()
            if node.lacking.get(name, 0) and node not in chain
        ]
        return sorted(found, key=lambda item: (-item[2], item[0]))

    def chain(self, role: str) -> tuple[_Node, ...]:
        """The role and those above it that have a guarantee or a limit, from below."""
        known = self._chains.get(role)
        if known is None:
            if len(self._chains) >= _CHAINS:
                self._chains.clear()
            known = tuple(self._nodes[name] for name in ancestors(role) if name in self._nodes)
            self._chains[role] = known
        return known

    def _find_caps(self, role: str, own: bool) -> dict[str, Cap]:
        chain = self.chain(role)
        for node in chain:
            if node.error is not None:
                raise node.error
        caps: dict[str, Cap] = {}
        for name in self._names:
            before, after = self._served(chain, name, caps)
            if own or name not in self._guaranteed:
                continue
            surplus = self._free.get(name, 0) - self._needed.get(name, 0)
            most = before - after + max(surplus, 0)
            if name not in caps or most < caps[name].most:
                caps[name] = Cap(most, "quota")
        return caps

    def _served(self, chain: Iterable[_Node], name: str, caps: dict[str, Cap]) -> tuple[int, int]:
        """What is to be kept for the topmost role of the chain: now, and if all on the
        chain had what they lack.  The difference is kept for whoever is at its lower
        end.  On the way the limits are noted in `caps`."""
        before = after = 0
        for node in chain:
            below = node.below.get(name, 0)
            # What the others below it need, for whom it is kept inside the limit.
            others = below - before + after
            left = node.left(name)
            if left is not None:
                most = min(left, below - others + max(left - below, 0))
                if name not in caps or most < caps[name].most:
                    caps[name] = Cap(most, "limit", node.name)
            # If its limit does not leave enough for all, it needs less with all it gets.
            after = others if left is None or below <= left else 0
            before = node.need.get(name, 0)
        return before, after


# Roles whose place in the tree is remembered.
_CHAINS = 10_000

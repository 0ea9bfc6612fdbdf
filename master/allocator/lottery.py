"""A lottery: whoever shall have more has more tickets, for each agent anew.

For each agent one is drawn of those who compete, down the tree of roles: of siblings
with chances in proportion to their weights, of the frameworks of a role each with the
same chance.  Where those drawn cannot use the agent, the next are drawn of the rest,
without replacement.  So each agent goes to a framework with a probability in proportion
to its intended allocation, and agents that several prefer are shared by weight among
those who want them.  By shares, whoever is behind would get each of them (Hindman et
al., "Mesos", NSDI 2011, section 4.3, on placement preferences; Waldspurger and Weihl,
OSDI 1994, on tickets).

What somebody holds plays no part.  A role's own frameworks compete with the roles below
it as one more sibling, of weight 1; priorities say nothing here.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from math import inf, log
from operator import attrgetter
from typing import Final
from zlib import crc32

from master.allocator.dice import Dice
from master.allocator.engine import Engine
from master.allocator.ranking import OnFailure, Order, Positions
from master.allocator.roles import Contender, Role, Roster
from mesos_py.allocation import AllocatorOptions, ClusterView
from mesos_py.policy import ancestors
from mesos_py.resources import Resources

_by_name: Final = attrgetter("role", "framework_id")


class Drum:
    """Siblings with their tickets: the roles of one parent, or the frameworks of a role."""

    __slots__ = ("_sums", "_tickets", "entries")

    def __init__(self, entries: list[Drum | Contender], weights: list[float]) -> None:
        self.entries = entries
        # In parts of the largest, so that no sum of them is infinite.
        most = max(weights, default=1.0)
        self._tickets = [weight / most for weight in weights]
        even = all(weight == most for weight in weights)
        self._sums = None if even else list(accumulate(self._tickets))

    def draw(self, dice: Dice) -> Iterator[Drum | Contender]:
        """All of them without replacement.  The first costs little: it is mostly enough."""
        if self._sums is None:
            return _shuffled(self.entries, dice)
        return self._weighted(self._sums, dice)

    def _weighted(self, sums: list[float], dice: Dice) -> Iterator[Drum | Contender]:
        last = len(self.entries) - 1
        first = min(bisect(sums, dice.fraction() * sums[-1]), last)
        yield self.entries[first]
        # The others in the order of exponential waiting times, which comes to the same as
        # drawing one after the other (Efraimidis and Spirakis, 2006).
        times = [
            (-log(dice.fraction()) / tickets if tickets else inf, number)
            for number, tickets in enumerate(self._tickets)
            if number != first
        ]
        times.sort()
        for _, number in times:
            yield self.entries[number]


def _shuffled(entries: list[Drum | Contender], dice: Dice) -> Iterator[Drum | Contender]:
    rest = list(entries)
    while rest:
        number = dice.below(len(rest))
        drawn, rest[number] = rest[number], rest[-1]
        rest.pop()
        yield drawn


class Lottery:
    """The order of one cycle: another for each agent, and for what is left of one.

    What is drawn depends on the seed, the grants made before this cycle and the agent,
    so that an explanation sees what the next cycle will draw if all may use the agent.
    """

    def __init__(self, roster: Roster, drum: Drum, seed: int, grants_made: int) -> None:
        self._root = roster.root
        self._tree = roster.tree
        self._all = drum
        self._seed = seed
        self._number = grants_made
        self._agent_id = ""
        self._turn = 0
        self._some: tuple[Collection[Contender] | None, Drum] = (None, Drum([], []))

    def walk(
        self, only: Collection[Contender] | None = None, agent_id: str = ""
    ) -> Iterator[Contender]:
        if agent_id != self._agent_id:
            self._agent_id = agent_id
            self._turn = 0
        self._turn += 1
        agent = crc32(agent_id.encode("utf-8", "surrogatepass"))
        dice = Dice(self._seed, self._number, agent, self._turn)
        waiting = [self._drum(only).draw(dice)]
        while waiting:
            for drawn in waiting[-1]:
                if isinstance(drawn, Drum):
                    waiting.append(drawn.draw(dice))
                    break
                yield drawn
            else:
                waiting.pop()

    def charge(self, contender: Contender, granted: Resources) -> None:
        """The next draw is another one anyway."""

    def why_behind(self, contender: Contender, winner: Contender) -> str:
        return "drawn by lot, for this agent and this time"

    def positions(self) -> Positions:
        """By tickets: all with the most of them stand first."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for node in self._root.subtree():
            for framework_id in node.contending:
                found[node.name, framework_id] = 1, len(node.contending)
            children = [child for child in node.children.values() if child.competing]
            own = [1.0] if node.contending and node is not self._root else []
            weights = [child.weight for child in children] + own
            for child in children:
                before = sum(weight > child.weight for weight in weights)
                found[child.name, ""] = before + 1, len(weights)
        return found

    def _drum(self, only: Collection[Contender] | None) -> Drum:
        if only is None:
            return self._all
        # All agents that somebody woke up for come with one and the same collection.
        if self._some[0] is not only:
            # A set has no order of its own that another run would repeat.
            contending = (one for one in only if one.contending)
            self._some = only, _filled(self._tree, sorted(contending, key=_by_name))
        return self._some[1]


def filled(roster: Roster) -> Drum:
    """With all that contend."""
    nodes = roster.root.subtree()
    return _filled(roster.tree, (one for node in nodes for one in node.contending.values()))


def _filled(tree: Mapping[str, Role], contenders: Iterable[Contender]) -> Drum:
    """The drums of those roles of the tree in which one of the contenders is."""
    own: dict[str, list[Contender]] = {}
    for contender in contenders:
        own.setdefault(contender.role, []).append(contender)
    inside = dict.fromkeys(above for role in own for above in ancestors(role))
    # By the name of the parent: what goes into its drum.
    below: dict[str, list[tuple[Drum, float]]] = {}
    for role in sorted(inside, key=_depth, reverse=True):
        drum = _drum(below.get(role, []), own.get(role, []))
        below.setdefault(role.rpartition("/")[0], []).append((drum, tree[role].weight))
    return _drum(below.get("", []), [])


def _drum(below: list[tuple[Drum, float]], frameworks: list[Contender]) -> Drum:
    alone = Drum(list(frameworks), [1.0] * len(frameworks))
    if not below:
        return alone
    both = [*below, (alone, 1.0)] if frameworks else below
    return Drum([drum for drum, _ in both], [weight for _, weight in both])


def _depth(role: str) -> int:
    return role.count("/")


class LotteryAllocator(Engine):
    """Offers by lot, by weight; see the module's docstring."""

    def __init__(self, options: AllocatorOptions | None = None) -> None:
        super().__init__(options)
        # Of which version of the roster; filling it costs more than most cycles.
        self._drum = self.roster.version, filled(self.roster)

    def make_ranking(self, view: ClusterView, grants_made: int, on_failure: OnFailure) -> Order:
        if self._drum[0] != self.roster.version:
            self._drum = self.roster.version, filled(self.roster)
        return Lottery(self.roster, self._drum[1], self.options.seed, grants_made)

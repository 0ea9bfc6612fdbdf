"""Random histories for allocators, with the rules checked after each cycle."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence, Set

from mesos_py.allocation import Freed, Grant
from mesos_py.constraints import Constraint, Host, Term
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness

_AGENTS = 6
_FRAMEWORKS = 6


class RandomRun:
    """One random event after the other, and a cycle now and then.

    After each cycle nobody is left out who could use what is free: that finds lost
    wake-ups.  With `explain` everybody is explained before each cycle, and what is
    explained must agree with what then happens.
    """

    # Reasons that may be over within a cycle, since others are served before.
    passing: Set[str] = frozenset({"outranked"})
    # Some are above others, one is below a role that nobody names.
    roles: Sequence[str] = ("r", "r/x", "r/x/deep", "s/z", "t")
    ruled_above: Sequence[str] = ("s",)

    def __init__(
        self, harness: AllocatorHarness, dice: random.Random, explain: bool = False
    ) -> None:
        self.harness = harness
        self.dice = dice
        self.explain = explain
        self.history: list[list[Grant]] = []
        self._born = 0
        # (how often, what)
        self._choices: list[tuple[int, Callable[[], None]]] = [
            (2, self._add_agent),
            (1, self._remove_agent),
            (2, self._change_agent),
            (2, self._add_framework),
            (1, self._remove_framework),
            (3, self._change_framework),
            (3, self._suppress),
            (6, self._revive),
            (1, self._rule),
            (20, self._decline),
            (20, self._use),
            (20, self._give_back),
            (2, self._spurious),
            (10, self._advance),
            (15, self.cycle),
        ]

    def go(self, steps: int) -> None:
        weights = [weight for weight, _ in self._choices]
        actions = [action for _, action in self._choices]
        for action in self.dice.choices(actions, weights, k=steps):
            action()
        self.cycle()

    def cycle(self) -> None:
        h = self.harness
        waiting = self._waiting() if self.explain else set()
        if self.explain:
            h.allocator.standings(h.cluster)
        grants = h.cycle()
        self.history.append(grants)
        surprised = waiting & {grant.framework_id for grant in grants}
        assert not surprised, f"explained as waiting, yet granted: {surprised}"
        left_out = h.left_out()
        assert not left_out, f"could be granted and were not: {left_out}"
        wake_s = h.allocator.next_wake_s()
        assert wake_s is None or wake_s > h.now_s, "wakes up for what is over"
        if h.must_wake():
            assert wake_s is not None, "no wake-up though more may be granted at once"
        if self.dice.random() < 0.1:
            self._check_wake(wake_s)

    def _waiting(self) -> set[str]:
        """Who is said to get nothing, whatever the order in which agents are taken."""
        h = self.harness
        waiting = set()
        for framework_id in h.frameworks:
            codes = {skip.code for skip in h.allocator.explain(framework_id, h.cluster, h.now_s)}
            if codes and not codes & self.passing:
                waiting.add(framework_id)
        return waiting

    def _check_wake(self, wake_s: float | None) -> None:
        """If time alone lets somebody in, the wake-up must not come after that."""
        h = self.harness
        now_s = h.now_s
        for end_s in h.refusal_ends():
            h.now_s = end_s
            if h.left_out():
                assert wake_s is not None, "no wake-up though a refusal ends"
                assert wake_s <= end_s, f"wakes up at {wake_s}, too late for {end_s}"
                break
        h.now_s = now_s

    # ---- Events ---------------------------------------------------------

    def _add_agent(self) -> None:
        if len(self.harness.agents) >= _AGENTS:
            return
        self._born += 1
        text = f"cpus:{self.dice.randint(1, 8)};mem:{self.dice.choice((16, 512, 4096))}"
        if self.dice.random() < 0.2:
            text += ";gpus:1"
        if self.dice.random() < 0.5:
            text += ";ports:[31000-31009]"
        self.harness.agent(f"a{self._born}", text, rack=self.dice.choice("xyz"))

    def _remove_agent(self) -> None:
        if self.harness.agents:
            self.harness.remove_agent(self.dice.choice(list(self.harness.agents)))

    def _change_agent(self) -> None:
        if self.harness.agents:
            agent_id = self.dice.choice(list(self.harness.agents))
            if self.dice.random() < 0.7:
                self.harness.change_agent(agent_id, active=self.dice.random() < 0.7)
            else:
                host = Host(agent_id, {"rack": self.dice.choice("xyz")})
                self.harness.change_agent(agent_id, host=host)

    def _add_framework(self) -> None:
        if len(self.harness.frameworks) < _FRAMEWORKS:
            self._born += 1
            roles = self.dice.sample(self.roles, self.dice.randint(1, 3))
            gpu_capable = self.dice.random() < 0.3
            self.harness.framework(f"f{self._born}", *roles, gpu_capable=gpu_capable)

    def _remove_framework(self) -> None:
        if self.harness.frameworks:
            self.harness.remove_framework(self._framework())

    def _change_framework(self) -> None:
        if not self.harness.frameworks:
            return
        role = self.dice.choice(self.roles)
        match self.dice.randint(0, 4):
            case 0:
                self.harness.change_framework(self._framework(), active=self.dice.random() < 0.7)
            case 1:
                roles = tuple(self.dice.sample(self.roles, self.dice.randint(1, 3)))
                self.harness.change_framework(self._framework(), roles=roles)
            case 2:
                constraint = _in_rack(self.dice.choice("xyz"))
                constraints = {role: constraint} if self.dice.random() < 0.5 else {}
                self.harness.change_framework(self._framework(), constraints=constraints)
            case 3:
                self.harness.change_framework(self._framework(), priority=self.dice.randint(0, 2))
            case _:
                least = [Resources.of(cpus=self.dice.randint(1, 4))]
                min_free = {role: self.dice.choice(([], least))}
                self.harness.change_framework(self._framework(), min_free=min_free)

    def _suppress(self) -> None:
        if self.harness.frameworks:
            self.harness.suppress(self._framework(), self.dice.choice(self.roles))

    def _revive(self) -> None:
        if self.harness.frameworks:
            self.harness.revive(self._framework())

    def _rule(self) -> None:
        weight = self.dice.choice((0.5, 1.0, 2.0, 3.0))
        priority = self.dice.choice((0, 0, 1))
        self.harness.rule(
            self.dice.choice((*self.roles, *self.ruled_above)), weight=weight, priority=priority
        )

    def _decline(self) -> None:
        if self.harness.held:
            seconds = self.dice.choice((0.0, 1.0, 5.0, 5.0, 60.0, 31536000.0))
            self.harness.decline(self._grant(), seconds)

    def _use(self) -> None:
        if self.harness.held:
            grant = self._grant()
            cpus = grant.resources.scalars.get("cpus", 0) // 1000
            if cpus >= 1:
                seconds = self.dice.choice((0.0, 5.0, 60.0))
                self.harness.use(grant, f"cpus:{self.dice.randint(1, cpus)}", seconds)

    def _give_back(self) -> None:
        if self.harness.held:
            self.harness.give_back(self._grant())

    def _spurious(self) -> None:
        """Something was freed, says somebody, and it is not so."""
        for agent_id in self.harness.agents:
            self.harness.allocator.tell(Freed(agent_id))

    def _advance(self) -> None:
        wake_s = self.harness.allocator.next_wake_s()
        if wake_s is not None and wake_s > self.harness.now_s and self.dice.random() < 0.5:
            self.harness.now_s = wake_s
        else:
            self.harness.advance(self.dice.choice((0.0, 0.05, 1.0, 10.0)))

    def _framework(self) -> str:
        return self.dice.choice(list(self.harness.frameworks))

    def _grant(self) -> Grant:
        return self.dice.choice(self.harness.held)


def _in_rack(rack: str) -> Constraint:
    return Constraint(((Term(None, "rack", "text_equals", rack),),))

"""The part of the contract of allocators that is about telling: `allocator_contract`."""

from __future__ import annotations

import random
from typing import Any

from mesos_py.allocation import SKIP_CODES, Allocator, AllocatorOptions, Grant, Skip
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, only_hosts
from mesos_py.testing.allocator_runs import RandomRun


class ExplainingContract:
    """That an allocator tells the truth of what it does, and changes nothing by it."""

    def make(self, options: AllocatorOptions) -> Allocator:
        """A new allocator; called several times per test."""
        raise NotImplementedError

    def harness(self, **options: Any) -> AllocatorHarness:
        chosen = AllocatorOptions(**options)
        return AllocatorHarness(self.make(chosen), chosen)

    def test_explain_says_nothing_of_who_would_get_something_or_is_unknown(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        assert h.allocator.explain("f", h.cluster, h.now_s) == []
        assert h.allocator.explain("nobody", h.cluster, h.now_s) == []

    def test_explain_tells_each_reason_by_its_code(self) -> None:
        h = self.harness()
        h.framework("away", active=False)
        h.framework("quiet", suppressed=frozenset({"*"}))
        h.framework("plain")
        assert self._codes(h, "away") == {"inactive"}
        assert self._codes(h, "quiet") == {"suppressed"}
        assert self._codes(h, "plain") == {"no-agents"}
        h.agent("a", "cpus:1;mem:64")
        h.framework("picky", constraints={"*": only_hosts("b")})
        h.framework("greedy", min_free={"*": [Resources.of(cpus=100)]})
        assert self._codes(h, "picky") == {"constraint"}
        assert self._codes(h, "greedy") == {"too-small"}
        (grant,) = h.cycle()
        assert self._codes(h, "plain") == {"nothing-free"}
        h.decline(grant)
        assert self._codes(h, "plain") == {"filtered"}
        h.change_agent("a", active=False)
        assert self._codes(h, "plain") == {"inactive"}
        h.remove_agent("a")
        h.agent("g", "cpus:1;gpus:1")
        assert self._codes(h, "plain") == {"gpu-only"}

    def test_explain_says_outranked_of_whoever_must_wait(self) -> None:
        h = self.harness()
        h.framework("f")
        h.framework("g")
        h.agent("a")
        (grant,) = h.cycle()
        h.give_back(grant)
        told = {name: self._codes(h, name) for name in ("f", "g")}
        assert sorted(map(sorted, told.values())) == [[], ["outranked"]]

    def test_explain_changes_nothing(self) -> None:
        assert self._history(11) == self._history(11, explain=True)

    def test_shares_are_told_of_roles_with_a_framework_or_a_weight(self) -> None:
        h = self.harness(policies={"weighted": RolePolicy(weight=2.0)})
        h.framework("f", "r", "s")
        h.framework("g", "away", active=False)
        h.agent("a")
        h.cycle()
        shares = h.allocator.shares(h.cluster)
        assert set(shares) == {"weighted", "r", "s", "away"}
        assert all(share >= 0 for share in shares.values())
        assert sum(share > 0 for share in shares.values()) == 1

    def test_standings_agree_with_the_ledger_and_with_one_another(self) -> None:
        h = self.harness()
        h.framework("f", "a/b", "c")
        h.framework("g", "a/b")
        h.framework("away", "c", active=False)
        for number in range(4):
            h.agent(f"x{number}")
        h.cycle()
        for each in h.allocator.standings(h.cluster):
            assert each.share >= 0
            assert each.weight > 0
            assert 0 <= each.position <= each.contenders
            if each.framework_id:
                assert each.role in h.frameworks[each.framework_id].roles
                held = h.cluster.held(each.framework_id, each.role)
            else:
                held = h.cluster.held_under(each.role)
            assert {name: milli for name, milli in each.held.items() if milli} == dict(held)
            assert (each.position > 0) == (each.framework_id != "away")

    def _codes(self, h: AllocatorHarness, framework_id: str) -> set[str]:
        skips = h.allocator.explain(framework_id, h.cluster, h.now_s)
        for skip in skips:
            assert isinstance(skip, Skip)
            assert skip.message
            assert skip.code in SKIP_CODES, f"{skip.code!r} is no known code"
        return {skip.code for skip in skips}

    def _history(self, seed: int, explain: bool = False) -> list[list[Grant]]:
        run = RandomRun(self.harness(), random.Random(seed), explain=explain)
        run.go(500)
        return run.history

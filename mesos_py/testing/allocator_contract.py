"""The contract of allocators, as tests.  For people who write one.

Subclass it in a test module of yours, name your factory, and let pytest collect it::

    from mesos_py.testing.allocator_contract import AllocatorContract

    class TestMyAllocator(AllocatorContract):
        def make(self, options):
            return MyAllocator(options)

Every allocator must pass; only one that keeps room free on purpose may leave out a
test, by setting it to None in the subclass and saying why beside it.  What an
allocator is *for*, such as fair shares, is not tested here.
"""

from __future__ import annotations

import random

from mesos_py.allocation import (
    AgentChanged,
    AgentRemoved,
    FrameworkChanged,
    FrameworkRemoved,
    Freed,
    PolicyChanged,
    Refusal,
    Revived,
)
from mesos_py.constraints import Host
from mesos_py.errors import InvalidValue
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_explaining import ExplainingContract
from mesos_py.testing.allocator_harness import (
    RaisingConstraint,
    only_hosts,
    winners,
)
from mesos_py.testing.allocator_runs import RandomRun


class AllocatorContract(ExplainingContract):
    """See the module's docstring."""

    # Steps of the random runs; each takes well under a millisecond.
    steps = 3000
    seeds = (1, 2, 3)

    # ---- Whoever wants and may, gets ----------------------------------------

    def test_a_new_agent_reaches_a_waiting_framework(self) -> None:
        h = self.harness()
        h.framework("f")
        assert h.cycle() == []
        h.agent("a")
        assert winners(h.cycle()) == [("f", "a")]

    def test_a_new_framework_reaches_agents_that_were_there_before(self) -> None:
        h = self.harness()
        h.agent("a")
        h.agent("b")
        assert h.cycle() == []
        h.framework("f")
        assert sorted(winners(h.cycle())) == [("f", "a"), ("f", "b")]

    def test_nothing_is_granted_twice_while_it_is_out(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        h.framework("g")
        assert len(h.cycle()) == 1
        for _ in range(3):
            h.allocator.tell(Freed("a"))
            assert h.cycle() == []

    def test_what_comes_back_is_granted_in_the_next_cycle(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        for _ in range(20):
            grants = h.cycle()
            assert winners(grants) == [("f", "a")]
            h.give_back(grants[0])

    def test_what_is_left_of_an_agent_is_granted_too(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4;mem:4096;ports:[31000-31009]")
        h.framework("f")
        h.use(h.cycle()[0], "cpus:1;mem:1024;ports:[31000-31004]", seconds=0)
        grants = h.cycle()
        assert grants[0].resources == Resources.parse("cpus:3;mem:3072;ports:[31005-31009]")

    def test_several_frameworks_share_several_agents(self) -> None:
        h = self.harness()
        for name in ("f", "g"):
            h.framework(name)
        for number in range(8):
            h.agent(f"a{number}")
        got = winners(h.cycle())
        assert {name for name, _ in got} == {"f", "g"}
        assert len(got) == 8

    def test_frameworks_in_a_tree_of_roles_are_all_reached(self) -> None:
        h = self.harness()
        roles = ("a", "a/b", "a/b/c", "d/e/f")
        for number, role in enumerate(roles):
            h.framework(f"f{number}", role)
        for _ in roles:
            h.agent(f"a{len(h.agents)}")
            (grant,) = h.cycles()
            # The next agent is for another.
            h.suppress(grant.framework_id)
        assert {grant.framework_id for grant in h.held} == set(h.frameworks)

    def test_a_role_that_nobody_named_may_be_given_a_policy_and_lose_it(self) -> None:
        h = self.harness()
        h.framework("f", "a/b")
        h.rule("a", weight=2.0, priority=1)
        h.rule("a/b", weight=0.5)
        h.agent("x")
        assert winners(h.cycle()) == [("f", "x")]
        h.rule("a")
        h.rule("a/b")
        h.agent("y")
        assert winners(h.cycle()) == [("f", "y")]
        h.remove_framework("f")
        assert h.cycle() == []

    # ---- Whoever may not, does not ------------------------------------------

    def test_an_inactive_framework_gets_nothing_until_it_is_back(self) -> None:
        h = self.harness()
        h.framework("f", active=False)
        h.agent("a")
        assert h.cycle() == []
        h.change_framework("f", active=True)
        assert winners(h.cycle()) == [("f", "a")]

    def test_a_removed_framework_gets_nothing(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        h.cycle()
        h.remove_framework("f")
        assert h.cycle() == []

    def test_a_suppressed_framework_gets_nothing_until_it_revives(self) -> None:
        h = self.harness()
        h.framework("f")
        h.suppress("f")
        h.agent("a")
        assert h.cycle() == []
        h.revive("f")
        assert winners(h.cycle()) == [("f", "a")]

    def test_only_the_suppressed_role_gets_nothing(self) -> None:
        h = self.harness()
        h.framework("f", "r", "s")
        h.suppress("f", "r")
        h.agent("a")
        assert [grant.role for grant in h.cycle()] == ["s"]

    def test_a_dropped_role_gets_nothing(self) -> None:
        h = self.harness()
        h.framework("f", "r", "s")
        h.change_framework("f", roles=("s",))
        h.agent("a")
        assert [grant.role for grant in h.cycle()] == ["s"]

    def test_an_inactive_agent_is_not_granted_until_it_is_back(self) -> None:
        h = self.harness()
        h.framework("f")
        h.agent("a", active=False)
        assert h.cycle() == []
        h.change_agent("a", active=True)
        assert winners(h.cycle()) == [("f", "a")]

    def test_a_removed_agent_is_not_granted(self) -> None:
        h = self.harness()
        h.framework("f", active=False)
        h.agent("a")
        h.cycle()
        h.remove_agent("a")
        h.change_framework("f", active=True)
        assert h.cycle() == []

    def test_agents_with_gpus_are_kept_for_capable_frameworks(self) -> None:
        h = self.harness()
        h.framework("f")
        h.agent("a", "cpus:4;mem:4096;gpus:1")
        assert h.cycle() == []
        h.framework("g", gpu_capable=True)
        assert winners(h.cycle()) == [("g", "a")]

    def test_becoming_gpu_capable_is_noticed(self) -> None:
        h = self.harness()
        h.framework("f")
        h.agent("a", "cpus:4;mem:4096;gpus:1")
        assert h.cycle() == []
        h.change_framework("f", gpu_capable=True)
        assert winners(h.cycle()) == [("f", "a")]

    def test_a_constraint_is_kept_and_its_change_is_noticed(self) -> None:
        h = self.harness()
        h.agent("a")
        h.agent("b")
        h.framework("f", constraints={"*": only_hosts("b")})
        assert winners(h.cycle()) == [("f", "b")]
        h.change_framework("f", constraints={"*": only_hosts("a")})
        assert winners(h.cycle()) == [("f", "a")]

    def test_changed_attributes_are_noticed_by_constraints(self) -> None:
        h = self.harness()
        h.framework("f", constraints={"*": only_hosts("renamed")})
        h.agent("a")
        assert h.cycle() == []
        h.change_agent("a", host=Host("renamed", {}))
        assert winners(h.cycle()) == [("f", "a")]

    def test_less_than_the_operators_minimum_is_not_offered(self) -> None:
        h = self.harness(min_offer=(Resources.of(cpus=2), Resources.of(mem=64)))
        h.framework("f")
        h.agent("a", "cpus:1;mem:32")
        assert h.cycle() == []
        h.agent("b", "cpus:2;mem:32")
        h.agent("c", "cpus:1;mem:64")
        assert sorted(winners(h.cycle())) == [("f", "b"), ("f", "c")]

    def test_a_frameworks_own_minimum_replaces_the_operators(self) -> None:
        h = self.harness(min_offer=(Resources.of(cpus=2),))
        h.agent("a", "cpus:1")
        h.agent("b", "cpus:8")
        h.framework("f", min_free={"*": [Resources.of(cpus=4)]})
        assert winners(h.cycle()) == [("f", "b")]
        h.framework("g", min_free={"*": []})
        assert winners(h.cycle()) == [("g", "a")]

    # ---- Refusals ------------------------------------------------------------

    def test_a_refusal_blocks_until_it_ends_and_the_wake_up_is_announced(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        h.decline(h.cycle()[0], seconds=5)
        assert h.cycle() == []
        assert h.allocator.next_wake_s() == h.now_s + 5
        h.advance(4.9)
        assert h.cycle() == []
        h.advance(0.1)
        assert winners(h.cycle()) == [("f", "a")]

    def test_a_refusal_without_duration_blocks_nothing(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        h.decline(h.cycle()[0], seconds=0)
        assert winners(h.cycle()) == [("f", "a")]

    def test_a_refusal_blocks_neither_others_nor_another_role_nor_another_agent(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f", "r", "s")
        refused = h.cycle()[0]
        h.decline(refused, seconds=100)
        (second,) = h.cycle()
        assert (second.framework_id, second.role) == ("f", {"r": "s", "s": "r"}[refused.role])
        h.decline(second, seconds=100)
        assert h.cycle() == []
        h.agent("b")
        assert winners(h.cycle()) == [("f", "b")]
        h.framework("g", "r")
        assert winners(h.cycle()) == [("g", "a")]

    def test_a_bigger_bundle_passes_a_refusal(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4;mem:4096")
        h.framework("f")
        task = h.use(h.cycle()[0], "cpus:1;mem:1024", seconds=100)
        assert h.cycle() == []
        h.give_back(task)
        assert h.cycle()[0].resources == Resources.parse("cpus:4;mem:4096")

    def test_the_longest_of_several_refusals_counts(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4")
        h.framework("f")
        h.decline(h.cycle()[0], seconds=50)
        h.allocator.tell(Refusal("f", "*", "a", Resources.of(cpus=4), h.now_s + 10))
        h.advance(20)
        assert h.cycle() == []
        h.advance(30)
        assert winners(h.cycle()) == [("f", "a")]

    def test_revive_ends_the_refusals_of_its_roles_only(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f", "r", "s")
        for _ in range(2):
            h.decline(h.cycle()[0], seconds=1000)
        assert h.cycle() == []
        h.revive("f", "s")
        assert [grant.role for grant in h.cycle()] == ["s"]

    def test_a_disconnect_ends_the_refusals(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        h.decline(h.cycle()[0], seconds=1000)
        h.change_framework("f", active=False)
        h.change_framework("f", active=True)
        assert winners(h.cycle()) == [("f", "a")]

    def test_the_end_of_suppression_ends_the_refusals(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        (grant,) = h.cycle()
        h.suppress("f")
        h.decline(grant, seconds=1000)
        assert h.cycle() == []
        h.change_framework("f", suppressed=frozenset())
        assert winners(h.cycle()) == [("f", "a")]

    def test_dropping_a_role_ends_its_refusals(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f", "r")
        h.decline(h.cycle()[0], seconds=1000)
        h.change_framework("f", roles=())
        h.change_framework("f", roles=("r",))
        assert winners(h.cycle()) == [("f", "a")]

    def test_changed_attributes_end_refusals_and_other_changes_do_not(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        h.decline(h.cycle()[0], seconds=1000)
        h.change_agent("a", active=False)
        h.change_agent("a", active=True)
        assert h.cycle() == []
        h.change_agent("a", host=Host("a", {"rack": "2"}))
        assert winners(h.cycle()) == [("f", "a")]

    def test_removing_an_agent_ends_the_refusals_there(self) -> None:
        h = self.harness()
        h.agent("a")
        h.framework("f")
        h.decline(h.cycle()[0], seconds=1000)
        h.remove_agent("a")
        h.agent("a")
        assert winners(h.cycle()) == [("f", "a")]

    def test_many_refusals_of_one_agent_are_neither_lost_nor_for_ever(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4;mem:4096")
        h.framework("f")
        for number in range(1000):
            resources = Resources.of(cpus=4 + number, mem=5000 - number)
            h.allocator.tell(Refusal("f", "*", "a", resources, h.now_s + 10 + number))
        for _ in range(1010):
            h.cycles()
            h.advance(1)
        assert h.held, "refused for longer than was said"

    def test_decliners_do_not_keep_an_agent_from_one_with_work(self) -> None:
        h = self.harness()
        idle = [f"idle{number}" for number in range(10)]
        for name in [*idle, "work"]:
            h.framework(name)
        h.agent("a")
        for _ in range(len(idle) + 1):
            grants = h.cycle()
            if grants[0].framework_id == "work":
                return
            h.decline(grants[0])
        raise AssertionError("nobody else was left to ask")

    # ---- Robust ---------------------------------------------------------------

    def test_unknown_ids_are_ignored(self) -> None:
        h = self.harness()
        for event in (
            Freed("nobody"),
            AgentRemoved("nobody"),
            FrameworkRemoved("nobody"),
            Refusal("nobody", "*", "nowhere", Resources.of(cpus=1), h.now_s + 5),
            Revived("nobody", ("*",)),
        ):
            h.allocator.tell(event)
        h.framework("f")
        h.allocator.tell(Refusal("f", "*", "nowhere", Resources.of(cpus=1), h.now_s + 5))
        h.allocator.tell(Revived("f", ("not-its-role",)))
        h.agent("a")
        assert winners(h.cycle()) == [("f", "a")]

    def test_events_that_come_twice_do_no_harm(self) -> None:
        h = self.harness()
        h.framework("f")
        h.agent("a")
        for _ in range(2):
            h.allocator.tell(FrameworkChanged(h.frameworks["f"]))
            h.allocator.tell(AgentChanged(h.agents["a"]))
            h.allocator.tell(Freed("a"))
            h.allocator.tell(Revived("f", ("*",)))
        assert winners(h.cycle()) == [("f", "a")]
        for _ in range(2):
            h.allocator.tell(FrameworkRemoved("f"))
            h.allocator.tell(AgentRemoved("a"))
        del h.frameworks["f"]
        assert h.cycle() == []

    def test_one_framework_whose_record_raises_does_not_stop_the_others(self) -> None:
        h = self.harness()
        h.framework("bad", constraints={"*": RaisingConstraint(())})
        h.framework("good")
        for number in range(4):
            h.agent(f"a{number}")
        assert {name for name, _ in winners(h.cycle())} == {"good"}
        assert h.allocator.failures()["bad"].count >= 1
        assert "it burst" in h.allocator.failures()["bad"].reason
        h.remove_framework("bad")
        assert "bad" not in h.allocator.failures()

    def test_an_impossible_weight_is_refused(self) -> None:
        h = self.harness()
        for weight in (0.0, -1.0, float("nan"), float("inf")):
            try:
                h.allocator.tell(PolicyChanged("r", RolePolicy(weight=weight)))
            except InvalidValue:
                continue
            raise AssertionError(f"took the weight {weight}")

    def test_the_same_events_give_the_same_grants(self) -> None:
        assert self._history(7) == self._history(7)

    def test_random_events_keep_the_rules_and_leave_nobody_out(self) -> None:
        for seed in self.seeds:
            RandomRun(self.harness(), random.Random(seed)).go(self.steps)

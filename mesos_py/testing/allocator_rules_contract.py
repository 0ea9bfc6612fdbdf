"""The contract of allocators that keep the rules of operators, as tests.

Beside `allocator_contract`, and used like it: for allocators that know guarantees,
limits and agents of roles (`mesos_py.policy`) and the sizes, short tasks and mandatory
needs of `AllocatorOptions` and `Need`.  All allocators of mesos-py do.
"""

from __future__ import annotations

import random
from typing import Any

from mesos_py.allocation import Allocator, AllocatorOptions, Freed, Grant, Need
from mesos_py.constraints import Host
from mesos_py.policy import RolePolicy
from mesos_py.resources import MILLI, Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, winners
from mesos_py.testing.allocator_rules_runs import RuledRun, random_options


def amounts(**scalars: float) -> dict[str, int]:
    """Of a policy, from amounts in their units."""
    return {name: int(value * MILLI) for name, value in scalars.items()}


def mandatory(cpus: float, count: int = 1, role: str = "*", **fields: Any) -> tuple[Need, ...]:
    return (Need(role, Resources.of(cpus=cpus), count, mandatory=True, **fields),)


class AllocatorRulesContract:
    """See the module's docstring."""

    # Steps of the random runs; the model takes a millisecond for each.
    ruled_steps = 400
    ruled_seeds = tuple(range(12))

    def make(self, options: AllocatorOptions) -> Allocator:
        """A new allocator; called several times per test."""
        raise NotImplementedError

    def harness(self, **options: Any) -> AllocatorHarness:
        chosen = AllocatorOptions(**options)
        return AllocatorHarness(self.make(chosen), chosen)

    # ---- Limits --------------------------------------------------------------

    def test_a_limit_shrinks_what_is_granted_and_then_ends_it(self) -> None:
        h = self.harness(policies={"r": RolePolicy(limit=amounts(cpus=6))})
        h.framework("f", "r")
        h.agent("a", "cpus:4;mem:100;ports:[1-9]")
        h.agent("b", "cpus:4;mem:100;ports:[1-9]")
        h.agent("c", "cpus:4;mem:100;ports:[1-9]")
        got = sorted(str(grant.resources) for grant in h.cycle())
        assert got == ["cpus:2;mem:100;ports:[1-9]", "cpus:4;mem:100;ports:[1-9]"]

    def test_a_limit_counts_for_all_roles_below_it(self) -> None:
        h = self.harness(policies={"top": RolePolicy(limit=amounts(cpus=4))})
        h.framework("f", "top/x/y")
        h.framework("g", "top/z")
        for name in "abc":
            h.agent(name, "cpus:3;mem:100")
        assert sum(grant.resources.scalar("cpus") for grant in h.cycle()) == 4

    def test_room_under_a_limit_is_used_on_an_agent_where_nothing_changed(self) -> None:
        h = self.harness(policies={"r": RolePolicy(limit=amounts(cpus=4))})
        h.framework("f", "r")
        h.agent("a", "cpus:4;mem:100")
        (first,) = h.cycle()
        h.agent("b", "cpus:4;mem:100")
        assert h.cycle() == []
        h.change_agent("a", active=False)
        h.give_back(first)
        assert winners(h.cycle()) == [("f", "b")]

    def test_a_limit_that_is_raised_or_lifted_counts_at_once(self) -> None:
        h = self.harness(policies={"r": RolePolicy(limit=amounts(cpus=0))})
        h.framework("f", "r")
        h.agent("a", "cpus:4;mem:100")
        assert h.cycle() == []
        h.rule("r", limit=amounts(cpus=1))
        assert [grant.resources.scalar("cpus") for grant in h.cycle()] == [1]
        h.rule("r")
        assert [grant.resources.scalar("cpus") for grant in h.cycle()] == [3]

    # ---- Guarantees ----------------------------------------------------------

    def test_what_is_guaranteed_stays_free_though_nobody_wants_it(self) -> None:
        h = self.harness(policies={"r": RolePolicy(guarantee=amounts(cpus=5))})
        h.framework("f", "other")
        for name in "abc":
            h.agent(name, "cpus:4;mem:100")
        assert sum(grant.resources.scalar("cpus") for grant in h.cycle()) == 7
        h.framework("g", "r/below")
        assert sum(grant.resources.scalar("cpus") for grant in h.cycle()) == 5

    def test_who_lacks_something_guaranteed_comes_first_and_gets_that(self) -> None:
        h = self.harness(policies={"r": RolePolicy(guarantee=amounts(cpus=3))})
        h.framework("a-first", "other")
        h.framework("g", "r")
        h.agent("b", "cpus:4;mem:100")
        grants = h.cycle()
        assert grants[0].framework_id == "g"
        assert grants[0].resources.scalar("cpus") >= 3

    def test_guaranteed_names_alone_are_kept(self) -> None:
        h = self.harness(policies={"r": RolePolicy(guarantee=amounts(mem=50))})
        h.framework("f")
        h.agent("a", "cpus:4;mem:100;disk:7")
        (grant,) = h.cycle()
        assert grant.resources == Resources.parse("cpus:4;mem:50;disk:7")

    def test_a_guarantee_below_another_counts_inside_it(self) -> None:
        policies = {
            "r": RolePolicy(guarantee=amounts(cpus=4)),
            "r/x": RolePolicy(guarantee=amounts(cpus=3)),
        }
        h = self.harness(policies=policies)
        h.framework("f", "other")
        h.agent("a", "cpus:10;mem:100")
        (grant,) = h.cycle()
        assert grant.resources.scalar("cpus") == 6

    def test_what_the_guaranteed_role_holds_needs_no_more_room(self) -> None:
        h = self.harness(policies={"r": RolePolicy(guarantee=amounts(cpus=4))})
        h.framework("g", "r")
        h.agent("a", "cpus:4;mem:100")
        h.cycle()
        h.agent("b", "cpus:4;mem:100")
        h.suppress("g")
        h.framework("f", "other")
        assert [grant.resources.scalar("cpus") for grant in h.cycle()] == [4]

    def test_guarantees_feasible_together_are_met_by_tasks_that_end(self) -> None:
        for seed in self.ruled_seeds:
            dice = random.Random(seed)
            policies = {
                "r": RolePolicy(guarantee=amounts(cpus=8)),
                "s": RolePolicy(guarantee=amounts(cpus=3)),
                "s/x": RolePolicy(guarantee=amounts(cpus=2)),
            }
            h = self.harness(policies=policies, seed=seed)
            for number in range(4):
                h.agent(f"a{number}", "cpus:4;mem:400")
            for name in ("greedy", "other"):
                h.framework(name, "t")
            running = self._play(h, dice, [], 20)
            for name, role in (("g", "r"), ("x", "s/x"), ("y", "s/y")):
                h.framework(name, role)
            self._play(h, dice, running, 40)
            for role, policy in policies.items():
                held = h.cluster.held_under(role).get("cpus", 0)
                assert held >= policy.guarantee["cpus"], f"{role} has but {held}, seed {seed}"

    def _play(
        self, h: AllocatorHarness, dice: random.Random, running: list[Grant], rounds: int
    ) -> list[Grant]:
        """In each round one task ends; whatever is offered is filled with tasks again."""
        for _ in range(rounds):
            if running:
                h.give_back(running.pop(dice.randrange(len(running))))
            h.advance(5)
            for grant in h.cycles():
                running += self._filled(h, grant)
        return running

    def _filled(self, h: AllocatorHarness, grant: Grant) -> list[Grant]:
        """Tasks of one cpu on all that was offered."""
        h.held.remove(grant)
        h.cluster.release(grant)
        tasks = []
        for _ in range(grant.resources.scalars.get("cpus", 0) // MILLI):
            task = Grant(grant.framework_id, grant.role, grant.agent_id, Resources.of(cpus=1))
            h.cluster.hold(task)
            h.held.append(task)
            tasks.append(task)
        h.allocator.tell(Freed(grant.agent_id))
        return tasks

    # ---- Reservations --------------------------------------------------------

    def test_a_reserved_agent_is_for_its_role_and_those_below_it(self) -> None:
        h = self.harness(policies={"r": RolePolicy(agents=frozenset({"a"}))})
        h.agent("a")
        for name, role in (("f", "other"), ("g", "rr"), ("h", "*")):
            h.framework(name, role)
        assert h.cycle() == []
        h.framework("z", "r/x")
        assert winners(h.cycle()) == [("z", "a")]

    def test_agents_are_reserved_by_host_name_too_and_changes_count_at_once(self) -> None:
        h = self.harness()
        h.rule("r", agents=frozenset({"box"}))
        h.framework("f", "other")
        h.agent("a")
        h.change_agent("a", host=Host("box", {}))
        assert h.cycle() == []
        h.change_agent("a", host=Host("a", {}))
        (grant,) = h.cycle()
        h.rule("r", agents=frozenset({"a"}))
        h.give_back(grant)
        assert h.cycle() == []
        h.rule("r")
        assert winners(h.cycle()) == [("f", "a")]

    def test_free_agents_of_its_own_count_towards_a_guarantee(self) -> None:
        mine = RolePolicy(guarantee=amounts(cpus=4), agents=frozenset({"mine"}))
        h = self.harness(policies={"r": mine})
        h.agent("mine", "cpus:3;mem:100")
        h.agent("a", "cpus:4;mem:100")
        h.framework("f", "other")
        assert [str(grant.resources) for grant in h.cycle()] == ["cpus:3;mem:100"]

    # ---- Sizes ---------------------------------------------------------------

    def test_an_agent_is_offered_from_its_share_on(self) -> None:
        h = self.harness(min_offer_share=0.5)
        h.framework("f")
        h.agent("a", "cpus:4;mem:400")
        task = h.use(h.cycle()[0], "cpus:3;mem:100", seconds=0)
        assert h.cycle() == []
        h.give_back(task)
        assert winners(h.cycle()) == [("f", "a")]
        h.agent("tiny", "cpus:0.1;mem:32")
        assert winners(h.cycle()) == [("f", "tiny")]

    def test_a_large_task_is_not_starved_by_small_ones(self) -> None:
        h = self.harness(min_offer_share=0.75)
        h.agent("a", "cpus:4;mem:400")
        h.framework("small", min_free={"*": []})
        tasks = []
        while grants := h.cycle():
            tasks.append(h.use(grants[0], "cpus:1;mem:100", seconds=0))
        assert len(tasks) == 2, "with one task more the large one would not fit again"
        h.framework("large", min_free={"*": [Resources.of(cpus=3, mem=300)]})
        for _ in range(10):
            if tasks:
                h.give_back(tasks.pop(0))
            for grant in h.cycle():
                if grant.framework_id == "large":
                    return
                tasks.append(h.use(grant, "cpus:1;mem:100", seconds=0))
        raise AssertionError("the large task has not found room")

    def test_a_large_agent_is_dealt_out_in_parts(self) -> None:
        h = self.harness(max_offer=Resources.of(cpus=4, mem=400))
        for name in "fg":
            h.framework(name)
        h.agent("a", "cpus:16;mem:1600;ports:[1-9]")
        first = h.cycle()
        assert sorted(winners(first)) == [("f", "a"), ("g", "a")]
        assert {grant.resources.scalar("cpus") for grant in first} == {4}
        assert sum(bool(grant.resources.ranges) for grant in first) == 1

    def test_who_got_a_part_is_asked_again_although_nothing_else_changed(self) -> None:
        h = self.harness(max_offer=Resources.of(cpus=4))
        h.framework("f", "r", "s")
        h.agent("a", "cpus:10;mem:400")
        got = []
        for _ in range(3):
            (grant,) = h.cycle()
            got.append(grant.resources.scalar("cpus"))
            if len(got) < 3:
                h.advance_to_wake()
        assert got == [4, 4, 2]
        assert h.allocator.next_wake_s() is None

    def test_who_declines_a_part_is_not_asked_again_and_again(self) -> None:
        h = self.harness(max_offer=Resources.of(cpus=4, mem=400))
        h.framework("f")
        h.agent("a", "cpus:16;mem:1600")
        h.decline(h.cycle()[0], seconds=5)
        start_s = h.now_s
        asked = 0
        while not asked:
            h.advance_to_wake()
            asked += len(h.cycle())
        assert h.now_s == start_s + 5

    # ---- Short tasks ---------------------------------------------------------

    def test_part_of_an_agent_is_for_short_tasks(self) -> None:
        h = self.harness(short_share=0.25, short_max_s=30.0)
        h.framework("f")
        h.agent("a", "cpus:8;mem:800;ports:[1-9]")
        grants = h.cycle()
        found = {grant.max_task_s: str(grant.resources) for grant in grants}
        assert found == {None: "cpus:6;mem:600;ports:[1-9]", 30.0: "cpus:2;mem:200"}
        long = next(grant for grant in grants if grant.max_task_s is None)
        h.give_back(long)
        assert [grant.max_task_s for grant in h.cycle()] == [None]

    def test_long_tasks_never_get_what_is_for_short_ones(self) -> None:
        h = self.harness(short_share=0.25)
        h.framework("f")
        h.agent("a", "cpus:8;mem:800")
        for grant in h.cycle():
            if grant.max_task_s is not None:
                h.give_back(grant)
        for _ in range(3):
            (grant,) = h.cycle()
            assert grant.max_task_s is not None
            assert grant.resources == Resources.of(cpus=2, mem=200)
            h.give_back(grant)

    def test_who_refuses_room_for_short_tasks_is_offered_the_same_for_long_ones(self) -> None:
        h = self.harness(short_share=0.5)
        h.framework("f")
        h.agent("a", "cpus:8;mem:800")
        grants = {grant.max_task_s is None: grant for grant in h.cycle()}
        h.decline(grants[False], seconds=1000)
        h.give_back(grants[True])
        assert [grant.max_task_s for grant in h.cycle()] == [None]

    def test_whole_gpus_are_kept_or_none(self) -> None:
        h = self.harness(short_share=0.5)
        h.framework("f", gpu_capable=True)
        h.agent("a", "cpus:8;mem:800;gpus:3")
        got = {grant.max_task_s is None: grant.resources.scalar("gpus") for grant in h.cycle()}
        assert got == {True: 2, False: 1}

    # ---- Admission -----------------------------------------------------------

    def test_two_who_need_more_than_half_do_not_wait_for_each_other(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4;mem:400")
        h.agent("b", "cpus:4;mem:400")
        h.framework("f", needs=mandatory(2, 3))
        h.framework("g", needs=mandatory(2, 3))
        assert {name for name, _ in winners(h.cycle())} == {"f"}
        assert set(h.allocator.waiting()) == {"g"}
        for grant in list(h.held):
            h.give_back(grant)
        assert {name for name, _ in winners(h.cycle())} == {"f"}
        h.remove_framework("f")
        assert {name for name, _ in winners(h.cycle())} == {"g"}
        assert h.allocator.waiting() == {}

    def test_who_waits_is_let_in_when_agents_come(self) -> None:
        h = self.harness()
        h.framework("f", needs=mandatory(4, 2))
        h.agent("a", "cpus:7;mem:400")
        assert h.cycle() == []
        assert "cpus" in h.allocator.waiting()["f"]
        h.agent("b", "cpus:3;mem:400")
        assert h.cycle() == []
        h.agent("c", "cpus:4;mem:400")
        assert {name for name, _ in winners(h.cycle())} == {"f"}

    def test_who_waits_is_let_in_when_another_needs_less(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4;mem:400")
        h.framework("f", needs=mandatory(1, 3))
        h.framework("g", needs=mandatory(1, 2))
        (grant,) = h.cycle()
        h.change_framework("f", needs=mandatory(1, 2))
        h.suppress("f")
        h.give_back(grant)
        assert winners(h.cycle()) == [("g", "a")]

    def test_who_is_in_stays_until_he_needs_more_than_there_is(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4;mem:400")
        h.framework("f", needs=mandatory(4))
        (grant,) = h.cycle()
        h.agent("b", "cpus:1;mem:100")
        h.remove_agent("a")
        assert winners(h.cycle()) == [("f", "b")]
        h.change_framework("f", needs=mandatory(4, 2))
        h.agent("c", "cpus:1;mem:100")
        assert h.cycle() == []
        h.change_framework("f", needs=())
        assert winners(h.cycle()) == [("f", "c")]
        assert grant not in h.held

    def test_those_without_mandatory_needs_are_not_affected(self) -> None:
        h = self.harness()
        h.agent("a", "cpus:4;mem:400")
        h.framework("f", needs=mandatory(100))
        h.framework("g", needs=(Need("*", Resources.of(cpus=100)),))
        assert winners(h.cycle()) == [("g", "a")]
        assert set(h.allocator.waiting()) == {"f"}

    # ---- Random --------------------------------------------------------------

    def test_random_rules_are_kept_and_nobody_is_left_out(self) -> None:
        for seed in self.ruled_seeds:
            dice = random.Random(seed)
            options = random_options(dice)
            h = AllocatorHarness(self.make(options), options)
            RuledRun(h, dice, explain=bool(seed % 2)).go(self.ruled_steps)

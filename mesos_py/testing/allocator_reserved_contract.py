"""The contract of allocators that know what is reserved for roles, as tests.

Beside `allocator_rules_contract`, and used like it.  Reserved amounts have names of their own
in what is free (`mesos_py.reserved`).
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from mesos_py.allocation import Allocator, AllocatorOptions
from mesos_py.policy import RolePolicy
from mesos_py.reserved import Reservation, is_dynamic, key_of, plain_name
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, winners
from mesos_py.testing.allocator_rules_contract import amounts
from mesos_py.testing.allocator_rules_runs import RuledRun, random_options

REFINED = (Reservation("a"), Reservation("a/x", "dynamic", "alice"))


class ReservedRun(RuledRun):
    """With agents that are reserved in part."""

    def _add_agent(self) -> None:
        self._born += 1
        parts = [f"cpus:{self.dice.randint(1, 8)};mem:{self.dice.choice((16, 512, 4096))}"]
        for role in self.dice.sample(self.roles, self.dice.randint(0, 2)):
            parts.append(f"cpus({role}):{self.dice.randint(1, 4)}")
            if self.dice.random() < 0.5:
                parts.append(f"mem({role}):512;ports({role}):[1-9]")
        self.harness.agent(f"r{self._born}", ";".join(parts), rack=self.dice.choice("xyz"))


class ConvertedRun(ReservedRun):
    """And in other parts while they run."""

    def __init__(
        self, harness: AllocatorHarness, dice: random.Random, explain: bool = False
    ) -> None:
        super().__init__(harness, dice, explain)
        self._choices += [(3, self._convert)]

    def _convert(self) -> None:
        """Something that is free is reserved, or no more."""
        if not self.harness.agents:
            return
        agent_id = self.dice.choice(sorted(self.harness.agents))
        free = self.harness.cluster.free(agent_id)
        cpus = {key: milli for key, milli in free.scalars.items() if plain_name(key) == "cpus"}
        if not cpus:
            return
        key = self.dice.choice(sorted(cpus))
        milli = self.dice.choice((cpus[key], min(1000, cpus[key])))
        made = key_of("cpus", (Reservation(self.dice.choice(self.roles), "dynamic"),))
        other = "cpus" if is_dynamic(key) else made
        if key == "cpus" or is_dynamic(key):
            self.harness.convert(agent_id, Resources({key: milli}), Resources({other: milli}))


def amounts_of(text: str) -> Resources:
    return Resources.parse_reserved(text)


class AllocatorReservedContract:
    """See the module's docstring."""

    reserved_steps = 300
    # In the last a role below takes what is reserved for one above, and lacks less then.
    reserved_seeds = (*range(4), 117)

    def make(self, options: AllocatorOptions) -> Allocator:
        """A new allocator; called several times per test."""
        raise NotImplementedError

    def _harness(self, **options: Any) -> AllocatorHarness:
        chosen = AllocatorOptions(**options)
        return AllocatorHarness(self.make(chosen), chosen)

    def test_what_is_reserved_goes_to_its_role_alone(self) -> None:
        h = self._harness()
        h.framework("other", "b")
        h.agent("mine", "cpus(a):4;mem(a):100")
        assert h.cycle() == []
        h.framework("f", "a")
        (grant,) = h.cycle()
        assert grant.resources == Resources.parse_reserved("cpus(a):4;mem(a):100")

    def test_roles_below_share_it_and_those_above_do_not(self) -> None:
        h = self._harness()
        h.framework("above", "a")
        h.framework("aside", "a/xx")
        h.agent("one", "cpus(a/x):4")
        assert h.cycle() == []
        h.framework("below", "a/x/y")
        assert winners(h.cycle()) == [("below", "one")]

    def test_it_comes_with_what_is_for_everybody(self) -> None:
        h = self._harness()
        h.framework("f", "a")
        h.agent("one", "cpus:1;mem:100;cpus(a):4;cpus(b):2;ports(a):[1-9];ports(b):[10-19]")
        (grant,) = h.cycle()
        assert grant.resources == Resources.parse_reserved(
            "cpus:1;mem:100;cpus(a):4;ports(a):[1-9]"
        )

    def test_what_is_left_of_it_is_offered_where_room_is_kept_for_short_tasks(self) -> None:
        h = self._harness(short_share=0.5, short_max_s=60.0)
        h.framework("f", "a")
        h.agent("one", "cpus(a):4;mem(a):400")
        (grant,) = h.cycle()
        assert grant.max_task_s is None
        h.give_back(grant)
        used = Resources.parse_reserved("cpus(a):3;mem(a):300")
        h.cluster.hold(replace(grant, resources=used))
        (again,) = h.cycle()
        assert again.resources == Resources.parse_reserved("cpus(a):1;mem(a):100")

    def test_what_one_leaves_is_there_for_the_other(self) -> None:
        h = self._harness()
        h.framework("f", "a")
        h.framework("g", "b")
        h.agent("one", "cpus:2;mem:100;cpus(a):4;cpus(b):4")
        granted = {grant.framework_id: grant.resources for grant in h.cycle()}
        assert {one: bundle.plain.scalar("cpus") for one, bundle in granted.items()} in (
            {"f": 6, "g": 4},
            {"f": 4, "g": 6},
        )

    def test_what_is_reserved_while_the_agent_runs_goes_to_its_role_alone(self) -> None:
        h = self._harness()
        h.agent("one", "cpus:4;mem:100")
        mine = Resources({key_of("cpus", (Reservation("a", "dynamic", "alice"),)): 3000})
        h.convert("one", amounts_of("cpus:3"), mine)
        h.framework("g", "b")
        (grant,) = h.cycle()
        assert grant.resources == amounts_of("cpus:1;mem:100")
        h.framework("f", "a")
        (grant,) = h.cycle()
        assert (grant.framework_id, grant.resources) == ("f", mine)
        h.decline(grant, seconds=60)
        h.convert("one", mine, amounts_of("cpus:3"))
        assert sum(grant.resources.scalar("cpus") for grant in h.cycles()) == 3

    def test_what_is_left_of_an_agent_is_offered_when_the_rest_is_reserved(self) -> None:
        h = self._harness()
        h.framework("g", "b")
        h.agent("one", "cpus:4;mem:100")
        (grant,) = h.cycle()
        h.decline(grant, seconds=60)
        mine = Resources({key_of("cpus", (Reservation("b", "dynamic"),)): 3000})
        h.convert("one", amounts_of("cpus:3"), mine)
        # It was refused without that: what is reserved now is something else.
        (again,) = h.cycle()
        assert again.resources.contains(mine)

    def test_it_counts_in_the_share_of_who_holds_it(self) -> None:
        h = self._harness()
        h.framework("f", "a")
        h.framework("g", "b")
        h.agent("one", "cpus(a):8")
        assert winners(h.cycle()) == [("f", "one")]
        assert h.cluster.held("f", "a") == {"cpus": 8000}
        assert h.cluster.cluster_total() == {"cpus": 8000}

    def test_a_refusal_of_one_amount_does_not_block_another(self) -> None:
        h = self._harness()
        h.framework("f", "a", "b")
        h.agent("one", "cpus(a):8;cpus(b):8")
        first, second = h.cycle()
        assert {first.role, second.role} == {"a", "b"}
        h.decline(first, seconds=60)
        assert h.cycle() == []
        h.give_back(second)
        assert [grant.role for grant in h.cycle()] == [second.role]

    def test_refined_reservations_go_to_who_knows_of_them(self) -> None:
        h = self._harness()
        h.framework("f", "a/x")
        total = Resources({key_of("cpus", REFINED): 4000, key_of("cpus", REFINED[:1]): 1000})
        h.agent("two", total)
        (grant,) = h.cycle()
        assert grant.resources == Resources.parse_reserved("cpus(a):1")
        h.framework("g", "a/x", refines=True)
        (grant,) = h.cycle()
        assert grant.resources == Resources({key_of("cpus", REFINED): 4000})

    def test_limits_and_guarantees_count_what_is_reserved_as_had(self) -> None:
        h = self._harness(policies={"a": RolePolicy(limit=amounts(cpus=5))})
        h.framework("f", "a")
        h.agent("one", "cpus(a):4;mem:100")
        h.cycle()
        h.agent("two", "cpus:8;mem:100")
        assert [grant.resources.scalar("cpus") for grant in h.cycle()] == [1]

    def test_what_is_reserved_and_free_counts_for_a_guarantee(self) -> None:
        h = self._harness(policies={"a": RolePolicy(guarantee=amounts(cpus=5))})
        h.framework("g", "b")
        h.agent("one", "cpus(a):4")
        h.agent("two", "cpus:8;mem:100")
        assert [grant.resources.scalar("cpus") for grant in h.cycle()] == [7]

    def test_a_used_up_limit_does_not_keep_from_what_is_reserved(self) -> None:
        h = self._harness(policies={"a": RolePolicy(limit=amounts(cpus=0))})
        h.framework("f", "a")
        h.agent("one", "cpus:8;mem:100;cpus(a):4;mem(a):50")
        (grant,) = h.cycle()
        assert grant.resources == Resources.parse_reserved("cpus(a):4;mem(a):50")

    def test_short_tasks_get_nothing_of_what_is_reserved(self) -> None:
        h = self._harness(short_share=0.5)
        h.framework("f", "a")
        h.agent("one", "cpus:8;mem:100;cpus(a):4")
        granted = {grant.max_task_s is None: grant.resources for grant in h.cycle()}
        assert granted[True] == Resources.parse_reserved("cpus:4;mem:50;cpus(a):4")
        assert granted[False] == Resources.parse("cpus:4;mem:50")

    def test_what_is_for_short_tasks_is_as_much_when_the_rest_is_reserved(self) -> None:
        h = self._harness(short_share=0.25)
        h.agent("one", "cpus:8;mem:100;cpus(a):4")
        mine = Resources({key_of("cpus", (Reservation("a", "dynamic", "alice"),)): 5000})
        h.convert("one", amounts_of("cpus:5"), mine)
        h.framework("f", "b")
        granted = {grant.max_task_s is None: grant.resources for grant in h.cycle()}
        assert granted[True] == Resources.parse("cpus:1;mem:75")
        assert granted[False] == Resources.parse("cpus:2;mem:25")

    def test_a_share_that_must_be_free_is_of_what_nobody_has_reserved(self) -> None:
        h = self._harness(min_offer_share=0.5)
        h.agent("one", "cpus:2;mem:100;cpus(a):6;mem(a):300")
        h.framework("f", "a")
        (grant,) = h.cycle()
        h.give_back(grant)
        # All of its own is used, which is nobody else's affair.
        h.cluster.hold(replace(grant, resources=amounts_of("cpus(a):6;mem(a):300")))
        h.framework("g", "b")
        (grant,) = h.cycle()
        assert grant.resources == Resources.parse("cpus:2;mem:100")

    def test_what_is_reserved_and_free_makes_no_small_piece_large(self) -> None:
        h = self._harness(min_offer_share=0.5)
        h.agent("one", "cpus:4;mem:400;cpus(b):8;mem(b):800")
        h.framework("f", "a")
        (grant,) = h.cycle()
        task = h.use(grant, "cpus:3;mem:100", seconds=0)
        assert h.cycle() == []
        h.give_back(task)
        assert winners(h.cycle()) == [("f", "one")]

    def test_a_role_is_offered_its_own_in_any_case(self) -> None:
        h = self._harness(min_offer_share=0.5)
        h.agent("one", "cpus:4;mem:400;cpus(a):1;mem(a):10")
        h.framework("f", "a")
        (grant,) = h.cycle()
        h.give_back(grant)
        h.cluster.hold(replace(grant, resources=amounts_of("cpus:3;mem:300;cpus(a):0.5")))
        (grant,) = h.cycle()
        assert grant.resources == amounts_of("cpus(a):0.5;mem(a):10")

    def test_random_histories_in_which_reservations_change_keep_the_rules(self) -> None:
        for seed in self.reserved_seeds[:4]:
            dice = random.Random(seed)
            options = random_options(dice)
            h = AllocatorHarness(self.make(options), options)
            ConvertedRun(h, dice).go(self.reserved_steps)

    def test_random_histories_with_reserved_agents_keep_the_rules(self) -> None:
        for seed in self.reserved_seeds:
            dice = random.Random(seed)
            options = random_options(dice)
            h = AllocatorHarness(self.make(options), options)
            ReservedRun(h, dice).go(self.reserved_steps)

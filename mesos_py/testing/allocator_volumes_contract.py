"""The contract of allocators that know of persistent volumes, as tests.

Beside `allocator_reserved_contract`, and used like it.  A volume is an amount of reserved disk
with a name of its own (`mesos_py.persistent`), which is granted whole or not at all.
"""

from __future__ import annotations

import random
from typing import Any, Final

from mesos_py.allocation import Allocator, AllocatorOptions, Need
from mesos_py.persistent import Volume
from mesos_py.policy import RolePolicy
from mesos_py.reserved import (
    Reservation,
    disk_of,
    is_reserved,
    is_volume,
    key_of,
    plain_name,
    stack_of,
)
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, winners
from mesos_py.testing.allocator_reserved_contract import REFINED, ConvertedRun, amounts_of
from mesos_py.testing.allocator_rules_contract import amounts
from mesos_py.testing.allocator_rules_runs import random_options

_MINE: Final = (Reservation("a"),)


class VolumesRun(ConvertedRun):
    """With agents whose reserved disk is made volumes, and unmade, while they run."""

    def __init__(
        self, harness: AllocatorHarness, dice: random.Random, explain: bool = False
    ) -> None:
        super().__init__(harness, dice, explain)
        self._choices += [(6, self._change_volume), (6, self._use_volume)]

    def _add_agent(self) -> None:
        self._born += 1
        parts = [f"cpus:{self.dice.randint(1, 8)};mem:512;disk:{self.dice.choice((50, 500))}"]
        for role in self.dice.sample(self.roles, 2):
            parts.append(f"disk({role}):100;mem({role}):{self.dice.choice((16, 512))}")
        self.harness.agent(f"v{self._born}", ";".join(parts), rack=self.dice.choice("xyz"))

    def _change_volume(self) -> None:
        """One is made of disk that is free, or one that nobody uses is another then."""
        if not self.harness.agents:
            return
        agent_id = self.dice.choice(sorted(self.harness.agents))
        free = self.harness.cluster.free(agent_id).scalars
        disks = [key for key in free if is_reserved(key) and plain_name(key) == "disk"]
        if not disks:
            return
        key = self.dice.choice(sorted(disks))
        disk = disk_of(key)
        if not is_volume(key):
            self._born += 1
            milli = min(free[key], 1000 * self.dice.randint(1, 60))
            made = key_of("disk", stack_of(key), Volume(f"v{self._born}", "data"))
            self._become(agent_id, {key: milli}, {made: milli})
        elif self.dice.random() < 0.3:
            self._become(agent_id, {key: free[key]}, {disk: free[key]})
        elif self.dice.random() < 0.5 and disk in free:
            more = min(free[disk], 5000)
            self._become(agent_id, {key: free[key], disk: more}, {key: free[key] + more})
        elif free[key] > 1000:
            left = {key: free[key] - 1000, disk: 1000}
            self._become(agent_id, {key: free[key]}, left)

    def _become(self, agent_id: str, consumed: dict[str, int], converted: dict[str, int]) -> None:
        self.harness.convert(agent_id, Resources(consumed), Resources(converted))

    def _use_volume(self) -> None:
        offers = [each for each in self.harness.held if any(map(is_volume, each.resources.names()))]
        if offers:
            grant = self.dice.choice(offers)
            key = self.dice.choice(sorted(filter(is_volume, grant.resources.scalars)))
            seconds = self.dice.choice((0.0, 5.0, 60.0))
            self.harness.use(grant, Resources({key: grant.resources.scalars[key]}), seconds)


def volume(disk_mb: float, *stack: Reservation, volume_id: str = "v1") -> Resources:
    """One of disk that is reserved so; for the role a if nothing is said."""
    made = key_of("disk", stack or _MINE, Volume(volume_id, "data"))
    return Resources.of(disk=disk_mb).renamed(lambda _: made)


class AllocatorVolumesContract:
    """See the module's docstring."""

    volumes_steps = 300
    volumes_seeds = range(4)

    def make(self, options: AllocatorOptions) -> Allocator:
        """A new allocator; called several times per test."""
        raise NotImplementedError

    def _scene(self, **options: Any) -> AllocatorHarness:
        """With an agent on which there is a volume of the role a."""
        chosen = AllocatorOptions(**options)
        h = AllocatorHarness(self.make(chosen), chosen)
        h.agent("one", amounts_of("cpus:4;mem:400;disk:100;cpus(a):1;disk(a):10") + volume(40))
        return h

    def test_a_volume_goes_to_its_role_alone(self) -> None:
        h = self._scene()
        h.framework("other", "b")
        (grant,) = h.cycle()
        assert grant.resources == amounts_of("cpus:4;mem:400;disk:100")
        h.framework("f", "a")
        (grant,) = h.cycle()
        assert grant.resources == amounts_of("cpus(a):1;disk(a):10") + volume(40)

    def test_those_below_its_role_have_it_and_those_above_do_not(self) -> None:
        chosen = AllocatorOptions()
        h = AllocatorHarness(self.make(chosen), chosen)
        h.framework("above", "a")
        lower = Reservation("a/x")
        h.agent("one", amounts_of("cpus(a/x):1") + volume(40, lower))
        assert h.cycle() == []
        h.framework("below", "a/x/y")
        assert winners(h.cycle()) == [("below", "one")]

    def test_no_rule_about_sizes_takes_a_part_of_it(self) -> None:
        h = self._scene(
            max_offer=Resources.of(cpus=1, disk=5),
            short_share=0.5,
            short_max_s=60.0,
            policies={"a": RolePolicy(limit=amounts(cpus=2, disk=5))},
        )
        h.framework("f", "a")
        granted = [grant for grant in h.cycles() if any(map(is_volume, grant.resources.names()))]
        (grant,) = granted
        assert grant.resources.contains(volume(40))
        assert grant.max_task_s is None

    def test_needs_do_not_take_a_part_of_it(self) -> None:
        h = self._scene()
        need = Need("a", Resources.of(cpus=1, disk=5), mandatory=True)
        h.framework("f", "a", needs=(need,))
        h.framework("g", "b")
        granted = [grant for grant in h.cycles() if any(map(is_volume, grant.resources.names()))]
        (grant,) = granted
        assert grant.framework_id == "f"
        assert grant.resources.contains(volume(40))

    def test_what_is_left_when_a_task_uses_it_is_offered_without_it(self) -> None:
        h = self._scene()
        h.framework("f", "a")
        (grant,) = h.cycle()
        used = h.use(grant, volume(40) + Resources.of(cpus=1), seconds=0)
        (again,) = h.cycle()
        assert again.resources == amounts_of("cpus:3;mem:400;disk:100;cpus(a):1;disk(a):10")
        h.decline(again, seconds=60)
        h.give_back(used)
        (whole,) = h.cycle()
        assert whole.resources.contains(volume(40))

    def test_a_refusal_is_of_the_volume_as_it_was(self) -> None:
        h = self._scene()
        h.framework("f", "a")
        (grant,) = h.cycle()
        h.decline(grant, seconds=60)
        assert h.cycle() == []
        h.convert("one", volume(40), volume(30) + amounts_of("disk(a):10"))
        (again,) = h.cycle()
        assert again.resources.contains(volume(30))
        h.decline(again, seconds=60)
        h.convert("one", volume(30) + amounts_of("disk(a):10"), volume(40))
        # That was refused, when there was more beside it.
        assert h.cycle() == []

    def test_it_counts_as_disk_in_the_share_of_who_holds_it(self) -> None:
        h = self._scene()
        h.framework("f", "a")
        h.framework("g", "b")
        h.suppress("g")
        h.cycle()
        assert h.cluster.held("f", "a")["disk"] == 150_000
        assert h.cluster.cluster_total()["disk"] == 150_000

    def test_free_or_not_it_counts_for_guarantees_and_limits(self) -> None:
        chosen = AllocatorOptions(policies={"a": RolePolicy(limit=amounts(disk=60))})
        h = AllocatorHarness(self.make(chosen), chosen)
        h.framework("f", "a")
        h.agent("one", amounts_of("cpus(a):1") + volume(40))
        (grant,) = h.cycle()
        h.use(grant, volume(40), seconds=60)
        h.agent("two", "cpus:8;mem:100;disk:100")
        assert [grant.resources.scalar("disk") for grant in h.cycle()] == [20]

    def test_of_refined_reservations_it_goes_to_who_knows_of_them(self) -> None:
        chosen = AllocatorOptions()
        h = AllocatorHarness(self.make(chosen), chosen)
        h.framework("f", "a/x")
        mine = volume(40, *REFINED)
        h.agent("one", mine + amounts_of("cpus(a):1"))
        (grant,) = h.cycle()
        assert grant.resources == amounts_of("cpus(a):1")
        h.framework("g", "a/x", refines=True)
        h.give_back(grant)
        h.suppress("f")
        (grant,) = h.cycle()
        assert (grant.framework_id, grant.resources.contains(mine)) == ("g", True)

    def test_random_histories_in_which_volumes_come_and_go_keep_the_rules(self) -> None:
        for seed in self.volumes_seeds:
            dice = random.Random(seed)
            options = random_options(dice)
            h = AllocatorHarness(self.make(options), options)
            VolumesRun(h, dice).go(self.volumes_steps)

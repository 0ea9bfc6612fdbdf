"""Whoever was held back is asked again as soon as there is more for him."""

import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import AllocatorOptions
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, only_hosts

LACKING = RolePolicy(guarantee={"cpus": 4000})


# The cycle begins with another agent each.
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [DrfAllocator, LotteryAllocator, PriorityAllocator])
@pytest.mark.parametrize(
    ("two", "above"),
    [
        pytest.param("cpus(a):2;mem(a):64", RolePolicy(), id="reserved for the role above"),
        pytest.param("cpus:2;mem:64", RolePolicy(agents=frozenset({"two"})), id="of its agents"),
    ],
)
def test_what_one_lacks_no_more_goes_in_that_cycle_to_who_had_his_part_before(
    two, above, make, seed
):
    options = AllocatorOptions(policies={"a": above, "a/x": LACKING}, seed=seed)
    h = AllocatorHarness(make(options), options)
    h.framework("guaranteed", "a/x", constraints={"a/x": only_hosts("two")})
    h.framework("other", "b")
    h.agent("one", "cpus:6;mem:640")
    h.agent("two", two)
    # Of the six the other may have two while four are lacking, and two more when two are.
    found = {one.framework_id: one.resources for one in h.cycle()}
    assert found["other"] == Resources.parse("cpus:4;mem:640")
    assert found["guaranteed"].plain == Resources.parse("cpus:2;mem:64")
    assert not h.left_out()

from master.allocator.sums import SHARED, UNCOUNTED, FreeSums, ReservedSums
from mesos_py.resources import EMPTY, Resources


def test_each_agent_counts_to_its_pool_with_what_was_said_last():
    sums = FreeSums()
    sums.put("a", SHARED, {"cpus": 4000, "mem": 100})
    sums.put("b", SHARED, {"cpus": 1000})
    sums.put("c", "role", {"cpus": 500})
    assert sums.pools() == {"": {"cpus": 5000, "mem": 100}, "role": {"cpus": 500}}
    sums.put("a", SHARED, {"cpus": 2000})
    sums.put("b", "role", {"cpus": 1000})
    assert sums.pools() == {"": {"cpus": 2000}, "role": {"cpus": 1500}}


def test_what_is_gone_or_uncounted_is_in_no_sum():
    sums = FreeSums()
    sums.put("a", SHARED, {"cpus": 4000})
    sums.put("a", UNCOUNTED, {"cpus": 4000})
    assert sums.pools() == {}
    sums.put("b", SHARED, {"cpus": 1})
    sums.drop("b")
    sums.drop("b")
    sums.drop("a")
    assert sums.pools() == {}


def test_roles_for_which_nothing_is_reserved_any_more_are_in_no_sum():
    sums = ReservedSums()
    sums.put("a", Resources.parse_reserved("cpus(x):2;mem(x):5;cpus(y):1"))
    sums.put("b", Resources.parse_reserved("cpus(x):1"))
    assert sums.by_role() == {"x": {"cpus": 3000, "mem": 5000}, "y": {"cpus": 1000}}
    sums.put("a", EMPTY)
    assert sums.by_role() == {"x": {"cpus": 1000}}
    sums.put("b", EMPTY)
    assert sums.by_role() == {}

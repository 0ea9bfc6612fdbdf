import pytest

from frameworks.torque.core.records import Job, Size
from frameworks.torque.core.verdicts import Bounds, never

AGENTS = [Size(4, 1000), Size(2, 4000)]


def verdict(job, **bounds) -> str:
    given = {"most_nodes": 10, "share": Size(100, 100_000), "limit": None, "agents": AGENTS}
    made = Bounds(**{"one_per_agent": False, **given, **bounds})
    return never(Job("1", "n", "u", "waiting", **job), made)


@pytest.mark.parametrize(
    ("job", "bounds", "why"),
    [
        ({"cpus": 4, "mem_mb": 1000}, {}, ""),
        ({"nodes": 11}, {}, "asks for 11 nodes, there are never more than 10"),
        ({"nodes": 2, "cpus": 2}, {"share": Size(3, 10)}, "asks for 4 cpus, no more than 3 are"),
        ({"mem_mb": 11}, {"share": Size(3, 10)}, "asks for 11 MB of memory, no more than 10 are"),
        ({"cpus": 3}, {"limit": Size(2, 900)}, "asks for 3 cpus, its role is limited to 2"),
        ({"mem_mb": 901}, {"limit": Size(2, 900)}, "MB of memory, its role is limited to 900"),
        ({"cpus": 2, "mem_mb": 900}, {"limit": Size(2, 900)}, ""),
        ({"cpus": 5}, {}, "asks for 5 cpus on a node, the largest agent has 4"),
        ({"mem_mb": 4001}, {}, "asks for 4001 MB of memory on a node, the largest agent has 4000"),
        ({"cpus": 3, "mem_mb": 2000}, {}, "asks for 1 nodes with 3 cpus and 2000 MB each, the"),
        ({"cpus": 2, "nodes": 3, "mem_mb": 500}, {}, ""),
        ({"cpus": 2, "nodes": 3}, {"one_per_agent": True}, "the cluster has room for 2"),
        ({"cpus": 2, "nodes": 4}, {}, "the cluster has room for 3"),
    ],
)
def test_what_can_never_run(job, bounds, why):
    said = verdict(job, **bounds)
    assert why in said
    assert bool(said) == bool(why)


def test_what_is_not_known_is_no_verdict():
    assert verdict({"cpus": 5}, agents=None) == ""
    assert verdict({"cpus": 5}, agents=[]) == ""
    assert verdict({"cpus": 4}, share=None) == ""

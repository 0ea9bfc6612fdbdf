"""The allocators in a real master: chosen by name, fed by what frameworks say."""

from collections import Counter
from contextlib import ExitStack

from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.waiting import until


def who_is_asked(frameworks: dict[str, Framework]) -> str:
    """Which of them has been offered something."""
    found: list[str] = []

    def look() -> list[str]:
        found[:] = [name for name, framework in frameworks.items() if framework.live_offers()]
        return found

    until(look)
    return found[0]


def test_fair_shares_go_down_the_tree_of_roles(tmp_path):
    """Twelve cpus, one by one: 8 to 4 for a and b, and of the 8 six to two."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(tmp_path, weights="a=2,a/x=3"))
        frameworks = {
            role: stack.enter_context(Framework(cluster.address, role, roles=[role]))
            for role in ("a/x", "a/y", "b")
        }
        cluster.start_agent("m", "cpus:12;mem:1024;disk:0")
        count = Counter[str]()
        while count.total() < 12:
            role = who_is_asked(frameworks)
            frameworks[role].run("exec sleep 600", cpus=1)
            count[role] += 1
        assert count == {"a/x": 6, "a/y": 2, "b": 4}
        told = cluster.operator.explain_role("a").standings
        shares = {each.role: round(each.weighted_share, 3) for each in told}
        assert shares == {"a": 0.333, "a/x": 0.167, "a/y": 0.167}


def test_the_framework_of_the_highest_priority_is_asked_first_whatever_it_holds(tmp_path):
    with Cluster(tmp_path, allocator="priority") as cluster:
        with (
            Framework(cluster.address, "low", priority=-1) as low,
            Framework(cluster.address, "high", priority=1) as high,
        ):
            frameworks = {"low": low, "high": high}
            cluster.start_agent("m", "cpus:4;mem:1024;disk:0")
            for _ in range(3):
                assert who_is_asked(frameworks) == "high"
                high.run("exec sleep 600", cpus=1)
            assert who_is_asked(frameworks) == "high"
            high.driver.set_needs_offers(False)
            high.give_back()
            low.run("exec sleep 600", cpus=1)


def test_by_lot_both_are_asked_again_and_again_by_weight(tmp_path):
    flags = {"allocator": "lottery", "weights": "heavy=3", "allocator_seed": "1"}
    with Cluster(tmp_path, **flags) as cluster:
        with (
            Framework(cluster.address, "heavy", roles=["heavy"]) as heavy,
            Framework(cluster.address, "light", roles=["light"]) as light,
        ):
            frameworks = {"heavy": heavy, "light": light}
            cluster.start_agent("m", "cpus:1;mem:64;disk:0")
            count = Counter[str]()
            for _ in range(100):
                name = who_is_asked(frameworks)
                frameworks[name].give_back()
                count[name] += 1
            # Of 100 the light one has 25 in the mean; 5 to 45 with all but 4 in a million.
            assert 5 <= count["light"] <= 45

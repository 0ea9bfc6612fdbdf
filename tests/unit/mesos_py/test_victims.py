import math

from mesos_py.allocation import Tenant
from mesos_py.resources import Resources
from mesos_py.testing.victims_contract import VictimsContract
from mesos_py.victims import POLICIES, Victim, cost, most_over, youngest


class TestYoungest(VictimsContract):
    policy = staticmethod(youngest)


class TestMostOver(VictimsContract):
    policy = staticmethod(most_over)


class TestCost(VictimsContract):
    policy = staticmethod(cost)


def victim(ran_s=10.0, over=0.0, said=None):
    tenant = Tenant("f", "*", "t", Resources.of(cpus=1), 0.0, said)
    return Victim(tenant, ran_s, 0.1, over)


def test_youngest_prefers_what_was_launched_last():
    assert youngest(victim(1.0)) < youngest(victim(2.0)) < youngest(victim(math.inf))


def test_most_over_prefers_whoever_is_furthest_above_its_guarantee():
    assert most_over(victim(over=0.5)) < most_over(victim(over=0.1))


def test_cost_is_what_the_framework_says_or_else_the_time_it_ran():
    assert cost(victim(100.0, said=0.0)) < cost(victim(2.0)) < cost(victim(1.0, said=3.0))


def test_the_built_in_ones_have_the_names_of_the_flag():
    assert set(POLICIES) == {"youngest", "most-over", "cost"}

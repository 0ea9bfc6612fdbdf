"""What is lacking of what is needed."""

from master.allocator.revocation.needs import Bundle, demands
from mesos_py.allocation import FrameworkRow
from mesos_py.resources import Resources
from tests.kit.revocable import need


def demand(*needs):
    return demands(FrameworkRow("f", "F", ("*",), needs=needs))["*"]


def test_what_is_lacking_is_reckoned_anew_only_when_something_else_is_held():
    asked = demand(need("cpus:1", 2), need("cpus:2"))
    held = {"cpus": 1000}
    lacking = asked.lacking(held)
    assert asked.lacking({"cpus": 1000}) is lacking
    held["cpus"] = 2000
    assert asked.lacking(held) == {Bundle(Resources.parse("cpus:2")): 1}
    assert lacking == {Bundle(Resources.parse("cpus:1")): 1, Bundle(Resources.parse("cpus:2")): 1}


def test_what_is_held_makes_no_difference_between_needs():
    one, other = demand(need("cpus:1")), demand(need("cpus:1"))
    one.lacking({})
    assert one == other

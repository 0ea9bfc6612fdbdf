import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from master.flags import MasterFlags
from master.term import ALLOCATORS, make_allocator
from mesos_py import plugins
from mesos_py.errors import InvalidValue
from mesos_py.testing.allocator_harness import BookedCluster


@pytest.mark.parametrize(
    ("name", "kind"),
    [("drf", DrfAllocator), ("lottery", LotteryAllocator), ("priority", PriorityAllocator)],
)
def test_an_allocator_is_chosen_by_name_and_told_the_weights(name, kind):
    made = make_allocator(MasterFlags(allocator=name), {"r": 2.0})
    assert type(made) is kind
    assert made.shares(BookedCluster()) == {"r": 0.0}


def test_drf_is_the_default():
    assert type(make_allocator(MasterFlags(), {})) is DrfAllocator


def test_an_unknown_allocator_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidValue, match="drf, lottery, priority") as caught:
        make_allocator(MasterFlags(allocator="no-such-allocator"), {})
    assert (caught.value.field, caught.value.value) == ("allocator", "no-such-allocator")


def test_the_entry_points_are_those_that_are_built_in():
    assert plugins.names("mesos_py.allocators", {}) == sorted(ALLOCATORS)

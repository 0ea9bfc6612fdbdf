import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import Allocator, AllocatorOptions
from mesos_py.testing.allocator_contract import AllocatorContract
from mesos_py.testing.allocator_reserved_contract import AllocatorReservedContract
from mesos_py.testing.allocator_rules_contract import AllocatorRulesContract
from mesos_py.testing.allocator_volumes_contract import AllocatorVolumesContract

# Four hundred steps of each of a dozen seeds.
pytest.mark.long(AllocatorRulesContract.test_random_rules_are_kept_and_nobody_is_left_out)


class TestDrf(
    AllocatorContract, AllocatorRulesContract, AllocatorReservedContract, AllocatorVolumesContract
):
    def make(self, options: AllocatorOptions) -> Allocator:
        return DrfAllocator(options)


class TestLottery(
    AllocatorContract, AllocatorRulesContract, AllocatorReservedContract, AllocatorVolumesContract
):
    def make(self, options: AllocatorOptions) -> Allocator:
        return LotteryAllocator(options)


class TestPriority(
    AllocatorContract, AllocatorRulesContract, AllocatorReservedContract, AllocatorVolumesContract
):
    def make(self, options: AllocatorOptions) -> Allocator:
        return PriorityAllocator(options)

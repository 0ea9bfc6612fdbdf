from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import Allocator, AllocatorOptions
from mesos_py.testing.allocator_contract import AllocatorContract


class TestDrf(AllocatorContract):
    def make(self, options: AllocatorOptions) -> Allocator:
        return DrfAllocator(options)


class TestLottery(AllocatorContract):
    def make(self, options: AllocatorOptions) -> Allocator:
        return LotteryAllocator(options)


class TestPriority(AllocatorContract):
    def make(self, options: AllocatorOptions) -> Allocator:
        return PriorityAllocator(options)

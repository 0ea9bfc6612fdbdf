from master.allocator.drf import DrfAllocator
from mesos_py.allocation import Allocator, AllocatorOptions
from mesos_py.testing.allocator_contract import AllocatorContract


class TestDrf(AllocatorContract):
    def make(self, options: AllocatorOptions) -> Allocator:
        return DrfAllocator(options)

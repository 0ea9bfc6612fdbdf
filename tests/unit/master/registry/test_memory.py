"""The registry in memory."""

import pytest

from master.registry.memory import MemoryStorage, Shelf
from tests.kit.storage_contract import StorageContract


class TestMemory(StorageContract):
    @pytest.fixture
    def opening(self):
        shelf = Shelf()
        return lambda: MemoryStorage(shelf)


async def test_without_a_shelf_each_has_its_own():
    first, second = MemoryStorage(), MemoryStorage()
    await first.claim()
    await first.write([{"agent/1": b"a"}])
    assert (await second.claim()).records == {}

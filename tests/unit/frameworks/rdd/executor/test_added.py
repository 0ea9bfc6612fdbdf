"""Files that were added, as an executor gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from frameworks.rdd.executor.added import Added
from frameworks.rdd.executor.orders import Paths
from frameworks.rdd.executor.uplink import Peers
from frameworks.rdd.messages import AddFiles, BlockId
from mesos_py.errors import Unavailable

ONE, TWO, NEW = (("file", number, 0) for number in range(3))
MORE = ("file", 0, 1)


class Driver(Peers):
    """Gives the blocks that it has.  then: called at each."""

    def __init__(self) -> None:
        super().__init__("secret")
        self.content: dict[BlockId, bytes] = {}
        self.asked: list[BlockId] = []
        self.then: Callable[[], None] = lambda: None

    async def fetch_from_any(
        self, addresses: Sequence[str], block: BlockId, take: Callable[[bytes, int], None]
    ) -> int:
        assert addresses == ("driver:1",)
        self.asked.append(block)
        self.then()
        if block not in self.content:
            raise Unavailable("the driver is busy")
        take(self.content[block], 0)
        return len(self.content[block])


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def added(driver, tmp_path) -> Added:
    return Added(tmp_path / "files", "driver:1", driver)


def test_files_come_whole_and_then_their_paths_are_told(driver, added, tmp_path):
    files = tmp_path / "files"
    assert added.whole
    added.add(AddFiles({"x.py": (ONE, MORE)}, ("x.py",)))
    added.add(AddFiles({"empty": ()}))
    assert not added.whole
    assert added.paths == Paths(str(files), ())
    driver.content = {ONE: b"x =", MORE: b" 1"}
    asyncio.run(added.fetch())
    assert added.whole
    assert added.paths == Paths(str(files), (str(files / "x.py"),))
    assert {each.name: each.read_bytes() for each in files.iterdir()} == {
        "x.py": b"x = 1", "empty": b"",
    }  # fmt: skip


def test_one_that_cannot_be_had_is_named_keeps_none_back_and_is_tried_again(driver, added):
    added.add(AddFiles({"bad": (ONE,), "good": (TWO,)}))
    driver.content = {TWO: b"2"}
    with pytest.raises(Unavailable, match=r"addFile .*: bad: the driver is busy$"):
        asyncio.run(added.fetch())
    assert not added.whole
    driver.content[ONE] = b"1"
    asyncio.run(added.fetch())
    assert added.whole
    assert driver.asked == [ONE, TWO, ONE]


def test_what_is_added_meanwhile_comes_too_also_under_a_name_that_is_there(driver, added, tmp_path):
    def again() -> None:
        driver.then = lambda: None
        added.add(AddFiles({"x": (NEW,), "y": (TWO,)}))

    driver.content = {ONE: b"old", NEW: b"new", TWO: b"2"}
    driver.then = again
    added.add(AddFiles({"x": (ONE,)}))
    asyncio.run(added.fetch())
    assert added.whole
    assert (tmp_path / "files" / "x").read_bytes() == b"new"
    assert (tmp_path / "files" / "y").read_bytes() == b"2"

"""How `run` copies what its tasks write."""

import asyncio

import pytest

from mesos_py.cli.running.copies import Copies
from mesos_py.cli.running.sink import Sink
from mesos_py.errors import NotFound, Unavailable

END = None


class Logs:
    """Files that grow when the test says so; those of stderr are empty."""

    def __init__(self) -> None:
        self.parts: dict[str, asyncio.Queue[bytes | Exception | None]] = {}

    def grow(self, task_id: str, *parts: bytes | Exception | None) -> None:
        for part in parts:
            self.parts.setdefault(task_id, asyncio.Queue()).put_nowait(part)

    async def read(self, framework_id: str, task_id: str, path: str, *, known: bool):
        assert framework_id == "f"
        if path == "stderr":
            return
        queue = self.parts.setdefault(task_id, asyncio.Queue())
        while (part := await queue.get()) is not END:
            if isinstance(part, Exception):
                raise part
            yield part


class World:
    def __init__(self, *, prefix: bool = False) -> None:
        self.logs = Logs()
        self.written = b""
        self.said: list[str] = []
        self.unread = 0
        self.broken = False
        sink = Sink(self._show)
        self.copies = Copies(self.logs, sink, self.said.append, self._nobody_reads, prefix=prefix)

    def follow(self, task_id: str, instance: int = 0, title: str = "it", ran: bool = True) -> None:
        self.copies.follow("f", task_id, instance, title, ran=ran)

    def _show(self, data: bytes) -> None:
        if self.broken:
            raise BrokenPipeError
        self.written += data

    def _nobody_reads(self) -> None:
        self.unread += 1


@pytest.fixture
async def world():
    made = World()
    yield made
    await made.copies.close()


async def settled() -> None:
    """Until everything that can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_next_attempt_comes_after_all_of_the_one_before(world):
    world.follow("a")
    world.follow("b")
    world.logs.grow("b", b"second\n", END)
    world.logs.grow("a", b"first, ")
    await settled()
    assert world.written == b"first, "
    world.logs.grow("a", b"slowly\n", END)
    await world.copies.finish()
    assert world.written == b"first, slowly\nsecond\n"


async def test_instances_do_not_wait_for_each_other(world):
    world.follow("a", 0)
    world.follow("b", 1)
    world.logs.grow("b", b"second\n", END)
    await settled()
    assert world.written == b"second\n"


async def test_what_is_given_up_holds_nobody_back(world):
    world.follow("a")
    world.follow("b")
    world.logs.grow("a", b"first\n")
    world.logs.grow("b", b"second\n", END)
    await settled()
    world.copies.give_up("a", "it")
    await world.copies.finish()
    assert world.written == b"first\nsecond\n"
    assert world.said == ["it: the rest of its output is lost"]


async def test_what_cannot_be_read_holds_nobody_back(world):
    world.follow("a")
    world.follow("b")
    world.logs.grow("a", Unavailable("agent is away"))
    world.logs.grow("b", b"second\n", END)
    await world.copies.finish()
    assert world.written == b"second\n"
    assert world.said == ["it: the rest of its stdout cannot be read: agent is away"]


async def test_giving_up_what_is_whole_says_nothing(world):
    world.follow("a")
    world.logs.grow("a", END)
    await world.copies.finish()
    world.copies.give_up("a", "it")
    world.copies.give_up("unknown", "it")
    assert world.said == []


async def test_a_task_is_followed_once(world):
    world.follow("a")
    world.follow("a")
    world.logs.grow("a", b"once\n", END)
    await world.copies.finish()
    assert world.written == b"once\n"


@pytest.mark.parametrize("ran", [True, False])
async def test_a_sandbox_that_never_was_is_missed_only_if_there_was_a_process(world, ran):
    world.follow("a", ran=ran)
    world.logs.grow("a", NotFound("file", "stdout"))
    await world.copies.finish()
    assert len(world.said) == ran


async def test_that_nobody_reads_is_told(world):
    world.broken = True
    world.follow("a")
    world.logs.grow("a", b"x")
    await world.copies.finish()
    assert world.unread == 1
    assert world.said == []


async def test_lines_bear_the_title_and_the_last_one_gets_its_end():
    world = World(prefix=True)
    world.follow("a", 0, "it.0")
    world.logs.grow("a", b"on", b"e\ntwo", END)
    await world.copies.finish()
    assert world.written == b"it.0 | one\nit.0 | two\n"


async def test_nothing_is_written_after_the_end(world):
    world.follow("a")
    await settled()
    await world.copies.close()
    world.logs.grow("a", b"late", END)
    await settled()
    assert world.written == b""

"""Two executors of one driver, and strangers that want to be executors."""

from __future__ import annotations

import asyncio
import os
import pickle
import queue
import secrets
import subprocess
import sys
from typing import Any

import cloudpickle
import grpc
import numpy
import pytest

from frameworks.rdd import wire
from frameworks.rdd.backend import cut
from frameworks.rdd.broadcasts import _in_task
from frameworks.rdd.executor import frames
from frameworks.rdd.executor.settings import Settings
from frameworks.rdd.link import Link
from frameworks.rdd.messages import (
    Beat,
    DefineStage,
    Forget,
    Hello,
    Leave,
    Locations,
    RunTask,
    StageWork,
    Succeeded,
    TaskEnded,
    WhereIs,
)
from frameworks.rdd.storage import StorageLevel
from mesos_py.errors import Unavailable
from tests.kit.rdd_drivers import PATIENCE_S, mapped, payloads, slices

SECRET = secrets.token_hex(16)


class Ends:
    """Implements link.Ends; answers WhereIs with what executors have said, and keeps all else."""

    def __init__(self) -> None:
        self.hellos: queue.Queue[Hello] = queue.Queue()
        self.said: queue.Queue = queue.Queue()
        self.gone: queue.Queue[tuple[str, str]] = queue.Queue()
        self.addresses: dict[str, str] = {}
        self.has: dict = {}
        self.link = Link(SECRET, self)

    def joined(self, hello: Hello) -> str:
        self.addresses[hello.executor_id] = hello.block_address
        self.hellos.put(hello)
        return ""

    def heard(self, executor_id, message) -> None:
        if isinstance(message, WhereIs):
            for block in message.has:
                self.has.setdefault(block, []).append(self.addresses[executor_id])
            found = {block: tuple(self.has.get(block, ())) for block in message.wanted}
            self.link.send(executor_id, Locations(message.number, found))
        elif not isinstance(message, Beat):
            self.said.put((executor_id, message))

    def left(self, executor_id: str, reason: str) -> None:
        self.gone.put((executor_id, reason))

    def result(self, executor_id: str, work: StageWork):
        """Of its partition 0, on this executor."""
        key = f"{executor_id} {id(work)}"
        self.link.send(executor_id, DefineStage(key, cloudpickle.dumps(work), {}))
        task = RunTask(1, key, 1, 0, 0, pickle.dumps(payloads(work.node, 0)))
        self.link.send(executor_id, task)
        while True:
            _, message = self.said.get(timeout=PATIENCE_S)
            if isinstance(message, TaskEnded):
                assert isinstance(message.outcome, Succeeded)
                assert message.outcome.result is not None
                return cloudpickle.loads(message.outcome.result)


@pytest.fixture
def ends():
    made = Ends()
    made.link.start("127.0.0.1", "127.0.0.1", 0)
    yield made
    made.link.stop()


@pytest.fixture
def two(ends, tmp_path):
    started = []
    for name in ("one", "two"):
        place = tmp_path / name
        place.mkdir()
        settings = Settings(name, ends.link.address, str(place), 1, 50 << 20, "here", "127.0.0.1")
        started.append(
            subprocess.Popen(
                [sys.executable, "-P", "-m", "frameworks.rdd.executor"],
                env={**os.environ, **settings.variables(SECRET)},
            )
        )
    for _ in started:
        ends.hellos.get(timeout=PATIENCE_S)
    yield ends
    for name, process in zip(("one", "two"), started, strict=True):
        ends.link.send(name, Leave("the test is over"))
        assert process.wait(PATIENCE_S) == 0
    assert {ends.gone.get(timeout=PATIENCE_S)[0] for _ in started} == {"one", "two"}


def test_executors_give_one_another_what_they_have(two):
    value = numpy.arange(1_000_000)
    head, *chunks = cut(frames.one(value))
    for number, chunk in enumerate((head, *chunks)):
        two.link.put(("broadcast", 7, number), chunk)
    broadcast = _in_task(7)
    sums = StageWork(slices([[]]), function=lambda _split, _xs: int(broadcast.value.sum()))
    assert two.result("one", sums) == value.sum()
    # From now on the driver has but the head.
    two.link.remove([("broadcast", 7, number) for number in range(1, len(chunks) + 1)])
    assert two.result("two", sums) == value.sum()

    kept = mapped(slices([[5]]), 2, lambda _, xs: (numpy.full(50_000, os.getpid()) for _ in xs))
    kept.storage = StorageLevel.MEMORY_ONLY
    first = StageWork(kept, function=lambda _, xs: [(int(x[0]), os.getpid()) for x in xs])
    ((made_by, worker),) = two.result("one", first)
    assert made_by == worker
    two.has["rdd", 2, 0] = [two.addresses["one"]]
    ((also_by, worker),) = two.result("two", first)
    assert also_by == made_by != worker
    # It is gone there meanwhile: computed again.
    two.link.send("one", Forget(rdds=(2,)))
    # What comes after it has been answered, and so has that.
    assert two.result("one", StageWork(slices([[]]), function=lambda _split, _xs: 1)) == 1
    ((made_by, worker),) = two.result("two", first)
    assert made_by == worker != also_by


@pytest.mark.parametrize(
    ("secret", "first", "code"),
    [
        ("x" * 32, [], "UNAUTHENTICATED"),
        (SECRET, [Leave("no Hello")], "PERMISSION_DENIED"),
    ],
)
async def test_strangers_are_refused(ends, secret, first, code):
    async with grpc.aio.insecure_channel(ends.link.address) as channel:
        method: Any = channel.stream_stream(f"/{wire.SERVICE}/{wire.CONNECT}")
        call = method(metadata=wire.credentials(secret))
        if first:
            (piece,) = wire.pieces(first)
            await call.write(piece)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
    assert caught.value.code().name == code
    assert ends.hellos.empty()


async def test_an_id_is_taken_as_long_as_its_executor_is_there(ends):
    hello = Hello("a", "here", 1, "127.0.0.1:1", (3, 11, 0))
    async with grpc.aio.insecure_channel(ends.link.address) as channel:
        method: Any = channel.stream_stream(f"/{wire.SERVICE}/{wire.CONNECT}")
        calls = [method(metadata=wire.credentials(SECRET)) for _ in range(2)]
        (piece,) = wire.pieces([hello])
        await calls[0].write(piece)
        await asyncio.to_thread(ends.hellos.get, timeout=PATIENCE_S)
        await calls[1].write(piece)
        with pytest.raises(grpc.aio.AioRpcError, match="is here already"):
            await calls[1].read()
        # Much that is sent at once arrives whole and in order.
        for number in range(3):
            ends.link.send("a", DefineStage(str(number), bytes([number]) * (3 << 20), {}))
        joiner = wire.Joiner()
        found: list[Any] = []
        while len(found) < 3:
            found += joiner.add(await calls[0].read())
        assert [(each.key, len(each.blob)) for each in found] == [
            (str(number), 3 << 20) for number in range(3)
        ]
        ends.link.cut("a", "it is not wanted")
        assert await calls[0].read() is grpc.aio.EOF
    assert await asyncio.to_thread(ends.gone.get, timeout=PATIENCE_S) == ("a", "it is not wanted")


async def test_no_connection_is_kept_to_an_executor_that_has_left(ends):
    link = ends.link
    link.put(("broadcast", 1, 0), b"content")
    # Its block service is the driver's own.
    hello = Hello("a", "here", 1, link.address, (3, 11, 0))
    async with grpc.aio.insecure_channel(link.address) as channel:
        method: Any = channel.stream_stream(f"/{wire.SERVICE}/{wire.CONNECT}")
        call = method(metadata=wire.credentials(SECRET))
        (piece,) = wire.pieces([hello])
        await call.write(piece)
        await asyncio.to_thread(ends.hellos.get, timeout=PATIENCE_S)
        fetched = link.fetch(link.address, ("broadcast", 1, 0))
        assert await asyncio.wrap_future(fetched) == b"content"
        assert list(link._channels._kept) == [link.address]
        call.cancel()
        await asyncio.to_thread(ends.gone.get, timeout=PATIENCE_S)

    async def kept() -> list[str]:
        return list(link._channels._kept)

    # In a later step of the link's own.
    found = asyncio.run_coroutine_threadsafe(kept(), link._loop)
    assert await asyncio.wrap_future(found) == []


def test_whoever_waits_for_a_block_is_woken_however_the_link_ends(ends):
    link, block = ends.link, ("broadcast", 1, 0)
    loop = link._loop
    late = []

    def end() -> None:
        link._ending.set()
        loop.call_soon(lambda: late.append(link.fetch("127.0.0.1:1", block)))

    early = link.fetch("127.0.0.1:1", block)
    loop.call_soon_threadsafe(end)
    link._thread.join()
    for future in (early, *late, link.fetch("127.0.0.1:1", block)):
        with pytest.raises(Unavailable):
            future.result(PATIENCE_S)
    # And whoever has something to say is not hurt.
    link.send("a", Leave("too late"))
    link.cut("a", "too late")

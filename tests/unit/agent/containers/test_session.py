"""The pipes of a session: all that comes out is read, what goes in waits for its reader."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import os
import stat
from collections.abc import AsyncIterator

import pytest

from agent.containers.session import MAX_LISTENERS, PIECE_BYTES, Kind, Session
from mesos_py.errors import Conflict, InvalidValue

WITHIN_S = 60


class Scene:
    """A session, and the process's ends of it."""

    def __init__(self) -> None:
        self.session = Session()
        stdio = self.session.stdio(os.getuid(), os.getgid())
        self.input, self.out, self.err = (
            io.FileIO(path, mode) for path, mode in zip(stdio, ("r", "w", "w"), strict=True)
        )
        self.session.handed_over()

    def close(self) -> None:
        for each in (self.input, self.out, self.err):
            each.close()
        self.session.close()

    async def all(self) -> list[tuple[Kind, bytes]]:
        async with asyncio.timeout(WITHIN_S):
            return [each async for each in self.session.pieces()]


class Listener:
    def __init__(self) -> None:
        self.told: list[tuple[Kind, bytes]] = []
        self.over = False

    def heard(self, kind: Kind, data: bytes) -> None:
        self.told.append((kind, data))

    def ended(self) -> None:
        self.over = True


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    made.close()


async def test_what_is_written_comes_out_until_it_is_over(scene):
    reading = asyncio.create_task(scene.all())
    scene.out.write(b"out")
    scene.err.write(b"err")
    scene.out.close()
    await asyncio.sleep(0)
    scene.err.write(b"more")
    scene.err.close()
    for _ in range(9):
        await asyncio.sleep(0)
    # It may have closed its output, and go on.
    assert not reading.done()
    scene.session.over()
    found = await reading
    assert b"".join(data for kind, data in found if kind is Kind.STDOUT) == b"out"
    assert b"".join(data for kind, data in found if kind is Kind.STDERR) == b"errmore"


async def test_what_is_in_the_pipes_at_the_end_is_all_whoever_has_them_open(scene):
    reading = asyncio.create_task(scene.all())
    await asyncio.sleep(0)
    scene.out.write(b"last")
    scene.session.over()
    assert await reading == [(Kind.STDOUT, b"last")]


async def test_who_writes_on_when_it_is_over_keeps_it_from_no_end(scene):
    scene.out.write(b"last")
    scene.session.over()
    found = []
    async with contextlib.aclosing(scene.session.pieces()) as pieces:
        async for _, data in pieces:
            found.append(data)
            scene.out.write(b"more")
            assert len(found) < 9
    assert found == [b"last"]


async def test_who_writes_on_to_the_terminal_keeps_it_from_no_end():
    session = Session((0, 0))
    process = os.open(session.stdio(os.getuid(), os.getgid())[0], os.O_RDWR | os.O_NOCTTY)
    session.handed_over()
    os.write(process, b"x" * 1000)
    session.over()
    found = 0
    async with contextlib.aclosing(session.pieces()) as pieces:
        async for _, data in pieces:
            found += len(data)
            os.write(process, b"x" * 1000)
            assert found < PIECE_BYTES * 2
    assert 1000 <= found <= PIECE_BYTES
    os.close(process)
    session.close()


async def test_one_that_writes_on_and_on_leaves_the_others_their_turn(scene):
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    scene.out.write(b"x")
    async with contextlib.aclosing(scene.session.pieces()) as pieces:
        for _ in range(9):
            await anext(pieces)
            scene.out.write(b"x")
    assert turn.is_set()


async def test_what_nobody_takes_waits_in_the_process(scene):
    size = fcntl.fcntl(scene.out, fcntl.F_GETPIPE_SZ)
    os.set_blocking(scene.out.fileno(), False)
    assert scene.out.write(b"x" * size * 2) == size
    assert scene.out.write(b"x") is None
    async with contextlib.aclosing(scene.session.pieces()) as pieces:
        kind, data = await anext(pieces)
    assert (kind, len(data)) == (Kind.STDOUT, min(PIECE_BYTES, size))


async def test_others_are_told_and_hear_of_the_end(scene):
    first, second = Listener(), Listener()
    with scene.session.told(first):
        scene.out.write(b"a")
        async with contextlib.aclosing(scene.session.pieces()) as pieces:
            assert await anext(pieces) == (Kind.STDOUT, b"a")
            with scene.session.told(second):
                scene.err.write(b"b")
                assert await anext(pieces) == (Kind.STDERR, b"b")
        assert first.told == [(Kind.STDOUT, b"a"), (Kind.STDERR, b"b")]
        assert second.told == first.told[1:]
        scene.session.close()
        assert (first.over, second.over) == (True, False)
    with scene.session.told(late := Listener()):
        assert late.over


async def test_not_any_number_looks_on(scene):
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_LISTENERS):
            stack.enter_context(scene.session.told(Listener()))
        with pytest.raises(Conflict, match="16 others"), scene.session.told(Listener()):
            pass
    with scene.session.told(Listener()):
        pass


async def test_input_waits_for_the_process_and_has_an_end(scene):
    size = fcntl.fcntl(scene.input, fcntl.F_GETPIPE_SZ)
    content = os.urandom(size * 3)
    writing = asyncio.create_task(scene.session.write(content))
    await asyncio.sleep(0)
    assert not writing.done()
    found = b""
    async with asyncio.timeout(WITHIN_S):
        while len(found) < len(content):
            found += await asyncio.to_thread(scene.input.read, size)
        assert await writing
    assert found == content
    scene.session.end_input()
    assert scene.input.read(1) == b""
    assert not await scene.session.write(b"x")


@pytest.mark.parametrize("what", ["close", "over", "reader"])
async def test_input_that_nobody_takes_any_more_ends(scene, what):
    size = fcntl.fcntl(scene.input, fcntl.F_GETPIPE_SZ)
    writing = asyncio.create_task(scene.session.write(b"x" * (size + 1)))
    await asyncio.sleep(0)
    assert not writing.done()
    if what == "reader":
        scene.input.close()
    else:
        getattr(scene.session, what)()
    async with asyncio.timeout(WITHIN_S):
        assert not await writing


async def test_a_terminal_is_one_for_input_and_output():
    session = Session((33, 77))
    # As most systems have it.
    os.fchmod(session._theirs[0], 0o620)
    name, *others = session.stdio(os.getuid(), os.getgid())
    assert others == [name, name]
    process = os.open(name, os.O_RDWR | os.O_NOCTTY)
    session.handed_over()
    try:
        assert stat.S_IMODE(os.fstat(process).st_mode) == 0o600
        assert os.get_terminal_size(process) == (77, 33)
        session.resize((5, 6))
        assert os.get_terminal_size(process) == (6, 5)
        os.write(process, b"out\n")
        found = b""
        async with contextlib.aclosing(session.pieces()) as pieces, asyncio.timeout(WITHIN_S):
            while len(found) < 5:
                kind, data = await anext(pieces)
                assert kind is Kind.STDOUT
                found += data
        assert found == b"out\r\n"
        session.end_input()
        assert await session.write(b"in\n")
        assert await asyncio.to_thread(os.read, process, 9) == b"in\n"
    finally:
        os.close(process)
    # What was typed is shown; then nobody has it open any more.
    session.over()
    async with asyncio.timeout(WITHIN_S):
        assert b"".join([data async for _, data in session.pieces()]) == b"in\r\n"
    session.close()
    session.resize((1, 1))


async def test_a_terminal_that_was_closed_can_be_opened_again():
    session = Session((0, 0))
    name = session.stdio(os.getuid(), os.getgid())[0]
    session.handed_over()
    async with contextlib.aclosing(session.pieces()) as pieces, asyncio.timeout(WITHIN_S):
        for text in (b"one", b"two"):
            coming = asyncio.create_task(anext(pieces))
            for _ in range(9):
                await asyncio.sleep(0)
            # Nobody has it open now.
            assert not coming.done()
            process = os.open(name, os.O_RDWR | os.O_NOCTTY)
            os.write(process, text)
            os.close(process)
            assert await coming == (Kind.STDOUT, text)
        session.over()
        assert [each async for each in pieces] == []
    session.close()


async def test_pipes_have_no_size(scene):
    with pytest.raises(InvalidValue, match="the session has no terminal"):
        scene.session.resize((1, 1))


async def test_one_writes_at_a_time(scene):
    with (
        scene.session.writing(),
        pytest.raises(Conflict, match="somebody else"),
        scene.session.writing(),
    ):
        pass
    with scene.session.writing():
        pass


async def test_one_that_was_left_is_closed_when_it_is_over(scene):
    scene.session.leave()
    assert not scene.session.closed.done()
    scene.session.over()
    assert scene.session.closed.done()
    assert await scene.all() == []

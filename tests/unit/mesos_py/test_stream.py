"""One stream from the client's side: its watch, its writer, its ends."""

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from mesos_py.conversation import LOOKS, Conversation
from mesos_py.errors import InternalError, Refused, Unavailable
from mesos_py.stream import RpcConversation


class FakeCall:
    """What gRPC gives for a stream: batches from a queue, `None` for its end in order."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.closed = asyncio.Event()
        self.arriving: asyncio.Queue[Any] = asyncio.Queue()
        self.write_error: Exception | None = None

    async def write(self, batch: Any) -> None:
        if self.write_error is not None:
            raise self.write_error
        self.written.append(batch)

    async def done_writing(self) -> None:
        self.closed.set()

    def cancel(self) -> None:
        self.arriving.put_nowait(asyncio.CancelledError())

    async def __aiter__(self) -> Any:
        while (batch := await self.arriving.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch


class Peer:
    """A conversation on a fake call, and what it takes and receives."""

    def __init__(self, answer_s: float = 1000) -> None:
        self.call = FakeCall()
        self.to_write: list[Any] = []
        self.received: list[Any] = []
        self.got = asyncio.Event()
        self.holding = asyncio.Event()
        self.holding.set()
        method: Any = lambda wait_for_ready: self.call  # noqa: E731
        self.conversation: Conversation[Any, Any] = RpcConversation(
            method,
            "peer",
            opening="opening",
            take=self.take,
            receive=self.receive,
            answer_s=answer_s,
        )

    def take(self) -> Any:
        if not self.to_write:
            return None
        batch = self.to_write.pop(0)
        if isinstance(batch, Exception):
            raise batch
        return batch

    async def receive(self, batch: Any) -> None:
        self.received.append(batch)
        self.got.set()
        await self.holding.wait()

    async def ended(self) -> Any:
        async with asyncio.timeout(10):
            return await self.conversation.run()


def status(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


async def test_opening_comes_first_and_everything_after_it_in_order():
    peer = Peer()
    peer.to_write = ["a", "b"]
    peer.conversation.wake()
    peer.conversation.finish(1000)
    peer.conversation.finish(1000)
    peer.call.arriving.put_nowait("x")

    async def end_when_closed() -> None:
        await peer.call.closed.wait()
        peer.call.arriving.put_nowait(None)

    ending = asyncio.create_task(end_when_closed())
    assert await peer.ended() is None
    await ending
    assert peer.call.written == ["opening", "a", "b"]
    assert peer.received == ["x"]


async def test_end_that_was_not_asked_for_is_a_lost_link():
    peer = Peer()
    peer.call.arriving.put_nowait(None)
    assert isinstance(await peer.ended(), Unavailable)


async def test_status_is_turned_into_an_error_of_ours():
    peer = Peer()
    peer.call.arriving.put_nowait(status(grpc.StatusCode.PERMISSION_DENIED, "no"))
    assert isinstance(await peer.ended(), Refused)


async def test_status_that_a_failed_write_has_hidden_is_a_lost_link():
    peer = Peer()
    peer.call.arriving.put_nowait(status(grpc.StatusCode.INTERNAL, "Internal error from Core"))
    assert isinstance(await peer.ended(), Unavailable)


async def test_failed_write_leaves_the_reason_to_the_reader():
    peer = Peer()
    peer.call.write_error = asyncio.InvalidStateError()
    peer.call.arriving.put_nowait(status(grpc.StatusCode.PERMISSION_DENIED, "no"))
    assert isinstance(await peer.ended(), Refused)


async def test_bug_in_what_gives_the_batches_ends_the_stream_with_it():
    peer = Peer()
    peer.to_write = [ZeroDivisionError("my bug")]
    peer.conversation.wake()
    error = await peer.ended()
    assert isinstance(error, InternalError)
    assert isinstance(error.__cause__, ZeroDivisionError)


async def test_first_cut_counts():
    peer = Peer()
    first, second = Refused("first"), Refused("second")
    peer.conversation.cut(first)
    peer.conversation.cut(second)
    assert await peer.ended() is first
    assert peer.call.written == []


async def test_cut_while_it_runs():
    peer = Peer()
    running = asyncio.create_task(peer.ended())
    await asyncio.sleep(0)
    reason = Refused("enough")
    peer.conversation.cut(reason)
    assert await running is reason


async def test_call_cancelled_by_grpc_alone_is_a_lost_link():
    peer = Peer()
    peer.call.cancel()
    assert isinstance(await peer.ended(), Unavailable)


async def test_cancelled_task_is_cancelled():
    running = asyncio.create_task(Peer().ended())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_no_answer_in_time_ends_the_stream():
    peer = Peer(answer_s=0.01)
    error = await peer.ended()
    assert isinstance(error, Unavailable)
    assert str(error) == "no answer from peer for 0.01 s"
    assert peer.conversation.unanswered


async def test_silence_after_the_answer_ends_the_stream():
    peer = Peer()
    running = asyncio.create_task(peer.ended())
    await asyncio.sleep(0)
    peer.conversation.expect(0.01)
    assert str(await running) == "silence from peer for 0.01 s"
    assert not peer.conversation.unanswered


async def test_peer_that_does_not_end_the_stream_is_not_waited_for():
    peer = Peer()
    peer.conversation.finish(0.01)
    assert "did not end the stream" in str(await peer.ended())


async def test_no_silence_is_seen_while_the_receiver_holds_the_peer_back():
    peer = Peer()
    running = asyncio.create_task(peer.ended())
    peer.holding.clear()
    peer.call.arriving.put_nowait("x")
    await peer.got.wait()
    peer.conversation._silence_s = 0
    now = asyncio.get_running_loop().time()
    peer.conversation._look(now)
    assert not running.done()
    peer.holding.set()
    peer.conversation.cut(None)
    assert await running is None


async def test_watch_that_comes_late_proves_nothing_since_this_process_was_stopped():
    peer = Peer()
    running = asyncio.create_task(peer.ended())
    await asyncio.sleep(0)
    now = asyncio.get_running_loop().time()
    peer.conversation._heard = now - 5000
    peer.conversation._look(now - 30)
    await asyncio.sleep(0)
    assert not running.done()
    for _ in range(LOOKS):
        peer.conversation._look(now)
    assert isinstance(await running, Unavailable)


async def test_a_machine_that_stood_still_for_longer_than_the_silence_proves_nothing():
    peer = Peer()
    running = asyncio.create_task(peer.ended())
    await asyncio.sleep(0)
    peer.conversation.expect(2.0)
    now = asyncio.get_running_loop().time()
    # Its last word, and then nothing of the machine ran for 2.3 s.
    peer.conversation._heard = peer.conversation._since = now - 2.3
    peer.conversation._look(now - 0.3)
    assert peer.call.arriving.empty()  # nobody has cut it
    for _ in range(LOOKS - 1):
        peer.conversation._look(now)
    assert isinstance(await running, Unavailable)

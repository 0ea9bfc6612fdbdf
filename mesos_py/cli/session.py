"""A conversation with a command within a container, over the agent's HTTP API."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from mesos_py.address import Address
from mesos_py.errors import InvalidValue, Refused, TooLarge, Unavailable, shortened
from mesos_py.http.media import RECORDIO, Media
from mesos_py.http.recordio import Reader, framed
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call, ProcessIO, Response

PATH: Final = "/api/v1"
PIECE_BYTES: Final = 65_536
# An input on which nobody types is kept alive by something that is none.
HEARTBEAT_S: Final = 30.0
# What a terminal takes for the end of what is typed.
_END_KEY: Final = b"\x04"
_FORM: Final = Media.PROTOBUF
# An agent whose machine has gone is noticed after so long.
_KEEPALIVE: Final = {
    socket.TCP_KEEPIDLE: 30,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 6,
}
# What is told of a piece of output: whether it is of stderr, and the piece.
Write = Callable[[bool, bytes], None]


@dataclass(frozen=True)
class Asked:
    """What is to run, and where."""

    # Of the new container; its parent is there already.
    container_id: pb.ContainerID
    command: pb.CommandInfo
    # With a terminal of this size, if it is to have one.
    terminal: pb.TTYInfo | None = None


class Input:
    """What goes into the command: of a descriptor, if there is one, until its end."""

    def __init__(self, fd: int | None, *, terminal: bool = False) -> None:
        self._fd = fd
        self._terminal = terminal
        self._news = asyncio.Event()
        self._readable = False
        self._size: pb.TTYInfo | None = None

    def resize(self, size: pb.TTYInfo) -> None:
        """Tell the command's terminal its size."""
        self._size = size
        self._news.set()

    async def pieces(self) -> AsyncGenerator[ProcessIO, None]:
        """As they come.  With a terminal they have no end, since its size may change."""
        if self._fd is None and not self._terminal:
            yield _typed(b"")
        while self._fd is not None or self._terminal:
            if self._size is not None:
                size, self._size = self._size, None
                control = ProcessIO.Control(type=ProcessIO.Control.TTY_INFO, tty_info=size)
                yield ProcessIO(type=ProcessIO.CONTROL, control=control)
            elif self._readable:
                self._readable = False
                data = self._read()
                if data is not None:
                    yield _typed(data or (_END_KEY if self._terminal else b""))
            elif not await self._some():
                control = ProcessIO.Control(type=ProcessIO.Control.HEARTBEAT)
                control.heartbeat.interval.nanoseconds = int(HEARTBEAT_S * 1e9)
                yield ProcessIO(type=ProcessIO.CONTROL, control=control)

    def _read(self) -> bytes | None:
        """Empty at the end; None: nothing now."""
        assert self._fd is not None
        try:
            data = os.read(self._fd, PIECE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""  # a terminal that has gone
        if not data:
            self._fd = None
        return data

    async def _some(self) -> bool:
        """Whether there was news before the next heartbeat."""
        fd = self._fd
        loop = asyncio.get_running_loop()
        self._news.clear()
        if fd is not None:
            try:
                loop.add_reader(fd, self._can_read)
            except PermissionError:
                # A file: it never has to be waited for.
                self._can_read()
                return True
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._news.wait()
        except TimeoutError:
            return False
        finally:
            if fd is not None:
                loop.remove_reader(fd)
        return True

    def _can_read(self) -> None:
        self._readable = True
        self._news.set()


def _typed(data: bytes) -> ProcessIO:
    return ProcessIO(type=ProcessIO.DATA, data=ProcessIO.Data(type=ProcessIO.Data.STDIN, data=data))


@contextlib.asynccontextmanager
async def talking(address: Address, timeout_s: float) -> AsyncIterator[Agent]:
    """The agent whose HTTP is there; `timeout_s` is for each of its answers to begin."""
    connector = aiohttp.TCPConnector(socket_factory=_socket)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=timeout_s)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield Agent(http, address, timeout_s)


class Agent:
    """An agent, asked by an operator."""

    def __init__(self, http: aiohttp.ClientSession, address: Address, timeout_s: float) -> None:
        self._http = http
        self._address = address
        self._timeout_s = timeout_s

    async def run(self, asked: Asked, given: Input, write: Write) -> int | None:
        """Run the command to its end; how it ended, as wait(2) tells it, None if that is not
        known.  It is ended if this is.

        Raises Unavailable, Refused, and what `write` does.
        """
        call = Call(type=Call.LAUNCH_NESTED_CONTAINER_SESSION)
        launch = call.launch_nested_container_session
        launch.container_id.CopyFrom(asked.container_id)
        launch.command.CopyFrom(asked.command)
        if asked.terminal is not None:
            launch.container.type = pb.ContainerInfo.MESOS
            launch.container.tty_info.CopyFrom(asked.terminal)
        headers = {"Accept": RECORDIO, "Message-Accept": _FORM.value}
        answer = await self._answer(call, headers)
        try:
            reading = asyncio.create_task(self._output(answer, write))
            writing = asyncio.create_task(self._input(asked.container_id, given))
            both = {reading, writing}
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    await writing
                await reading
            finally:
                for each in both:
                    each.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        finally:
            answer.close()
        return await self._ending(asked.container_id)

    async def _ending(self, container_id: pb.ContainerID) -> int | None:
        call = Call(type=Call.WAIT_NESTED_CONTAINER)
        call.wait_nested_container.container_id.CopyFrom(container_id)
        try:
            async with asyncio.timeout(self._timeout_s):
                async with await self._post(call, {"Accept": _FORM.value}) as answer:
                    # Forgotten with its task.
                    if answer.status == 404:
                        return None
                    await self._refuse_unless(200, answer)
                    ended = _FORM.loads(Response, await answer.read()).wait_nested_container
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._away(error) from error
        return ended.exit_status if ended.HasField("exit_status") else None

    async def _output(self, answer: aiohttp.ClientResponse, write: Write) -> None:
        reader = Reader()
        while True:
            try:
                data = await answer.content.readany()
                pieces = [_FORM.loads(ProcessIO, each, "record") for each in reader.feed(data)]
            except aiohttp.ClientError as error:
                raise self._away(error) from error
            except (InvalidValue, TooLarge) as error:
                text = f"agent {self._address}: what it answers cannot be read: {error}"
                raise Unavailable(text, address=str(self._address)) from error
            for each in pieces:
                if each.type == ProcessIO.DATA:
                    write(each.data.type == ProcessIO.Data.STDERR, each.data.data)
            if not data:
                return

    async def _input(self, container_id: pb.ContainerID, given: Input) -> None:
        """Until its end, or that of the command.  Raises Refused."""
        headers = {"Content-Type": RECORDIO, "Message-Content-Type": _FORM.value}
        records = _records(container_id, given)
        # If the agent has gone, the output tells it; the same breaks when the command ends.
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            async with self._http.post(self._url, data=records, headers=headers) as answer:
                # It may have ended before its input came.
                if answer.status != 404:
                    await self._refuse_unless(200, answer)

    async def _answer(self, call: Call, headers: dict[str, str]) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._post(call, headers)
                try:
                    await self._refuse_unless(200, answer)
                except BaseException:
                    answer.close()
                    raise
                return answer
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._away(error) from error

    async def _post(self, call: Call, headers: dict[str, str]) -> aiohttp.ClientResponse:
        given = {"Content-Type": _FORM.value, **headers}
        return await self._http.post(self._url, data=_FORM.dumps(call), headers=given)

    async def _refuse_unless(self, status: int, answer: aiohttp.ClientResponse) -> None:
        if answer.status != status:
            said = shortened(" ".join((await answer.text(errors="replace")).split()))
            text = f"agent {self._address} refuses: {said or answer.reason} ({answer.status})"
            raise Refused(text, address=str(self._address), status=answer.status)

    def _away(self, error: Exception) -> Unavailable:
        if isinstance(error, TimeoutError):
            said = f"does not answer within {self._timeout_s:g} s"
        elif isinstance(error, aiohttp.ClientConnectorError):
            said = f"cannot be reached: {error.os_error.strerror or error}"
        else:
            said = f"has broken off: {error}"
        return Unavailable(f"agent {self._address} {said}", address=str(self._address))

    @property
    def _url(self) -> str:
        return f"http://{self._address}{PATH}"


async def _records(container_id: pb.ContainerID, given: Input) -> AsyncGenerator[bytes, None]:
    call = Call(type=Call.ATTACH_CONTAINER_INPUT)
    call.attach_container_input.type = Call.AttachContainerInput.CONTAINER_ID
    call.attach_container_input.container_id.CopyFrom(container_id)
    yield framed(_FORM.dumps(call))
    async with contextlib.aclosing(given.pieces()) as pieces:
        async for piece in pieces:
            call = Call(type=Call.ATTACH_CONTAINER_INPUT)
            call.attach_container_input.type = Call.AttachContainerInput.PROCESS_IO
            call.attach_container_input.process_io.CopyFrom(piece)
            yield framed(_FORM.dumps(call))


def _socket(found: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol = found[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


__all__ = ["Agent", "Asked", "Input", "talking"]

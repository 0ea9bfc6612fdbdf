"""An HTTP client that shows what is really on the wire: heads, and chunk by chunk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

PATIENCE_S = 90.0


def request(
    method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> bytes:
    """A request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


@dataclass
class Head:
    """The first line of an answer and its headers, names in small letters."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


class Connection:
    """One connection.  Everything that waits, waits PATIENCE_S at most."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            await self.writer.drain()

    async def head(self) -> Head:
        async with asyncio.timeout(PATIENCE_S):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *rest = text.rstrip("\r\n").split("\r\n")
        pairs = (line.partition(": ") for line in rest)
        return Head(int(first.split()[1]), {name.lower(): value for name, _, value in pairs})

    async def body(self, head: Head) -> bytes:
        if head.headers.get("transfer-encoding") == "chunked":
            return b"".join([chunk async for chunk in self.chunks()])
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readexactly(int(head.headers["content-length"]))

    async def chunk(self) -> bytes:
        """The next chunk; empty: the end."""
        async with asyncio.timeout(PATIENCE_S):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = await self.reader.readexactly(size + 2)
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self.chunk():
            yield chunk

    async def until_end(self) -> None:
        """Pass over all chunks that are left."""
        async for _ in self.chunks():
            pass

    async def ended(self) -> bool:
        """Whether the server has closed the connection, once it is known."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionError:
                return True

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> tuple[Head, bytes]:
        await self.send(request(method, path, headers, body))
        head = await self.head()
        return head, await self.body(head)

    async def opened(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[Head, bytes]:
        """As `ask`, but of a stream only its head."""
        await self.send(request(method, path, headers, body))
        head = await self.head()
        chunked = head.headers.get("transfer-encoding") == "chunked"
        return head, b"" if chunked else await self.body(head)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


async def opened(port: int) -> Connection:
    """A connection to a port of this machine."""
    return Connection(*await asyncio.open_connection("127.0.0.1", port))


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    """The same, closed at the end."""
    connection = await opened(port)
    try:
        yield connection
    finally:
        await connection.close()

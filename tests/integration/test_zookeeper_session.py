"""A session of ZooKeeper's against a server that is not one."""

import asyncio
import contextlib

from mesos_py.election.zookeeper.session import Session
from mesos_py.election.zookeeper.url import parse_url

# A part of it is two of its three.
SESSION_S = 12.0


async def test_a_server_that_takes_a_connection_and_never_answers_costs_a_part_of_the_session():
    came: asyncio.Queue[None] = asyncio.Queue()
    over = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.put_nowait(None)
        await over.wait()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    session = Session(parse_url(f"zk://127.0.0.1:{port}/mesos"), SESSION_S, lambda: None)
    try:
        session.open()
        async with asyncio.timeout(SESSION_S):  # kazoo alone would wait as long as this
            for _ in range(2):
                await came.get()
    finally:
        await session.close()
        over.set()
        server.close()
        await server.wait_closed()

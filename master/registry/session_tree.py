"""ZooKeeper as the registry's tree: one session after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mesos_py.election.zookeeper.session import Link, Session, SessionLost
from mesos_py.election.zookeeper.steps import Step
from mesos_py.election.zookeeper.url import ZooKeeperUrl
from mesos_py.errors import InternalError


class SessionTree:
    """A `Tree`, connected when it is first asked.

    Nothing here is bound to a session: when one is over, another one takes its place.
    """

    def __init__(self, url: ZooKeeperUrl, timeout_s: float) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._session: Session | None = None
        self._changed = asyncio.Event()
        self._closed = False

    async def make(self, path: str) -> None:
        await (await self._connected()).make_path(path)

    async def read(self, path: str) -> tuple[bytes, int]:
        return await (await self._connected()).read_versioned(path)

    async def children(self, path: str) -> list[str]:
        return await (await self._connected()).children(path, self._changed.set)

    async def commit(self, steps: Sequence[Step]) -> None:
        await (await self._connected()).commit(steps)

    async def catch_up(self) -> None:
        await (await self._connected()).catch_up("/")

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _connected(self) -> Session:
        """A session that is connected.  Raises its end, when it comes to one."""
        if self._closed:
            raise InternalError("the registry was closed")
        session = self._session
        if session is None or isinstance(session.over, SessionLost):
            old = session
            session = self._session = Session(self._url, self._timeout_s, self._changed.set)
            session.open()
            if old is not None:
                await old.close()
        while session.link is not Link.CONNECTED:
            if session.over is not None:
                raise session.over
            self._changed.clear()
            await self._changed.wait()
        return session

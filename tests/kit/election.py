"""Contenders and detectors of a test, watched, over real ZooKeeper servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import select
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, Self, cast

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from mesos_py.election import Contender, Standing, parse_contender
from mesos_py.election.zookeeper.candidacy import Candidacy
from mesos_py.election.zookeeper.contender import ZooKeeperContender
from tests.kit.candidate import info_of
from tests.kit.proxy import Proxy

LIMIT_S: Final = 90.0
_LOOK_S: Final = 0.005


async def until(done: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """As `waiting.until`, for a test with an event loop."""
    end_s = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < end_s, f"not within {limit_s:g} s"
        await asyncio.sleep(_LOOK_S)


@contextlib.contextmanager
def operator_of(hosts: str, credentials: str | None = None) -> Iterator[KazooClient]:
    """A client of the test's own, to look and to meddle with."""
    auth = [("digest", credentials)] if credentials else []
    client = KazooClient(hosts, timeout=30.0, auth_data=auth)
    client.start(LIMIT_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def candidates(client: KazooClient, path: str) -> list[dict[str, Any]]:
    """What the candidates at `path` say, the leader first."""

    def read() -> list[dict[str, Any]]:
        children = client.get_children(path)
        names = sorted(name for name in children if name.startswith("json.info_"))
        return [json.loads(client.get(f"{path}/{name}")[0]) for name in names]

    while True:
        try:
            # Servers that have just been held up drop connections once more.
            return cast(list[dict[str, Any]], client.retry(read))
        except NoNodeError:
            client.get_children(path)  # the path itself must be there


class Watched:
    """A contender with all that it has said; use it in an `async with` block."""

    def __init__(self, contender: Contender, port: int = 5050) -> None:
        self.contender = contender
        self.port = port
        self.standings: list[Standing] = []
        # When each of the standings was learnt of.
        self.moments: list[float] = []
        self.elected_s: float | None = None
        self._certain_until_s = -math.inf
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._stand()), asyncio.create_task(self._look())]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.contender.resign()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stand(self) -> None:
        await self.contender.elected(info_of(self.port))
        self.elected_s = time.monotonic()
        async for standing in self.contender.watch():
            self.standings.append(standing)
            self.moments.append(time.monotonic())

    async def _look(self) -> None:
        while True:
            self._note()
            await asyncio.sleep(_LOOK_S)

    @property
    def certain_until_s(self) -> float:
        """The latest moment that it has ever been certain of."""
        self._note()
        return self._certain_until_s

    def _note(self) -> None:
        self._certain_until_s = max(self._certain_until_s, self.contender.certain_until_s())

    @property
    def leads(self) -> bool:
        return bool(self.standings) and self.standings[-1] is Standing.LEADING

    async def wait_for(self, standing: Standing) -> float:
        """When its last standing was learnt of, once that is `standing`."""
        await until(lambda: self.standings[-1:] == [standing] or self._tasks[0].done())
        assert self.standings[-1:] == [standing], self._tasks[0]
        return self.moments[-1]

    @property
    def session(self) -> tuple[int, bytes]:
        """Id and password of its session, for `expire_session`."""
        candidacy = self._candidacy
        assert candidacy is not None
        client = candidacy._session._client
        return client._session_id, client._session_passwd

    @property
    def lease_s(self) -> float | None:
        """The time-out that its certainty is reckoned by, once it has a session."""
        candidacy = self._candidacy
        if candidacy is None or candidacy._lease is None:
            return None
        return candidacy._lease.timeout_s

    @property
    def _candidacy(self) -> Candidacy | None:
        return cast(ZooKeeperContender, self.contender)._candidacy


@contextlib.asynccontextmanager
async def contending(url: str, timeout_s: float = 10.0, port: int = 5050) -> AsyncIterator[Watched]:
    async with Watched(parse_contender(url, session_timeout_s=timeout_s), port) as watched:
        yield watched


class AnswerLost(Proxy):
    """Lets the first request that makes a candidate through, and loses its answer."""

    lost = 0

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        if not self.lost and any(source is near for near, _ in self._pairs):
            data = source.recv(1 << 16, socket.MSG_PEEK)
            if b"json.info_" in data:
                self.lost += 1
                sink.sendall(data)
                select.select([sink], [], [], LIMIT_S)
                self._break_off()
                return
        super()._forward(source, sink)

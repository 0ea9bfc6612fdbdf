"""A master that stands for election through ZooKeeper."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator

from mesos_py import logs
from mesos_py.election.base import Contender, Standing
from mesos_py.election.zookeeper import layout
from mesos_py.election.zookeeper.candidacy import Candidacy
from mesos_py.election.zookeeper.session import SessionLost
from mesos_py.election.zookeeper.url import ZooKeeperUrl
from mesos_py.errors import Unavailable
from mesos_py.v1 import types_pb2 as pb

log = logs.get("election.contender")


class ZooKeeperContender(Contender):
    """Leads for one term at most; while it waits for that, lost sessions are renewed."""

    def __init__(self, url: ZooKeeperUrl, session_timeout_s: float) -> None:
        self._url = url
        self._timeout_s = session_timeout_s
        # Nothing before the election.
        self._standing: Standing | None = None
        self._candidacy: Candidacy | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._watchers: set[asyncio.Event] = set()
        self._resigned = False

    async def elected(self, info: pb.MasterInfo) -> None:
        """Raises Refused when ZooKeeper denies access, Unavailable after `resign`."""
        data = layout.encode(info)
        while not self._resigned:
            candidacy = self._candidacy = Candidacy(self._url, self._timeout_s, data)
            try:
                await candidacy.win()
            except SessionLost as lost:
                log.warning("the candidacy came to nothing", why=lost.message)
                await candidacy.close()
            except BaseException:
                await candidacy.close()
                raise
            else:
                self._set(Standing.LEADING)
                self._keeper = asyncio.create_task(self._keep(candidacy))
                return
        raise Unavailable("resigned before the election")

    async def watch(self) -> AsyncIterator[Standing]:
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            seen: Standing | None = None
            while seen is not Standing.LOST:
                changed.clear()
                if self._standing is None or self._standing is seen:
                    await changed.wait()
                else:
                    seen = self._standing
                    yield seen
        finally:
            self._watchers.discard(changed)

    def certain_until_s(self) -> float:
        if self._standing in (None, Standing.LOST) or self._candidacy is None:
            return -math.inf
        return self._candidacy.certain_until_s

    async def resign(self) -> None:
        self._resigned = True
        self._set(Standing.LOST)
        if self._candidacy is not None:
            self._candidacy.give_up()
        if self._keeper is not None:
            await asyncio.wait({self._keeper})
        elif self._candidacy is not None:
            await self._candidacy.close()

    async def _keep(self, candidacy: Candidacy) -> None:
        """Tell every change of the standing, until the leadership is lost."""
        while self._standing is not Standing.LOST:
            candidacy.changed.clear()
            standing = candidacy.standing()
            if standing is not self._standing:
                why = candidacy.why_over()
                log.warning("leadership", standing=standing.value, why=why.message if why else None)
                self._set(standing)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(candidacy.next_change_s - time.monotonic()):
                    await candidacy.changed.wait()
        await candidacy.close()

    def _set(self, standing: Standing) -> None:
        if self._standing is not Standing.LOST:
            self._standing = standing
            for changed in self._watchers:
                changed.set()

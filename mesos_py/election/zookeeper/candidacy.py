"""One attempt to lead: one session, one candidate node, from connecting to the end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import Final

from mesos_py import logs
from mesos_py.election.base import Standing
from mesos_py.election.zookeeper import layout
from mesos_py.election.zookeeper.lease import Lease
from mesos_py.election.zookeeper.session import Link, Session, SessionLost
from mesos_py.election.zookeeper.url import ZooKeeperUrl
from mesos_py.errors import MesosPyError, NotFound, Unavailable

log = logs.get("election.contender")

# Before the same thing is tried again on a connection that seems to be well.
_RETRY_S: Final = 0.2


class Candidacy:
    """Used once, from one event loop; `close` it in the end.

    `changed` is set whenever `standing` may have changed for another reason than time.
    """

    def __init__(self, url: ZooKeeperUrl, timeout_s: float, data: bytes) -> None:
        self._path = url.path
        self._data = data
        self._session = Session(url, timeout_s, self._link_changed)
        self.changed = asyncio.Event()
        self._node_changed = asyncio.Event()
        self._children_changed = asyncio.Event()
        self._lease: Lease | None = None
        self._node: str | None = None
        # Whether a probe was answered since the connection was last lost.
        self._confirmed = False
        self._over: MesosPyError | None = None
        self._prober: asyncio.Task[None] | None = None

    async def win(self) -> None:
        """Stand; returns when this candidate leads.

        Raises SessionLost when this candidacy has come to nothing and another may be
        tried, Refused when another would fare alike.
        """
        self._session.open()
        await self._connected()
        self._node = await self._stand()
        log.info("standing for election", node=self._node)
        self._prober = asyncio.create_task(self._probe(self._node))
        await self._until_first(self._node)
        while self.standing() is not Standing.LEADING:
            await self._wait(self.changed)
        log.info("elected", node=self._node)

    def give_up(self) -> None:
        """It is over from now on; whoever waits for it is told.  Idempotent."""
        self._end(SessionLost("the candidacy was given up"))

    async def close(self) -> None:
        """Withdraw; see `Session.close` for how long that takes.  Idempotent."""
        self.give_up()
        prober, self._prober = self._prober, None
        if prober is not None:
            prober.cancel()
            await asyncio.gather(prober, return_exceptions=True)
        await self._session.close()

    # ---- What is known ---------------------------------------------------------------

    def standing(self) -> Standing:
        """Once `win` has returned."""
        now_s = time.monotonic()
        if self._why_over(now_s) is not None:
            return Standing.LOST
        sure = self._confirmed and now_s < self.certain_until_s
        return Standing.LEADING if sure else Standing.DOUBTFUL

    @property
    def certain_until_s(self) -> float:
        if self._lease is None or self._over is not None:
            return -math.inf
        return self._lease.certain_until_s

    @property
    def next_change_s(self) -> float:
        """When `standing` changes next if nothing happens."""
        if self._lease is None:
            return math.inf
        certain_s = self._lease.certain_until_s
        return certain_s if time.monotonic() < certain_s else self._lease.lost_at_s

    def why_over(self) -> MesosPyError | None:
        """Why this candidacy is over; None while it is not."""
        return self._why_over(time.monotonic())

    def _why_over(self, now_s: float) -> MesosPyError | None:
        if self._over is None and self._lease is not None and now_s >= self._lease.lost_at_s:
            # Somebody else may have been elected long since: no answer could undo that.
            self._end(SessionLost("no answer from zookeeper for a whole session time-out"))
        return self._over

    def _end(self, why: MesosPyError) -> None:
        if self._over is None:
            self._over = why
            self._wake()

    def _wake(self) -> None:
        for event in (self.changed, self._node_changed, self._children_changed):
            event.set()

    def _link_changed(self) -> None:
        session = self._session
        if session.over is not None:
            self._end(session.over)
        elif session.link is Link.CONNECTED:
            if self._lease is None:
                self._lease = Lease(session.timeout_s)
            self._lease.connected(session.greeted_s)
        else:
            self._confirmed = False
        self._wake()

    # ---- Waiting ---------------------------------------------------------------------

    async def _wait(self, event: asyncio.Event, at_most_s: float = math.inf) -> None:
        """Until `event` is set, which it then is no more.  Raises why all is over."""
        limit_s = time.monotonic() + at_most_s
        if self._lease is not None:
            limit_s = min(limit_s, max(self.next_change_s, time.monotonic()))
        within_s = None if limit_s == math.inf else limit_s - time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await event.wait()
        event.clear()
        if (over := self.why_over()) is not None:
            raise over

    async def _connected(self) -> None:
        while self._session.link is not Link.CONNECTED:
            await self._wait(self._children_changed)

    # ---- Standing for election -------------------------------------------------------

    async def _stand(self) -> str:
        """The name of our node."""
        tried = False
        while True:
            try:
                if tried and (found := await self._own_node()) is not None:
                    return found
                await self._session.make_path(self._path)
                tried = True
                path = f"{self._path}/{layout.PREFIX}"
                created = await self._session.create_candidate(path, self._data)
                return created.rpartition("/")[2]
            except SessionLost:
                raise
            except (Unavailable, NotFound) as error:
                # The node may have been made for all that; or the path has been removed.
                log.warning("standing for election again", why=error.message)
                await self._wait(self._children_changed, _RETRY_S)
                await self._connected()

    async def _own_node(self) -> str | None:
        """A node that this session has made already, if there is one."""
        await self._session.catch_up(self._path)
        for name in await self._session.children(self._path, self._children_changed.set):
            if layout.sequence_of(name) is not None:
                owner = await self._session.owner(f"{self._path}/{name}")
                if owner == self._session.session_id:
                    return name
        return None

    async def _until_first(self, node: str) -> None:
        while True:
            self._children_changed.clear()
            try:
                names = await self._session.children(self._path, self._children_changed.set)
            except SessionLost:
                raise
            except NotFound:
                names = []  # somebody has removed the path, and our node with it
            except Unavailable:
                await self._wait(self._children_changed, _RETRY_S)
                await self._connected()
                continue
            if node not in names:
                raise SessionLost(f"the candidate node {node} is gone")
            if layout.leader_of(names) == node:
                return
            await self._wait(self._children_changed)

    # ---- Keeping certain -------------------------------------------------------------

    async def _probe(self, node: str) -> None:
        """Ask for our node, over and over, until it is not there or not ours any more."""
        path = f"{self._path}/{node}"
        while self._over is None:
            self._node_changed.clear()
            sent_s = time.monotonic()
            if self._session.link is Link.CONNECTED:
                try:
                    owner = await self._session.probe(path, self._node_changed.set)
                except SessionLost:
                    return
                except Unavailable as error:
                    log.debug("a probe had no answer", why=error.message)
                except MesosPyError as error:
                    self._end(error)
                    return
                else:
                    self._answered(path, owner, sent_s)
            await self._until_next_probe(sent_s)

    def _answered(self, path: str, owner: int | None, sent_s: float) -> None:
        assert self._lease is not None
        if owner != self._session.session_id:
            self._end(SessionLost(f"the candidate node {path} is gone"))
        elif self._session.link is Link.CONNECTED:
            self._lease.answered(sent_s)
            self._confirmed = True
            self.changed.set()

    async def _until_next_probe(self, sent_s: float) -> None:
        assert self._lease is not None
        next_s = sent_s + self._lease.probe_interval_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(next_s - time.monotonic(), 0.0)):
                await self._node_changed.wait()

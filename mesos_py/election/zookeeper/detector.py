"""Finding the master that leads through ZooKeeper."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Final

from mesos_py import logs
from mesos_py.address import Address
from mesos_py.election.base import Detector
from mesos_py.election.zookeeper import layout
from mesos_py.election.zookeeper.session import Link, Session, SessionLost
from mesos_py.election.zookeeper.url import ZooKeeperUrl
from mesos_py.errors import (
    InvalidValue,
    MasterUnreachable,
    MesosPyError,
    NotFound,
    Unavailable,
)

log = logs.get("election.detector")

_RETRY_S: Final = 1.0


class ZooKeeperDetector(Detector):
    """Believes what the candidates' path says; starts to look when first asked.

    When the connection is lost, the last leader stays believed for a session time-out.
    """

    def __init__(self, url: ZooKeeperUrl, session_timeout_s: float) -> None:
        self._url = url
        self._timeout_s = session_timeout_s
        self._leader: Address | None = None
        # The node that `_leader` was read from.
        self._node: str | None = None
        self._watchers: set[asyncio.Event] = set()
        self._looking: asyncio.Task[None] | None = None
        self._session: Session | None = None
        self._stale = asyncio.Event()
        self._suspect = False
        self._forgetting: asyncio.TimerHandle | None = None
        self._skips_told: set[str] = set()
        # How many candidates could not be read.
        self.unreadable = 0

    async def leader(self) -> Address:
        with self._watching() as changed:
            while self._leader is None:
                changed.clear()
                await changed.wait()
            return self._leader

    async def watch(self) -> AsyncIterator[Address | None]:
        with self._watching() as changed:
            seen: Address | None = None
            while True:
                changed.clear()
                if self._leader != seen:
                    seen = self._leader
                    yield seen
                else:
                    await changed.wait()

    async def news(self, left: Address) -> None:
        with self._watching() as changed:
            while self._leader == left:
                changed.clear()
                await changed.wait()
            while self._leader is None:
                changed.clear()
                await changed.wait()

    @contextlib.contextmanager
    def _watching(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever another leader is believed."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            yield changed
        finally:
            self._watchers.discard(changed)

    def hint(self, address: Address) -> None:
        log.debug("a hint counts for nothing beside zookeeper", hinted=str(address))

    def failed(self, address: Address) -> None:
        if address == self._leader:
            self._suspect = True
            self._stale.set()

    async def close(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        self._contact()

    # ---- Looking ---------------------------------------------------------------------

    async def _look(self) -> None:
        """One session after the other, for ever."""
        while True:
            session = self._session = Session(self._url, self._timeout_s, self._link_changed)
            try:
                session.open()
                await self._follow(session)
            except SessionLost as lost:
                log.info("looking for the leader in a new session", why=lost.message)
            except MesosPyError as error:
                log.error("cannot look for the leader", why=error.message, again_in_s=_RETRY_S)
                await asyncio.sleep(_RETRY_S)
            except Exception:
                log.exception("looking for the leader failed", again_in_s=_RETRY_S)
                await asyncio.sleep(_RETRY_S)
            finally:
                await session.close()

    async def _follow(self, session: Session) -> None:
        """For one session.  Raises what ends it."""
        while True:
            self._stale.clear()
            if session.over is not None:
                raise session.over
            within_s: float | None = None
            if session.link is Link.CONNECTED:
                try:
                    await self._read(session)
                    self._contact()
                except SessionLost:
                    raise
                except Unavailable as error:
                    log.debug("reading the candidates failed", why=error.message)
                    within_s = _RETRY_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._stale.wait()

    async def _read(self, session: Session) -> None:
        path = self._url.path
        if self._suspect:
            self._suspect = False
            self._node = None
            with contextlib.suppress(NotFound):
                await session.catch_up(path)
        try:
            names = await session.children(path, self._stale.set)
        except NotFound:
            # No master has ever been here: wait for the path itself.
            if await session.owner(path, self._stale.set) is not None:
                self._stale.set()
            names = []
        self._tell_skipped(names)
        node = layout.leader_of(names)
        if node is None:
            self._believe(None, None)
        elif node != self._node:
            await self._read_candidate(session, node)

    async def _read_candidate(self, session: Session, node: str) -> None:
        address: Address | None = None
        try:
            address = layout.decode(await session.read(f"{self._url.path}/{node}"))
        except NotFound:
            # Gone since the names were read: they are read again.
            self._stale.set()
            return
        except InvalidValue as error:
            self.unreadable += 1
            log.error("the leading candidate cannot be read", node=node, why=str(error))
        self._believe(node, address)

    def _tell_skipped(self, names: list[str]) -> None:
        for name in names:
            why = layout.why_skipped(name)
            if why is not None and why not in self._skips_told:
                self._skips_told.add(why)
                log.warning("a node that is no candidate", path=self._url.path, node=name, why=why)

    # ---- Believing -------------------------------------------------------------------

    def _believe(self, node: str | None, leader: Address | None) -> None:
        self._node = node
        if leader == self._leader:
            return
        self._leader = leader
        log.info("the leader is", leader=str(leader) if leader is not None else None, node=node)
        for changed in self._watchers:
            changed.set()

    def _link_changed(self) -> None:
        session = self._session
        if session is not None and session.link is not Link.CONNECTED and not self._forgetting:
            # From the first loss on, however often it is tried to connect again.
            loop = asyncio.get_running_loop()
            self._forgetting = loop.call_later(session.timeout_s, self._believe, None, None)
        self._stale.set()

    def _contact(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None


def find_leader(url: ZooKeeperUrl, session_timeout_s: float, within_s: float) -> Address:
    """Who leads now, for code without an event loop.  Raises MasterUnreachable.

    Works in a thread of its own, so that the caller may have a loop after all.
    """
    found: list[Address] = []

    async def look() -> None:
        detector = ZooKeeperDetector(url, session_timeout_s)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    found.append(await detector.leader())
        finally:
            await detector.close()

    thread = threading.Thread(target=asyncio.run, args=(look(),), daemon=True)
    thread.start()
    thread.join()
    if not found:
        raise MasterUnreachable(f"{url}: no leading master is known within {within_s:.1f} s")
    return found[0]

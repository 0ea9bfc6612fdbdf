"""Standing for election, leading, and standing again, until the process ends.

Where two masters could lead at the same time, the registry decides: the first step of a
leadership takes it over (`Storage.claim`), and from then on nothing that an earlier one
still writes is taken.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from master.api.certainty import Certainty
from master.api.front import Leading
from master.api.shell import Shell
from master.registry.base import Storage
from master.registry.registrar import Registrar
from master.term import Mandate, Term
from mesos_py import logs
from mesos_py.clock import SystemClock
from mesos_py.election.base import Contender, Standing
from mesos_py.errors import MesosPyError, NotLeader, Superseded, Unavailable
from mesos_py.v1 import types_pb2 as pb

log = logs.get("master.leadership")
T = TypeVar("T")

# After a leadership that could not begin or failed, before standing again.
AGAIN_S: Final = 1.0


class Leadership:
    """See the module's docstring.  Used from one event loop."""

    def __init__(
        self,
        leading: Leading,
        info_of: Callable[[str], pb.MasterInfo],
        make_contender: Callable[[], Contender],
        open_storage: Callable[[], Storage],
        make_term: Callable[[Mandate], Term],
    ) -> None:
        self._leading = leading
        self._info_of = info_of
        self._make_contender = make_contender
        self._open_storage = open_storage
        self._make_term = make_term
        self._stopping = asyncio.Event()
        self._certainty = Certainty()
        self.term: Term | None = None
        self.registrar: Registrar | None = None
        # Set once this process has led.
        self.has_led = asyncio.Event()
        self.elections = 0
        self.doubts = 0

    @property
    def shell(self) -> Shell | None:
        """That of the present leadership."""
        return self.term.shell if self.term is not None else None

    @property
    def epoch(self) -> int:
        return self.term.epoch if self.term is not None else 0

    async def run(self) -> None:
        """Until `stop`.  Raises what standing again would not mend."""
        while not self._stopping.is_set():
            contender = self._make_contender()
            info = self._info_of(str(uuid.uuid4()))
            mended = True
            try:
                await _unless(self._stopping, contender.elected(info))
                if not self._stopping.is_set():
                    self.elections += 1
                    mended = await self._lead(contender, info)
            finally:
                # Another one may have better luck.
                await contender.resign()
            if not mended:
                await _unless(self._stopping, asyncio.sleep(AGAIN_S))

    async def stop(self) -> None:
        """Give the leadership up in good order; `run` returns."""
        self._leading.end()
        term = self.term
        if term is not None:
            stopping = Unavailable("the master is stopping")
            await term.drain(stopping)
            term.end(stopping)
        self._stopping.set()
        self._certainty.end()

    # ---- One leadership --------------------------------------------------------

    async def _lead(self, contender: Contender, info: pb.MasterInfo) -> bool:
        """False when the leadership could not begin, or failed by itself."""
        certainty = self._certainty = Certainty(contender.certain_until_s)
        watching = asyncio.create_task(self._watch(contender, certainty))
        storage = self._open_storage()
        try:
            claimed = await _unless(certainty.over, storage.claim())
            if claimed is None:
                log.warning("lost before it began", id=info.id)
                return True
            lost = await self._serve(Mandate(info, claimed, certainty), storage)
        except (Unavailable, Superseded) as error:
            lost = error
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            # Together: without ZooKeeper each takes as long as it is allowed to.
            await asyncio.gather(contender.resign(), storage.close())
        if lost is not None:
            log.warning("leadership given up", id=info.id, why=lost.message)
        return lost is None

    async def _watch(self, contender: Contender, certainty: Certainty) -> None:
        """What the election says of us, until it says that it is over."""
        try:
            async for standing in contender.watch():
                if standing is Standing.LEADING:
                    if certainty.doubtful:
                        log.info("leadership is certain again")
                    certainty.trust()
                elif standing is Standing.DOUBTFUL:
                    self.doubts += 1
                    log.warning("leadership in doubt: nothing is decided or sent until it is clear")
                    certainty.doubt()
                else:
                    break
        except Exception:
            log.exception("the election failed")
        finally:
            certainty.end()

    async def _serve(self, mandate: Mandate, storage: Storage) -> MesosPyError | None:
        """Lead until it is over; why, if it was not the election that ended it."""
        term = self.term = self._make_term(mandate)
        lost: asyncio.Future[MesosPyError] = asyncio.get_running_loop().create_future()

        def on_lost(error: MesosPyError) -> None:
            if not lost.done():
                lost.set_result(error)

        links = term.links
        registrar = Registrar(storage, links.writes, term.stored, on_lost, SystemClock())
        links.on_store = registrar.wake
        links.on_newer_epoch = partial(_pass_epoch, term, registrar)
        registrar.start()
        self.registrar = registrar
        who = {"id": mandate.info.id, "epoch": term.epoch}
        self._leading.begin(term.streams, term.operator)
        self.has_led.set()
        log.info("leading", **who, monotonic_s=time.monotonic())
        try:
            return await _unless(mandate.certainty.over, lost)
        finally:
            self._leading.end()
            term.end(NotLeader(None))
            self.term = self.registrar = None
            await registrar.stop()
            log.info("not leading any more", **who, monotonic_s=time.monotonic())


def _pass_epoch(term: Term, registrar: Registrar, seen: int) -> None:
    """An agent has obeyed a later leadership than ours: another master leads, or the
    registry was lost.  If it is the latter, it lets us pass what the agent has seen."""
    if seen >= term.epoch:
        registrar.raise_epoch(seen, term.raise_epoch)


async def _unless(event: asyncio.Event, work: Awaitable[T]) -> T | None:
    """The result of `work`; None when `event` comes before."""
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for each in (working, waiting):
            each.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


__all__ = ["Leadership"]

"""The registry in ZooKeeper: buckets of records, and a head that every change replaces.

::

    /mesos-registry/head             format, epoch, whose claim it is, number of the transaction
    /mesos-registry/records/000000   a bucket; see buckets.py
    /mesos-registry/records/000001

Each transaction replaces the head, if that is still the one which this leadership has
seen last, together with the buckets that it changes.  So

- an older leadership can change nothing: a newer claim has replaced the head;
- a transaction whose answer was lost is decided by reading the head: it is either the
  one that was there before or the one that was to be. Repeating it does no harm even
  when the first is still on its way: whichever comes second finds another head.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from google.protobuf.message import DecodeError

from master.registry import buckets
from master.registry.base import Claimed, Operation, Storage, check, next_epoch
from master.registry.buckets import Buckets, Plan
from master.registry.session_tree import SessionTree
from master.registry.tree import Tree
from mesos_py import logs
from mesos_py.election.base import Backoff
from mesos_py.election.zookeeper.steps import Create, Delete, Put, Step
from mesos_py.election.zookeeper.url import ZooKeeperUrl
from mesos_py.errors import (
    Conflict,
    InternalError,
    InvalidValue,
    NotFound,
    Superseded,
    Unavailable,
)
from mesos_py.v1.registry_pb2 import Head

log = logs.get("master.registry")

# The layout of the nodes; what is in the records may grow without a new one.
FORMAT: Final = 1
# Of its path, which is beside that of the election: there are only candidates below that.
SUFFIX: Final = "-registry"
_CLAIM_BYTES: Final = 16
_FIRST_RETRY_S: Final = 0.05
_MAX_RETRY_S: Final = 1.0

T = TypeVar("T")


class ZooKeeperStorage(Storage):
    """`path` is that of the registry; a claim and each transaction take `limit_s` at most."""

    def __init__(
        self,
        tree: Tree,
        path: str,
        limit_s: float,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._tree = tree
        self._path = path
        self._head_path = f"{path}/head"
        self._records_path = f"{path}/records"
        self._limit_s = limit_s
        self._pause = pause
        # The head as this leadership has left it, and its version.  None before a claim,
        # and when it is not certain how the last transaction ended.
        self._head: Head | None = None
        self._version = 0
        self._buckets = Buckets()

    async def claim(self, at_least: int = 0) -> Claimed:
        self._head = None
        async with self._limited():
            head, version = await self._take(at_least)
            try:
                nodes = await self._read_all()
                now, _ = await self._read_head()
            except NotFound:
                raise self._gone() from None
        if now.claim != head.claim:
            raise Superseded(head.epoch, now.epoch)
        if len(nodes) != head.buckets:
            text = f"is damaged: {head.buckets} nodes are noted, and {len(nodes)} are there"
            raise self._invalid(text, self._records_path)
        try:
            # Megabytes to expand: the loop has other things to do.
            self._buckets = await asyncio.to_thread(buckets.decoded, nodes)
        except InvalidValue as error:
            raise self._invalid(error.reason, f"{self._records_path}/{error.value}") from None
        self._head, self._version = head, version
        return Claimed(head.epoch, self._buckets.records())

    async def write(self, operations: Sequence[Operation]) -> None:
        self._claimed()
        check(operations)
        done = 0
        while done < len(operations):
            # Also a plan of no steps is committed: nothing is certain unless this leads.
            count, plan = await asyncio.to_thread(self._buckets.next_plan, operations[done:])
            await self._commit(self._steps(plan), buckets=self._buckets.after(plan))
            self._buckets.adopt(plan)
            done += count

    async def raise_epoch(self, at_least: int) -> int:
        epoch = next_epoch(self._claimed().epoch, at_least)
        await self._commit([], epoch=epoch)
        return epoch

    async def close(self) -> None:
        await self._tree.close()

    def _claimed(self) -> Head:
        if self._head is None:
            raise InternalError("the registry was not claimed")
        return self._head

    # ---- The head --------------------------------------------------------------------

    async def _take(self, at_least: int) -> tuple[Head, int]:
        """Make the head ours; the head and its version."""
        claim = os.urandom(_CLAIM_BYTES)
        backoff = _backoff()
        while True:
            try:
                head, version = await self._read_head()
            except NotFound:
                await self._make()
                continue
            # Else an earlier round has succeeded, and its answer was lost.
            if head.claim != claim:
                epoch = next_epoch(head.epoch, at_least)
                head = Head(format=FORMAT, epoch=epoch, claim=claim, buckets=head.buckets)
                put = Put(self._head_path, head.SerializeToString(), version)
                try:
                    await self._tree.commit([put])
                except Conflict:
                    continue  # somebody was faster
                except Unavailable as error:
                    log.warning("claiming the registry again", why=error.message)
                    await self._pause(backoff.next())
                    continue
                version += 1
            return head, version

    async def _make(self) -> None:
        """The nodes of an empty registry; what is there of them stays."""
        await self._answered(lambda: self._tree.make(self._records_path))
        head = Create(self._head_path, Head(format=FORMAT).SerializeToString())
        try:
            await self._answered(lambda: self._tree.commit([head]))
        except Conflict:
            pass  # it is there already

    async def _read_head(self) -> tuple[Head, int]:
        """The newest head and its version.  Raises NotFound."""

        async def read() -> tuple[bytes, int]:
            await self._tree.catch_up()
            return await self._tree.read(self._head_path)

        data, version = await self._answered(read)
        head = Head()
        try:
            head.ParseFromString(data)
        except DecodeError as error:
            raise self._invalid(f"is damaged: {error}") from None
        if not head.format:
            raise self._invalid("is damaged: it has no format")
        if head.format > FORMAT:
            text = f"has format {head.format}, and this version knows up to {FORMAT}"
            raise InvalidValue("registry", self._head_path, text)
        return head, version

    # ---- Transactions ----------------------------------------------------------------

    async def _commit(
        self, steps: Sequence[Step], *, epoch: int | None = None, buckets: int | None = None
    ) -> None:
        """Do all steps and replace the head, or nothing of it."""
        before = self._claimed()
        head = Head()
        head.CopyFrom(before)
        head.transaction += 1
        head.epoch = before.epoch if epoch is None else epoch
        head.buckets = before.buckets if buckets is None else buckets
        put = Put(self._head_path, head.SerializeToString(), self._version)
        # Unless it ends well it is not certain what the head is.
        self._head = None
        backoff = _backoff()
        async with self._limited():
            while not await self._done([put, *steps], before, head):
                await self._pause(backoff.next())
        self._head = head
        self._version += 1

    async def _done(self, steps: Sequence[Step], before: Head, after: Head) -> bool:
        """Try it once.  False: there was no answer, and so far it was not done."""
        conflict: Conflict | None = None
        try:
            await self._tree.commit(steps)
        except Conflict as error:
            conflict = error
        except Unavailable as error:
            log.warning("a transaction had no answer", why=error.message)
        else:
            return True
        try:
            now, _ = await self._read_head()
        except NotFound:
            raise self._gone() from None
        if now == after:
            # This one, or an earlier try that was taken for lost.
            return True
        if now.claim != before.claim:
            self._head = before
            raise Superseded(before.epoch, now.epoch)
        if conflict is not None or now != before:
            raise InternalError(f"registry {self._path}: changed by somebody else: {conflict}")
        return False

    def _steps(self, plan: Plan) -> list[Step]:
        below = self._records_path
        return [
            *(Delete(f"{below}/{name}") for name in sorted(plan.removed)),
            *(Create(f"{below}/{name}", data) for name, data in plan.created.items()),
            *(Put(f"{below}/{name}", data) for name, data in plan.replaced.items()),
        ]

    # ---- Reading ---------------------------------------------------------------------

    async def _read_all(self) -> list[tuple[str, bytes]]:
        """All buckets.  Those that go in the meantime are left out."""
        names = await self._answered(lambda: self._tree.children(self._records_path))
        # All at once: what takes long is the way there and back.
        found = await asyncio.gather(*map(self._read_bucket, names), return_exceptions=True)
        nodes: list[tuple[str, bytes]] = []
        for name, data in zip(names, found, strict=True):
            if isinstance(data, NotFound):
                continue
            if isinstance(data, BaseException):
                raise data
            nodes.append((name, data))
        return nodes

    async def _read_bucket(self, name: str) -> bytes:
        data, _ = await self._answered(lambda: self._tree.read(f"{self._records_path}/{name}"))
        return data

    async def _answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer: for what may be done twice."""
        backoff = _backoff()
        while True:
            try:
                return await ask()
            except Unavailable as error:
                log.debug("asking zookeeper again", why=error.message)
            await self._pause(backoff.next())

    @asynccontextmanager
    async def _limited(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limit_s):
                yield
        except TimeoutError:
            text = f"registry {self._path}: no answer of zookeeper within {self._limit_s:g} s"
            raise Unavailable(text, path=self._path) from None

    # ---- Words -----------------------------------------------------------------------

    def _invalid(self, reason: str, path: str | None = None) -> InvalidValue:
        way_out = f"restore a backup, or begin anew by removing {self._path} when no master runs"
        return InvalidValue("registry", path or self._head_path, f"{reason}; {way_out}")

    def _gone(self) -> Unavailable:
        return Unavailable(f"registry {self._path}: somebody has removed it", path=self._path)


def open_storage(zk: ZooKeeperUrl, session_timeout_s: float) -> ZooKeeperStorage:
    """The registry of the masters that are elected at `zk`.  Called in an event loop."""
    tree = SessionTree(zk, session_timeout_s)
    # Who has no answer for so long may have been replaced.
    return ZooKeeperStorage(tree, zk.path + SUFFIX, limit_s=session_timeout_s)


def _backoff() -> Backoff:
    return Backoff(_FIRST_RETRY_S, _MAX_RETRY_S, random.random)

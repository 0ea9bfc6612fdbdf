"""The registry in real ZooKeeper: the contract, servers that end, answers that are lost."""

from __future__ import annotations

import asyncio
import random
import select
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from kazoo.client import KazooClient

from master.registry.base import Operation
from master.registry.buckets import MAX_TRANSACTION
from master.registry.session_tree import SessionTree
from master.registry.zookeeper import SUFFIX, ZooKeeperStorage, open_storage
from mesos_py.election.zookeeper.url import parse_url
from mesos_py.errors import Refused, Unavailable
from tests.kit.agents_records import agent_records
from tests.kit.election import operator_of
from tests.kit.proxy import Proxy
from tests.kit.storage_contract import Open, StorageContract
from tests.kit.zookeeper import NEEDS, Ensemble

pytestmark = pytest.mark.needs(*NEEDS)

TIMEOUT_S = 10.0
# How long a call may take where it must succeed in the end, on a machine that is busy.
PATIENT_S = 60.0


@pytest.fixture(scope="module")
def zk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """One server, for tests that do not stop it."""
    with Ensemble(tmp_path_factory.mktemp("zk"), 1) as ensemble:
        yield ensemble


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    """An election of the test's own."""
    return f"/{request.node.originalname}/mesos"


@pytest.fixture
def admin(zk: Ensemble) -> Iterator[KazooClient]:
    with operator_of(zk.hosts) as client:
        yield client


def storage_at(url: str) -> ZooKeeperStorage:
    storage = open_storage(parse_url(url), TIMEOUT_S)
    storage._limit_s = PATIENT_S
    return storage


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[ZooKeeperStorage]:
    storage = storage_at(url)
    try:
        yield storage
    finally:
        await storage.close()


async def stored(url: str) -> dict[str, bytes]:
    async with opened(url) as storage:
        return (await storage.claim()).records


def prefixes(operations: list[Operation]) -> Iterator[dict[str, bytes]]:
    """The records after none of the operations, after the first, ..."""
    records: dict[str, bytes] = {}
    yield dict(records)
    for operation in operations:
        for key, value in operation.items():
            if value is None:
                records.pop(key, None)
            else:
                records[key] = value
        yield dict(records)


class TestZooKeeper(StorageContract):
    @pytest.fixture
    def opening(self, zk: Ensemble, path: str) -> Open:
        return lambda: storage_at(zk.url(path))


# ---- What is there ----------------------------------------------------------------------


async def test_it_is_beside_the_election_and_never_below_it(zk, path, admin) -> None:
    async with opened(zk.url(path)) as storage:
        await storage.claim()
        await storage.write([{"agent/1": b"a"}])
    assert not admin.exists(path)
    assert sorted(admin.get_children(path + SUFFIX)) == ["head", "records"]
    assert admin.get_children(f"{path}{SUFFIX}/records") == ["000000"]
    _, stat = admin.get(f"{path}{SUFFIX}/records/000000")
    assert stat.ephemeralOwner == 0


async def test_with_credentials_others_read_and_do_not_write(zk, path, admin) -> None:
    async with opened(zk.url(path, "us:secret")) as storage:
        await storage.claim()
        await storage.write([{"agent/1": b"a"}])
    for below in ("head", "records", "records/000000"):
        acl, _ = admin.get_acls(f"{path}{SUFFIX}/{below}")
        assert {(each.id.scheme, each.perms) for each in acl} == {("digest", 31), ("world", 1)}
    async with opened(zk.url(path)) as stranger:
        with pytest.raises(Refused, match="refuses access"):
            await stranger.claim()
    assert await stored(zk.url(path, "us:secret")) == {"agent/1": b"a"}


async def test_a_transaction_of_the_largest_size_is_taken(zk, path) -> None:
    data = random.Random(1).randbytes(MAX_TRANSACTION - 1_000)
    async with opened(zk.url(path)) as storage:
        await storage.claim()
        await storage.write([{"agent/1": data}])
    assert await stored(zk.url(path)) == {"agent/1": data}


async def test_sixty_thousand_agents(zk, path) -> None:
    """What a server takes and gives; in one flood, as when a cluster is set up."""
    records = agent_records(60_000)
    async with opened(zk.url(path)) as storage:
        await storage.claim()
        await storage.write([{key: value} for key, value in records.items()])
        gone = list(records)[:50]
        await storage.write([dict.fromkeys(gone)])
    for key in gone:
        del records[key]
    # Outside of the assertion: to tell the difference would take minutes.
    same = await stored(zk.url(path)) == records
    assert same


# ---- Servers and connections that end ----------------------------------------------------


class AnswersLost(Proxy):
    """Lets the first few transactions through, and loses their answers."""

    left = 0
    lost = 0

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        if self.left and any(source is near for near, _ in self._pairs):
            data = source.recv(1 << 16, socket.MSG_PEEK)
            # Behind length and number: the kind of request.
            if data[8:12] == b"\0\0\0\x0e":
                self.left -= 1
                self.lost += 1
                sink.sendall(data)
                select.select([sink], [], [], PATIENT_S)
                self._break_off()
                return
        super()._forward(source, sink)


async def test_transactions_whose_answers_are_lost_are_done_once(zk, path) -> None:
    with AnswersLost(zk.hosts) as way:
        url = f"zk://{way.address}{path}"
        way.left = 2
        async with opened(url) as storage:
            assert (await storage.claim()).epoch == 1
            way.left = 1
            await storage.write([{"agent/1": b"a"}])
            await storage.write([{"agent/1": b"b"}])
            way.left = 1
            assert await storage.raise_epoch(0) == 2
            await storage.write([{"agent/2": b"c"}])
        assert way.lost == 4
    assert await stored(zk.url(path)) == {"agent/1": b"b", "agent/2": b"c"}


async def test_a_session_that_expires_is_replaced(zk, path) -> None:
    async with opened(zk.url(path)) as storage:
        await storage.claim()
        tree = storage._tree
        assert isinstance(tree, SessionTree)
        first = tree._session
        assert first is not None
        zk.expire_session(*first._client.client_id)
        await storage.write([{"agent/1": b"a"}])
        assert tree._session is not first
    assert await stored(zk.url(path)) == {"agent/1": b"a"}


async def test_a_way_that_swallows_everything_is_unavailable_in_time(zk, path) -> None:
    with Proxy(zk.hosts) as way:
        async with opened(f"zk://{way.address}{path}") as storage:
            await storage.claim()
            way.block()
            storage._limit_s = 1.0
            with pytest.raises(Unavailable, match="no answer of zookeeper within 1 s"):
                await storage.write([{"agent/1": b"a"}])
            way.restore()
            storage._limit_s = PATIENT_S
            records = (await storage.claim()).records
            assert records in ({}, {"agent/1": b"a"})


@asynccontextmanager
async def writing(
    storage: ZooKeeperStorage,
    asked: list[Operation],
    confirmed: list[int],
    *,
    until_one_fails: bool = False,
) -> AsyncIterator[None]:
    """One small write after the other, until the block ends or one fails."""
    ended = False

    async def write() -> None:
        number = 0
        while not ended:
            batch: list[Operation] = [
                {f"agent/{n}": b"%d" % n, f"agent/{n - 3}": None} for n in range(number, number + 4)
            ]
            number += 4
            asked.extend(batch)
            await storage.write(batch)
            confirmed.append(len(asked))

    task = asyncio.create_task(write())
    try:
        yield
    finally:
        ended = not until_one_fails
        await task


async def _until_confirmed(confirmed: list[int], more: int) -> None:
    goal = len(confirmed) + more
    async with asyncio.timeout(PATIENT_S):
        while len(confirmed) < goal:  # noqa: ASYNC110 (there is no event)
            await asyncio.sleep(0.005)


async def test_the_server_is_killed_in_the_middle_of_writing(tmp_path, path) -> None:
    asked: list[Operation] = []
    confirmed: list[int] = []
    with Ensemble(tmp_path, 1) as ensemble:
        async with opened(ensemble.url(path)) as storage:
            await storage.claim()
            async with writing(storage, asked, confirmed):
                for _ in range(2):
                    await _until_confirmed(confirmed, 5)
                    ensemble.kill()
                    await asyncio.to_thread(ensemble.start)
                await _until_confirmed(confirmed, 5)
        assert await stored(ensemble.url(path)) == list(prefixes(asked))[len(asked)]


async def test_the_leader_of_three_servers_is_killed_in_the_middle_of_writing(
    tmp_path, path
) -> None:
    asked: list[Operation] = []
    confirmed: list[int] = []
    with Ensemble(tmp_path, 3) as ensemble:
        async with opened(ensemble.url(path)) as storage:
            await storage.claim()
            async with writing(storage, asked, confirmed):
                await _until_confirmed(confirmed, 5)
                (await asyncio.to_thread(ensemble.leader)).kill()
                await _until_confirmed(confirmed, 5)
        await asyncio.to_thread(ensemble.start)
        assert await stored(ensemble.url(path)) == list(prefixes(asked))[len(asked)]


async def test_servers_that_do_not_come_back_end_the_leadership_and_lose_nothing(
    tmp_path, path
) -> None:
    asked: list[Operation] = []
    confirmed: list[int] = []
    with Ensemble(tmp_path, 1) as ensemble:
        async with opened(ensemble.url(path)) as storage:
            await storage.claim()
            # The server may have answered the last one when it is killed.
            writes = writing(storage, asked, confirmed, until_one_fails=True)
            await writes.__aenter__()
            await _until_confirmed(confirmed, 5)
            storage._limit_s = 3.0
            # From the next but one on, writes are given no more.
            await _until_confirmed(confirmed, 2)
            ensemble.kill()
            with pytest.raises(Unavailable):
                await writes.__aexit__(None, None, None)
        await asyncio.to_thread(ensemble.start)
        possible = list(prefixes(asked))[confirmed[-1] :]
        assert await stored(ensemble.url(path)) in possible


async def test_a_leader_that_was_cut_off_changes_nothing_afterwards(zk, path) -> None:
    """Its last write is on its way, or not; then another leads, and the way is free again."""
    with Proxy(zk.hosts) as way:
        async with opened(f"zk://{way.address}{path}") as old, opened(zk.url(path)) as new:
            await old.claim()
            await old.write([{"agent/1": b"old"}])
            way.block()
            late = asyncio.create_task(old.write([{"agent/1": b"late"}]))
            claimed = await new.claim()
            await new.write([{"agent/2": b"new"}])
            way.restore()
            with pytest.raises(Refused, match="the leadership of epoch 1 is over: epoch 2"):
                await late
    assert claimed.records["agent/1"] in (b"old", b"late")
    assert await stored(zk.url(path)) == claimed.records | {"agent/2": b"new"}

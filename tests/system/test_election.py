"""Election over real ZooKeeper servers."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import cast

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE, make_digest_acl

from mesos_py.address import Address
from mesos_py.election import Standing, parse_contender, parse_master
from mesos_py.election.search import ZooKeeperSearch
from mesos_py.election.zookeeper.detector import ZooKeeperDetector, find_leader
from mesos_py.election.zookeeper.url import parse_url
from mesos_py.errors import MasterUnreachable, Refused, Unavailable
from mesos_py.operator import OperatorClient
from tests.kit.candidate import Candidate, info_of
from tests.kit.cluster import Cluster, Daemon
from tests.kit.election import LIMIT_S, AnswerLost, candidates, contending, operator_of, until
from tests.kit.proxy import Proxy
from tests.kit.waiting import until as until_so
from tests.kit.zookeeper import NEEDS, Ensemble

pytestmark = pytest.mark.needs(*NEEDS)

LEADING, DOUBTFUL, LOST = Standing.LEADING, Standing.DOUBTFUL, Standing.LOST
# Long enough for a busy machine, short enough to wait for.  Who is not to lose his has more.
SESSION_S = 4.0


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


# ---- Who leads ------------------------------------------------------------------------------


async def test_of_three_one_leads_and_the_next_follows(zk, path, admin) -> None:
    async with AsyncExitStack() as stack:
        three = [
            await stack.enter_async_context(contending(zk.url(path), port=port))
            for port in (5001, 5002, 5003)
        ]
        await until(lambda: any(each.leads for each in three))
        await until(lambda: admin.exists(path) and len(candidates(admin, path)) == 3)
        order = []
        while three:
            (leader,) = (each for each in three if each.leads)
            order.append(leader.port)
            assert leader.contender.certain_until_s() > time.monotonic()
            three.remove(leader)
            for other in three:
                assert other.contender.certain_until_s() == -math.inf
            await leader.contender.resign()
            assert leader.contender.certain_until_s() == -math.inf
            await until(lambda: any(each.leads for each in three) or not three)
    assert sorted(order) == [5001, 5002, 5003]


async def test_what_clients_of_mesos_read(zk, path, admin) -> None:
    async with contending(zk.url(path), port=5077) as leader:
        await leader.wait_for(LEADING)
        (name,) = admin.get_children(path)
        data, stat = admin.get(f"{path}/{name}")
    assert name == "json.info_0000000000"
    assert stat.ephemeralOwner != 0
    assert json.loads(data) == {
        "id": "master-5077",
        "ip": 0x0100007F,
        "port": 5077,
        "pid": "master@127.0.0.1:5077",
        "hostname": "here",
        "version": "0.1.0",
        "address": {"hostname": "here", "ip": "127.0.0.1", "port": 5077},
        "grpc_port": 5077,  # ours; all else is that of HTTP, if there is any
        "capabilities": [{"type": name} for name in ("AGENT_UPDATE", "AGENT_DRAINING", "QUOTA_V2")],
    }


async def test_other_children_of_the_path_do_not_count(zk, path, admin) -> None:
    for name in ("log_replicas", "info_0000000000", "json.info_x", "aaa"):
        admin.create(f"{path}/{name}", b"\x0a\x00", makepath=True)
    detector = parse_master(zk.url(path), session_timeout_s=SESSION_S)
    async with contending(zk.url(path), SESSION_S, port=5044) as leader:
        await leader.wait_for(LEADING)
        assert await detector.leader() == Address("127.0.0.1", 5044)
    await detector.close()


# ---- Certainty ------------------------------------------------------------------------------


async def test_a_leader_that_is_cut_off_doubts_before_another_one_leads(zk, path) -> None:
    async with AsyncExitStack() as stack:
        proxy = stack.enter_context(Proxy(zk.hosts))
        url = f"zk://{proxy.address}{path}"
        first = await stack.enter_async_context(contending(url, SESSION_S))
        await first.wait_for(LEADING)
        second = await stack.enter_async_context(contending(zk.url(path)))
        proxy.block()
        await second.wait_for(LEADING)
        assert second.elected_s is not None
        assert first.certain_until_s < second.elected_s
        await first.wait_for(LOST)
        # In doubt, or (on a machine that stood still just then) lost at once.
        assert first.moments[1] < second.elected_s
        assert first.standings in ([LEADING, DOUBTFUL, LOST], [LEADING, LOST])
        assert first.contender.certain_until_s() == -math.inf


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_leader_that_stands_still_is_not_certain_when_the_next_one_leads(
    zk, path, end
) -> None:
    with Candidate(zk.url(path), 5001, SESSION_S) as first:
        await until(lambda: first.standings)
        async with contending(zk.url(path)) as second:
            if end == "stop":
                first.pause()
            else:
                first.process.kill()
            await second.wait_for(LEADING)
            assert second.elected_s is not None
            assert first.certain_until_s < second.elected_s
            if end == "stop":
                first.cont()
                await until(lambda: "lost" in first.standings)
                assert first.certain_until_s < second.elected_s
                assert second.leads


async def test_the_connection_breaks_and_comes_back_in_the_same_session(zk, path, admin) -> None:
    async with AsyncExitStack() as stack:
        proxy = stack.enter_context(Proxy(zk.hosts))
        url = f"zk://{proxy.address}{path}"
        first = await stack.enter_async_context(contending(url, 10.0))
        await first.wait_for(LEADING)
        names = admin.get_children(path)
        proxy.cut()
        await first.wait_for(DOUBTFUL)
        # The session lives: nobody else can have been elected.
        assert first.contender.certain_until_s() > time.monotonic()
        proxy.restore()
        await first.wait_for(LEADING)
        assert first.standings == [LEADING, DOUBTFUL, LEADING]
        assert admin.get_children(path) == names


async def test_the_server_restarts_and_the_leader_leads_on(path, tmp_path) -> None:
    with Ensemble(tmp_path) as ensemble:
        async with contending(ensemble.url(path), 20.0) as leader:
            await leader.wait_for(LEADING)
            (server,) = ensemble.servers
            server.kill()
            await leader.wait_for(DOUBTFUL)
            await asyncio.to_thread(server.start)
            await leader.wait_for(LEADING)
            assert leader.standings == [LEADING, DOUBTFUL, LEADING]
            with operator_of(ensemble.hosts) as admin:
                assert admin.get_children(path) == ["json.info_0000000000"]


async def test_what_the_server_grants_counts_not_what_was_asked_for(zk, path) -> None:
    async with contending(zk.url(path), 0.05) as leader:
        # Two ticks at least.
        await until(lambda: leader.lease_s == 0.4)
    async with contending(zk.url(path), 600.0) as leader:
        await until(lambda: leader.lease_s == 60.0)


# ---- Losing ---------------------------------------------------------------------------------


async def test_a_leader_loses_its_session_and_leads_again_three_times(zk, path, admin) -> None:
    for number in range(3):
        async with contending(zk.url(path), 10.0, port=5001 + number) as leader:
            await leader.wait_for(LEADING)
            (shown,) = candidates(admin, path)
            assert shown["port"] == 5001 + number
            zk.expire_session(*leader.session)
            await leader.wait_for(LOST)
            assert leader.contender.certain_until_s() == -math.inf
            assert candidates(admin, path) == []


async def test_a_follower_that_loses_its_session_stands_again(zk, path, admin) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(contending(zk.url(path), 10.0, 5001))
        await first.wait_for(LEADING)
        second = await stack.enter_async_context(contending(zk.url(path), 10.0, 5002))
        await until(lambda: len(candidates(admin, path)) == 2)
        session = second.session
        zk.expire_session(*session)
        await until(lambda: second.session[0] not in (None, session[0]))
        await until(lambda: len(candidates(admin, path)) == 2)
        await first.contender.resign()
        await second.wait_for(LEADING)


async def test_a_node_that_somebody_removes_is_leadership_lost(zk, path, admin) -> None:
    async with contending(zk.url(path), 30.0) as leader:
        await leader.wait_for(LEADING)
        (name,) = admin.get_children(path)
        admin.delete(f"{path}/{name}")
        await leader.wait_for(LOST)
        assert leader.moments[-1] - leader.moments[0] < 30.0


async def test_a_path_that_somebody_removes_is_made_anew_by_all(zk, path, admin) -> None:
    async with contending(zk.url(path)) as first:
        await first.wait_for(LEADING)
        async with contending(zk.url(path)) as second:
            await until(lambda: len(candidates(admin, path)) == 2)
            # All at once: whoever looks for his node finds no path.
            transaction = admin.transaction()
            for node in (*(f"{path}/{name}" for name in admin.get_children(path)), path):
                transaction.delete(node)
            assert transaction.commit() == [True] * 3
            await second.wait_for(LEADING)


async def test_a_node_of_the_same_name_of_somebody_else_is_not_ours(zk, path, admin) -> None:
    async with contending(zk.url(path), 10.0) as leader:
        await leader.wait_for(LEADING)
        (name,) = admin.get_children(path)
        transaction = admin.transaction()
        transaction.delete(f"{path}/{name}")
        transaction.create(f"{path}/{name}", b"{}", ephemeral=True)
        transaction.commit()
        await leader.wait_for(LOST)


async def test_an_answer_to_create_that_is_lost_leaves_one_node(zk, path, admin) -> None:
    with AnswerLost(zk.hosts) as proxy:
        async with contending(f"zk://{proxy.address}{path}", 10.0) as leader:
            await leader.wait_for(LEADING)
            assert proxy.lost == 1
            assert admin.get_children(path) == ["json.info_0000000000"]


async def test_resigning_while_standing(zk, path, admin) -> None:
    async with contending(zk.url(path)) as leader:
        await leader.wait_for(LEADING)
        contender = parse_contender(zk.url(path))
        standing = asyncio.create_task(contender.elected(info_of(5002)))
        await until(lambda: len(candidates(admin, path)) == 2)
        await contender.resign()
        await contender.resign()
        with pytest.raises(Unavailable, match="resigned"):
            await standing
        assert [each async for each in contender.watch()] == [LOST]
        assert len(candidates(admin, path)) == 1


async def test_whoever_waits_may_be_cancelled(zk, path, admin) -> None:
    async with contending(zk.url(path)) as leader:
        await leader.wait_for(LEADING)
        contender = parse_contender(zk.url(path))
        standing = asyncio.create_task(contender.elected(info_of(5002)))
        await until(lambda: len(candidates(admin, path)) == 2)
        standing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await standing
        assert len(candidates(admin, path)) == 1


# ---- Access ---------------------------------------------------------------------------------


async def test_nodes_belong_to_whoever_has_the_credentials(zk, path, admin, caplog) -> None:
    caplog.set_level(logging.NOTSET)
    url = zk.url(path, "me:hunter2")
    detector = parse_master(zk.url(path))
    async with contending(url, 10.0) as leader:
        await leader.wait_for(LEADING)
        assert await detector.leader() == Address("127.0.0.1", leader.port)
        acls, _ = admin.get_acls(path)
        assert {(acl.id.scheme, acl.perms) for acl in acls} == {("digest", 31), ("world", 1)}
        with pytest.raises(Refused, match="refuses access"):
            await parse_contender(zk.url(path)).elected(info_of(5002))
        with pytest.raises(Refused) as caught:
            await parse_contender(zk.url(path, "me:wr0ng")).elected(info_of(5002))
        zk.expire_session(*leader.session)
        await leader.wait_for(LOST)
    await detector.close()
    shown = caplog.text + repr(leader.contender.__dict__) + str(caught.value)
    assert "zookeeper connected" in shown
    assert "hunter2" not in shown
    assert "wr0ng" not in shown


async def test_a_path_that_may_not_be_read_is_looked_at_again(zk, path, admin) -> None:
    acl = make_digest_acl("me", "hunter2", all=True)
    with operator_of(zk.hosts, "me:hunter2") as owner:
        owner.create(path, b"", [acl], makepath=True)
        detector = parse_master(zk.url(path))
        finding = asyncio.create_task(detector.leader())
        async with contending(zk.url(path, "me:hunter2")) as leader:
            await leader.wait_for(LEADING)
            assert not finding.done()
            owner.set_acls(path, [acl, *READ_ACL_UNSAFE])
            assert await finding == Address("127.0.0.1", leader.port)
    await detector.close()


# ---- Detecting ------------------------------------------------------------------------------


async def test_a_detector_that_comes_before_any_master(zk, path) -> None:
    detector = parse_master(zk.url(path))
    seen: list[Address | None] = []

    async def watch() -> None:
        async for leader in detector.watch():
            seen.append(leader)

    watching = asyncio.create_task(watch())
    for number in range(2):
        async with contending(zk.url(path), port=5001 + number) as leader:
            await leader.wait_for(LEADING)
            assert await detector.leader() == Address("127.0.0.1", 5001 + number)
        await until(lambda: seen[-1:] == [None])
    assert seen == [Address("127.0.0.1", 5001), None, Address("127.0.0.1", 5002), None]
    watching.cancel()
    await detector.close()
    await detector.close()


async def test_news_of_a_leader_after_the_one_that_was_left(zk, path) -> None:
    detector = parse_master(zk.url(path))
    first = Address("127.0.0.1", 5001)
    early = asyncio.create_task(detector.news(first))
    # The same one elected anew is news as well, and so is any that leads already.
    for _ in range(2):
        async with contending(zk.url(path), port=first.port), asyncio.timeout(LIMIT_S):
            await early
            await detector.news(Address("127.0.0.1", 5002))
            early = asyncio.create_task(detector.news(first))
            await asyncio.sleep(0.05)
            assert not early.done()
    early.cancel()
    await detector.close()


async def test_a_detector_that_is_cut_off_believes_for_a_session_time_out(zk, path) -> None:
    async with AsyncExitStack() as stack:
        proxy = stack.enter_context(Proxy(zk.hosts))
        detector = parse_master(f"zk://{proxy.address}{path}", session_timeout_s=SESSION_S)
        stack.push_async_callback(detector.close)
        leader = await stack.enter_async_context(contending(zk.url(path)))
        address = Address("127.0.0.1", leader.port)
        watch = detector.watch()
        assert await anext(watch) == address
        cut_s = time.monotonic()
        proxy.cut()
        assert await anext(watch) is None
        assert time.monotonic() - cut_s >= SESSION_S
        proxy.restore()
        assert await anext(watch) == address
        await cast(AsyncGenerator[object, None], watch).aclose()


def detecting(url: str) -> ZooKeeperDetector:
    return cast(ZooKeeperDetector, parse_master(url))


async def test_what_cannot_be_read_is_no_leader(zk, path, admin) -> None:
    made = admin.create(
        f"{path}/json.info_", b"{not json", ephemeral=True, sequence=True, makepath=True
    )
    detector = detecting(zk.url(path))
    finding = asyncio.create_task(detector.leader())
    await until(lambda: detector.unreadable)
    admin.create(f"{path}/log_replicas", b"")
    detector.failed(Address("127.0.0.1", 1))
    assert not finding.done()
    async with contending(zk.url(path)) as leader:
        admin.delete(made)
        assert await finding == Address("127.0.0.1", leader.port)
    assert detector.unreadable == 1
    await detector.close()


async def test_hints_count_for_nothing_and_failures_have_it_look_again(zk, path) -> None:
    detector = detecting(zk.url(path))
    async with contending(zk.url(path)) as leader:
        address = Address("127.0.0.1", leader.port)
        assert await detector.leader() == address
        detector.hint(Address("elsewhere", 1))
        detector.failed(address)
        node, detector._node = detector._node, "json.info_0000009999"
        await until(lambda: detector._node == node)
        assert await detector.leader() == address
    await detector.close()


def test_looking_once(zk, path) -> None:
    with pytest.raises(MasterUnreachable, match=r"\*\*\*@.*no leading master"):
        find_leader(parse_url(zk.url(path, "me:hunter2")), 10.0, 0.2)
    with Candidate(zk.url(path), 5001, SESSION_S) as candidate:
        candidate.wait_for(LEADING)
        assert find_leader(parse_url(zk.url(path)), 10.0, 10.0) == Address("127.0.0.1", 5001)


def test_whoever_asks_again_is_told_the_new_leader(zk, path) -> None:
    url = parse_url(zk.url(path))
    last = Address("elsewhere", 1)
    search = ZooKeeperSearch(url, last, time.monotonic() + LIMIT_S)
    assert search.next() == last
    for port in (5001, 5002):
        with Candidate(zk.url(path), port, SESSION_S) as candidate:
            candidate.wait_for(LEADING)
            assert search.next() == Address("127.0.0.1", port)
    assert search.failures == []


# ---- Threads --------------------------------------------------------------------------------


async def test_kazoos_threads_make_no_requests(zk, path, admin, monkeypatch) -> None:
    callers = set()
    call = KazooClient._call

    def checked(client, request, result):
        if client is not admin:
            callers.add(threading.current_thread())
            if threading.current_thread() is not threading.main_thread():
                raise AssertionError(f"{request} by a thread of kazoo's")
        return call(client, request, result)

    monkeypatch.setattr(KazooClient, "_call", checked)
    detector = detecting(zk.url(path))
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(contending(zk.url(path), 10.0, 5001))
        await first.wait_for(LEADING)
        second = await stack.enter_async_context(contending(zk.url(path), 10.0, 5002))
        await until(lambda: len(candidates(admin, path)) == 2)
        assert await detector.leader() == Address("127.0.0.1", 5001)
        zk.expire_session(*first.session)
        await second.wait_for(LEADING)
        await until(lambda: detector._leader == Address("127.0.0.1", 5002))
        await first.wait_for(LOST)
    await detector.close()
    assert callers == {threading.main_thread()}


# ---- Clients --------------------------------------------------------------------------------


async def test_agents_and_commands_find_the_master(zk, path, tmp_path) -> None:
    agent: Daemon

    def run() -> None:
        nonlocal agent
        agent = cluster.start_agent("a", master=zk.url(path))
        with OperatorClient(zk.url(path)) as client:
            assert [row.agent_info.hostname for row in client.agents()] == ["a"]
        ended = cluster.cli("agents", "--master", zk.url(path))
        assert ended.code == 0, ended.err
        assert b"a" in ended.out

    def keeps_its_link() -> None:
        """Nobody is known to lead: no reason to leave a master that is there."""
        until_so(lambda: "leader=null" in agent.log)
        with OperatorClient(cluster.address) as client:
            assert [row.state for row in client.agents()] == ["connected"]
        assert agent.log.count("registered") == 1

    with ExitStack() as stack:
        cluster = await asyncio.to_thread(stack.enter_context, Cluster(tmp_path))
        async with contending(zk.url(path), port=cluster.master.port) as leader:
            await leader.wait_for(LEADING)
            await asyncio.to_thread(run)
        await asyncio.to_thread(keeps_its_link)

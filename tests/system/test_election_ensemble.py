"""Election while the servers of an ensemble fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from mesos_py.election import Standing
from tests.kit.election import candidates, contending, operator_of, until
from tests.kit.waiting import until as until_serving
from tests.kit.zookeeper import NEEDS, Ensemble

pytestmark = pytest.mark.needs(*NEEDS)

LEADING, DOUBTFUL, LOST = Standing.LEADING, Standing.DOUBTFUL, Standing.LOST
SESSION_S = 4.0


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    # One that is left alone notices that after ten ticks.
    with Ensemble(tmp_path_factory.mktemp("zk"), 3, tick_ms=400) as ensemble:
        yield ensemble


@pytest.fixture
def zk(three: Ensemble) -> Iterator[Ensemble]:
    """All three serve before and after each test."""
    yield three
    three.cont()
    until_serving(lambda: all(server.serves() for server in three.servers))


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    return f"/{request.node.originalname}"


async def test_the_whole_ensemble_stands_still_and_goes_on(zk, path) -> None:
    async with contending(zk.url(path), SESSION_S, 5001) as first:
        await first.wait_for(LEADING)
        zk.pause()
        paused_s = time.monotonic()
        await first.wait_for(LOST)
        # A session time-out after the last answer, by our own clock.
        assert first.standings[-2:] in ([DOUBTFUL, LOST], [LEADING, LOST])
        assert first.certain_until_s < paused_s + SESSION_S
        assert first.certain_until_s <= first.moments[-1]
        resigned_s = time.monotonic()
        await first.contender.resign()
        assert time.monotonic() - resigned_s < 60.0
        zk.cont()
        async with contending(zk.url(path), port=5002) as second:
            await second.wait_for(LEADING)


async def test_resigning_without_any_server_ends_in_time(zk, path) -> None:
    async with contending(zk.url(path), SESSION_S) as leader:
        await leader.wait_for(LEADING)
        zk.pause()
        before_s = time.monotonic()
        await leader.contender.resign()
        assert time.monotonic() - before_s < 60.0
        zk.cont()
        await until(lambda: all(server.serves() for server in zk.servers))
        # Its node goes with the session, at the latest.
        with operator_of(zk.hosts) as admin:
            await until(lambda: candidates(admin, path) == [])


async def test_a_server_that_is_left_alone_by_the_others_vouches_for_nothing(zk, path) -> None:
    """It goes on to answer reads for a while, in which others may elect somebody else."""
    alone, *others = sorted(zk.servers, key=lambda each: each.mode == "leader")
    with operator_of(alone.hostport) as admin:
        async with contending(f"zk://{alone.hostport}{path}", SESSION_S) as leader:
            await leader.wait_for(LEADING)
            for other in others:
                other.pause()
            left_alone_s = time.monotonic()
            reads = await _read_while_answered(admin, path)
            # Three of our probes at least would have been answered, had they been reads.
            assert reads > 10
            assert time.monotonic() - left_alone_s > 1.5
            assert leader.certain_until_s < left_alone_s + SESSION_S * 0.9
            await until(lambda: not leader.leads)


async def _read_while_answered(admin: KazooClient, path: str) -> int:
    """How many reads were answered."""
    reads = 0
    while True:
        try:
            admin.exists_async(path).get(timeout=1)
        except (KazooException, admin.handler.timeout_exception):
            return reads
        reads += 1
        await asyncio.sleep(0.05)

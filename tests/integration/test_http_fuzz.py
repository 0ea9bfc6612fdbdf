"""Whatever is said over HTTP: an answer below 500 with a reason, and nothing half made.

Calls that are made up, in both forms, and bodies that are no calls at all.
"""

from __future__ import annotations

import random

import pytest

from mesos_py.http.media import Media
from mesos_py.v1 import scheduler_pb2 as sched
from tests.kit.fuzz import Fuzz
from tests.kit.http_fuzz import Client, Endpoint, check, requests
from tests.kit.http_scheduler import PATH, HttpMaster, serving, welcomed
from tests.kit.master_http import http_master
from tests.kit.raw_http import connected

Call = sched.Call
CALLS = 40
# What a call may be answered with; 501 is for UNKNOWN alone.
ANSWERS = frozenset({200, 202, 400, 403, 406, 413, 415, 501})


def known(master: HttpMaster) -> dict[str, bytes]:
    """What there is of each framework."""
    frameworks = master.term.shell.core.cluster.frameworks
    return {key: each.info.SerializeToString() for key, each in frameworks.items()}


def sound(master: HttpMaster) -> None:
    assert master.term.shell.failures == 0
    assert master.server.failures == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("media", list(Media), ids=["json", "protobuf"])
async def test_calls_that_are_made_up(media: Media, seed: int) -> None:
    dice = random.Random(seed)
    async with serving() as master, master.client(media) as client:
        master.agent("a")
        async with client.subscribed(failover_timeout=1000) as stream:
            await welcomed(stream)
            offer = (await stream.event("OFFERS"))["offers"]["offers"][0]
            fuzz = Fuzz(
                dice, [stream.framework_id, *(offer[n]["value"] for n in ("id", "agent_id"))]
            )
            for _ in range(CALLS):
                call = fuzz.made_up(Call)
                if dice.random() < 0.8:
                    call.framework_id.value = stream.framework_id
                if call.type in (Call.SUBSCRIBE, Call.TEARDOWN):
                    call.type = Call.ACCEPT
                headers = client.head(Mesos_Stream_Id=stream.id)
                head, body = await client.connection.ask("POST", PATH, headers, media.dumps(call))
                assert head.status in ANSWERS, (head, body, call)
                assert (head.status < 400) == (body == b"")
            sound(master)


@pytest.mark.parametrize("seed", range(2))
async def test_requests_of_every_kind(seed: int) -> None:
    dice = random.Random(seed)
    fuzz = Fuzz(dice)

    def call(_: random.Random) -> bytes:
        made = fuzz.made_up(Call)
        if made.type == Call.SUBSCRIBE:
            made.type = Call.REVIVE
        return Media.JSON.dumps(made)

    async with serving() as master, master.client() as client:
        async with client.subscribed(failover_timeout=1000) as stream:
            await welcomed(stream)
            before = known(master)
            async with Client(master.port) as other:
                scheduler = Endpoint(("POST",), call, often=40)
                for asked in requests(dice, PATH, scheduler, 2, [scheduler]):
                    head, body = await other.ask(asked)
                    check(asked, head, body)
                    # It has no stream, so nobody is heard.
                    assert head.status >= 400, (asked, head, body)
                    assert known(master) == before, asked
            sound(master)


async def test_a_running_master_has_the_endpoints_that_are_asked_all_kinds_of_things() -> None:
    # In tests/unit/master/api/http/test_master_endpoints.py.
    async with serving() as running, http_master() as asked:
        assert running.daemon.http is not None
        assert running.daemon.http.routes.paths() == asked.routes.paths()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("media", list(Media), ids=["json", "protobuf"])
async def test_subscriptions_that_are_made_up(media: Media, seed: int) -> None:
    fuzz = Fuzz(random.Random(seed))
    async with serving() as master:
        for _ in range(CALLS):
            call = Call(type=Call.SUBSCRIBE, subscribe=fuzz.made_up(Call.Subscribe))
            call.framework_id.value = call.subscribe.framework_info.id.value
            async with connected(master.port) as connection:
                headers = {"Content-Type": media.value}
                body = media.dumps(call, ours=True)
                head, text = await connection.opened("POST", PATH, headers, body)
                assert head.status in ANSWERS, (head, text, call)
        await master.gone()
        sound(master)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("media", list(Media), ids=["json", "protobuf"])
async def test_bodies_that_are_damaged(media: Media, seed: int) -> None:
    dice = random.Random(seed)
    fuzz = Fuzz(dice)
    async with serving() as master, master.client(media) as client:
        for _ in range(CALLS):
            body = bytearray(media.dumps(fuzz.made_up(Call)))
            for _ in range(dice.randint(1, 5)):
                at = dice.randrange(len(body) + 1)
                body[at : at + dice.randint(0, 3)] = dice.randbytes(dice.randint(0, 4))
            head, text = await client.connection.ask("POST", PATH, client.head(), bytes(body))
            assert head.status in ANSWERS, (head, text, body)
        sound(master)

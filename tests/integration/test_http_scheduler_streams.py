"""The event stream of the Scheduler API: how it begins, is replaced and ends.

The master runs in this process, its clients speak raw HTTP, agents are played by the test.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mesos_py.http.media import Media
from tests.kit.http_scheduler import INFO, offered, serving, welcomed

FORMS = pytest.mark.parametrize("media", list(Media), ids=["json", "protobuf"])
MULTI = [{"type": "MULTI_ROLE"}]


# ---- Subscribing -------------------------------------------------------------------------


@FORMS
async def test_a_subscription_begins_with_subscribed_and_a_heartbeat(media: Media) -> None:
    async with serving(heartbeat_s=7.0) as master, master.client(media) as client:
        async with client.subscribed() as stream:
            head = stream.head.headers
            assert head["content-type"] == media.value
            assert head["transfer-encoding"] == "chunked"
            assert 0 < len(head["mesos-stream-id"]) <= 128
            event = await stream.next()
            assert event is not None
            told = event["subscribed"]
            assert told["framework_id"]["value"] == f"{master.term.info.id}-0000"
            assert told["heartbeat_interval_seconds"] == 7.0
            address = told["master_info"]["address"]
            assert (address["ip"], address["port"]) == ("127.0.0.1", master.port)
            assert told["master_info"]["pid"] == f"master@127.0.0.1:{master.port}"
            assert await stream.next() == {"type": "HEARTBEAT"}


async def test_it_is_chunked_also_if_the_client_wants_the_connection_closed() -> None:
    async with serving() as master, master.client(Connection="close") as client:
        async with client.subscribed() as stream:
            assert stream.head.headers["transfer-encoding"] == "chunked"
            await welcomed(stream)


async def test_what_only_we_know_is_not_told_to_others() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed() as stream:
            event = await stream.next()
            assert event is not None
            assert set(event["subscribed"]) == {
                "framework_id",
                "heartbeat_interval_seconds",
                "master_info",
            }
            stream.framework_id = event["subscribed"]["framework_id"]["value"]
            await stream.next()
            # Our own peers would be told REFUSED.
            assert (await client.call(stream, "SUPPRESS", suppress={"roles": ["x"]}))[0] == 202
            assert (await client.call(stream, "REQUEST", request={}))[0] == 202
            kill = {"task_id": {"value": "t"}}
            assert (await client.call(stream, "KILL", kill=kill))[0] == 202
            event = await stream.next()
            assert event is not None
            assert event["type"] == "UPDATE"


async def test_who_says_that_he_knows_us_is_told_all() -> None:
    async with serving() as master, master.client() as client:
        call = {
            "type": "SUBSCRIBE",
            "subscribe": {"framework_info": INFO, "protocol_version": 1},
        }
        async with client.subscribed_by(call) as stream:
            event = await stream.next()
            assert event is not None
            assert "protocol_version" in event["subscribed"]
            stream.framework_id = event["subscribed"]["framework_id"]["value"]
            await client.call(stream, "SUPPRESS", suppress={"roles": ["x"]})
            assert (await stream.event("REFUSED"))["refused"]["call"] == "SUPPRESS"


@FORMS
async def test_heartbeats_come_at_the_interval(media: Media) -> None:
    async with serving(heartbeat_s=0.05) as master, master.client(media) as client:
        async with client.subscribed() as stream:
            await welcomed(stream)
            for _ in range(3):
                assert await stream.next() == {"type": "HEARTBEAT"}


async def test_by_a_flag_a_heartbeat_follows_each_event() -> None:
    async with serving(http_heartbeat_after_event=True) as master, master.client() as client:
        async with client.subscribed() as stream:
            kinds = []
            master.agent("a")
            for _ in range(5):
                event = await stream.next()
                assert event is not None
                kinds.append(event["type"])
    assert kinds == ["SUBSCRIBED", "HEARTBEAT", "HEARTBEAT", "OFFERS", "HEARTBEAT"]


@FORMS
@pytest.mark.parametrize(
    ("info", "says"),
    [
        ({"role": "/x"}, "framework_info.role: '/x'"),
        ({"role": "a b"}, "framework_info.role: 'a b'"),
        ({"roles": ["a"]}, "framework_info.roles: ['a']: needs the capability MULTI_ROLE"),
        ({"roles": ["a", "a"], "capabilities": MULTI}, "has a role twice"),
        ({"role": "a", "capabilities": MULTI}, "MULTI_ROLE frameworks use roles"),
        ({"failover_timeout": 1e12}, "framework_info.failover_timeout: 1000000000000.0"),
    ],
)
async def test_what_is_refused_for_its_sense_is_an_error_event_and_the_end(
    media: Media, info: dict[str, Any], says: str
) -> None:
    async with serving() as master, master.client(media) as client:
        async with client.subscribed(**info) as stream:
            event = await stream.next()
            assert event is not None
            assert event["type"] == "ERROR"
            assert says in event["error"]["message"]
            assert await stream.next() is None
        assert not master.term.shell.core.cluster.frameworks


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"suppressed_roles": ["x"]}, "suppressed_roles: 'x'"),
        ({"offer_constraints": {"role_constraints": {"x": {}}}}, "offer_constraints"),
    ],
)
async def test_parts_that_name_roles_of_others_are_refused(part: dict[str, Any], says: str) -> None:
    async with serving() as master, master.client() as client:
        call = {"type": "SUBSCRIBE", "subscribe": {"framework_info": INFO, **part}}
        async with client.subscribed_by(call) as stream:
            event = await stream.next()
            assert event is not None
            assert says in event["error"]["message"]
            assert await stream.next() is None


# ---- Subscribing again ---------------------------------------------------------------------


@FORMS
async def test_the_newest_stream_of_a_framework_closes_the_older_one(media: Media) -> None:
    async with serving() as master, master.client(media) as client:
        master.agent("a")
        async with client.subscribed(failover_timeout=1000) as first:
            await welcomed(first)
            await offered(first)
            own: dict[str, Any] = {"id": {"value": first.framework_id}, "failover_timeout": 1000}
            async with client.subscribed(**own) as second:
                await welcomed(second)
                assert second.framework_id == first.framework_id
                assert second.id != first.id
                error = await first.next()
                message = "Framework failed over"
                assert error == {"type": "ERROR", "error": {"message": message}}
                assert await first.next() is None
                # It begins without offers, and gets what the old one had.
                await offered(second)
                assert (await client.call(first, "REVIVE"))[0] == 400
                assert (await client.call(second, "REVIVE"))[0] == 202


async def test_within_its_failover_timeout_it_may_come_back() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed(failover_timeout=1000) as stream:
            framework_id = (await welcomed(stream)).framework_id
        await master.gone()
        assert master.term.shell.core.cluster.frameworks[framework_id].link is None
        own: dict[str, Any] = {"id": {"value": framework_id}, "failover_timeout": 1000}
        async with client.subscribed(**own) as stream:
            assert (await welcomed(stream)).framework_id == framework_id


async def test_without_a_failover_timeout_it_is_removed_at_once_and_for_good() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed() as stream:
            framework_id = (await welcomed(stream)).framework_id
        await master.gone()
        assert framework_id not in master.term.shell.core.cluster.frameworks
        async with client.subscribed(id={"value": framework_id}) as stream:
            event = await stream.next()
            assert event is not None
            assert "Framework has been removed" in event["error"]["message"]
            assert await stream.next() is None


async def test_an_id_that_nobody_knows_is_accepted() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed(id={"value": "of-another-master"}) as stream:
            assert (await welcomed(stream)).framework_id == "of-another-master"


async def test_another_principal_is_another_one() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed(principal="anna") as stream:
            framework_id = (await welcomed(stream)).framework_id
            async with client.subscribed(id={"value": framework_id}, principal="bert") as other:
                event = await other.next()
                assert event is not None
                assert "cannot change from 'anna'" in event["error"]["message"]
            assert (await client.call(stream, "REVIVE"))[0] == 202


async def test_user_and_checkpoint_stay_what_they_were_and_the_rest_is_taken_over() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed(failover_timeout=1000) as stream:
            framework_id = (await welcomed(stream)).framework_id
            changed: dict[str, Any] = {
                "user": "root",
                "checkpoint": True,
                "name": "new",
                "webui_url": "http://w",
            }
            async with client.subscribed(id={"value": framework_id}, **changed) as again:
                await welcomed(again)
                info = master.term.shell.core.cluster.frameworks[framework_id].info
                assert (info.user, info.checkpoint) == ("nobody", False)
                assert (info.name, info.webui_url) == ("new", "http://w")
                # Not said again, so it is what it is by default.
                assert info.failover_timeout == 0


async def test_subscribing_again_replaces_the_suppressed_roles() -> None:
    async with serving() as master, master.client() as client:
        call = {
            "type": "SUBSCRIBE",
            "subscribe": {
                "framework_info": {**INFO, "failover_timeout": 1000},
                "suppressed_roles": ["*"],
            },
        }
        async with client.subscribed_by(call) as stream:
            framework_id = (await welcomed(stream)).framework_id
            master.agent("a")
            async with client.subscribed(id={"value": framework_id}) as again:
                await welcomed(again)
                await offered(again)


async def test_teardown_ends_the_stream_and_the_framework() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed(failover_timeout=1000) as stream:
            await welcomed(stream)
            assert (await client.call(stream, "TEARDOWN"))[0] == 202
            assert await stream.next() is None
        status, body = await client.call(stream, "REVIVE")
        assert (status, b"is no framework" in body) == (400, True)


async def test_a_client_that_reads_too_slowly_is_cut_off() -> None:
    async with serving(max_peer_queue_bytes=20_000) as master, master.client() as client:
        async with client.subscribed(failover_timeout=1000) as stream:
            await welcomed(stream)
            tasks = [{"task_id": {"value": f"t{n}"}} for n in range(1000)]
            # All answers at once are more than the bound.
            await client.call(stream, "RECONCILE", reconcile={"tasks": tasks})
            await master.gone()
            assert master.term.links.overflows == 1


async def test_at_the_end_of_the_master_its_streams_end() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        stopping = asyncio.create_task(master.daemon.stop())
        assert await stream.next() is None
        await stopping

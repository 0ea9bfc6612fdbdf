"""Offers, tasks and their updates over the Scheduler API.

The master runs in this process, its clients speak raw HTTP, agents are played by the test.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mesos_py.http.media import Media
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.http_scheduler import (
    HttpMaster,
    Stream,
    offered,
    serving,
    status_of,
    welcomed,
)

FORMS = pytest.mark.parametrize("media", list(Media), ids=["json", "protobuf"])
AWARE = [{"type": "PARTITION_AWARE"}]
MULTI = [{"type": "MULTI_ROLE"}]


def scalar(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "type": "SCALAR", "scalar": {"value": value}, "role": "*"}


def task(task_id: str, agent: str, **more: Any) -> dict[str, Any]:
    return {
        "name": task_id,
        "task_id": {"value": task_id},
        "agent_id": {"value": agent},
        "resources": [scalar("cpus", 1), scalar("mem", 32)],
        "command": {"value": "true"},
        **more,
    }


def launch(offer: dict[str, Any], *tasks: dict[str, Any]) -> dict[str, Any]:
    operation = {"type": "LAUNCH", "launch": {"task_infos": list(tasks)}}
    return {"accept": {"offer_ids": [offer["id"]], "operations": [operation]}}


def launch_group(
    offer: dict[str, Any], executor: dict[str, Any], *tasks: dict[str, Any]
) -> dict[str, Any]:
    group = {"executor": executor, "task_group": {"tasks": list(tasks)}}
    operation = {"type": "LAUNCH_GROUP", "launch_group": group}
    return {"accept": {"offer_ids": [offer["id"]], "operations": [operation]}}


@FORMS
async def test_an_offer(media: Media) -> None:
    async with serving() as master, master.client(media) as client, client.subscribed() as stream:
        await welcomed(stream)
        agent = master.agent("a", "cpus:2;mem:100;ports:[7-9]")
        offer = await offered(stream)
        assert offer["agent_id"] == {"value": agent.id}
        assert offer["framework_id"] == {"value": stream.framework_id}
        assert offer["hostname"] == "a"
        # Neither for who has not said that it knows them.
        assert "allocation_info" not in offer
        by_name = {each["name"]: each for each in offer["resources"]}
        assert by_name["cpus"] == scalar("cpus", 2.0)
        assert by_name["ports"]["ranges"] == {"range": [{"begin": 7, "end": 9}]}
        assert by_name["ports"]["type"] == "RANGES"


@FORMS
async def test_a_group_of_tasks_is_launched_or_refused_as_one(media: Media) -> None:
    async with serving() as master, master.client(media) as client, client.subscribed() as stream:
        await welcomed(stream)
        agent = master.agent("a", "cpus:4;mem:4096;disk:100")
        executor = {
            "executor_id": {"value": "e"},
            "type": "DEFAULT",
            "resources": [scalar("cpus", 0.1), scalar("mem", 32), scalar("disk", 10)],
        }
        bad = task("b", agent.id, resources=[scalar("cpus", 9)])
        refused = launch_group(await offered(stream), executor, task("a", agent.id), bad)
        await client.call(stream, "ACCEPT", **refused)
        for task_id in ("a", "b"):
            status = await status_of(stream)
            assert (status["task_id"]["value"], status["state"]) == (task_id, "TASK_ERROR")
            assert status["reason"] == "REASON_TASK_GROUP_INVALID"
            assert status["source"] == "SOURCE_MASTER"
            assert "'b': resources.cpus: 9 wanted" in status["message"]
        assert agent.take(agent_pb2.Event.RUN_TASKS) == []
        # Nothing was taken of the offer: it waits out the filter of the call.
        await client.call(stream, "REVIVE")
        fine = launch_group(await offered(stream), executor, task("a", agent.id))
        await client.call(stream, "ACCEPT", **fine)
        (order,) = agent.take(agent_pb2.Event.RUN_TASKS)
        assert order.run_tasks.group
        assert order.run_tasks.tasks[0].executor.type == pb.ExecutorInfo.DEFAULT


async def test_an_offer_for_who_has_several_roles() -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed(roles=["r"], capabilities=MULTI) as stream:
            await welcomed(stream)
            master.agent("a")
            offer = await offered(stream)
            assert offer["allocation_info"] == {"role": "r"}
            assert {r["allocation_info"]["role"] for r in offer["resources"]} == {"r"}


@FORMS
async def test_a_task_from_its_launch_to_its_acknowledged_end(media: Media) -> None:
    async with serving() as master, master.client(media) as client, client.subscribed() as stream:
        await welcomed(stream)
        agent = master.agent("a")
        offer = await offered(stream)
        wanted = task("t", agent.id, data=base64.b64encode(b"\0\xff").decode())
        assert (await client.call(stream, "ACCEPT", **launch(offer, wanted)))[0] == 202
        (order,) = agent.take(agent_pb2.Event.RUN_TASKS)
        (info,) = order.run_tasks.tasks
        assert (info.task_id.value, info.data) == ("t", b"\0\xff")
        for state in (pb.TASK_STARTING, pb.TASK_FINISHED):
            uuid = agent.report(stream.framework_id, "t", state, message="Ende gut ä")
            status = await status_of(stream)
            assert status["state"] == pb.TaskState.Name(state)
            assert status["message"] == "Ende gut ä"
            assert base64.b64decode(status["uuid"]) == uuid
            acknowledge = {name: status[name] for name in ("agent_id", "task_id", "uuid")}
            await client.call(stream, "ACKNOWLEDGE", acknowledge=acknowledge)
            (told,) = agent.take(agent_pb2.Event.ACKNOWLEDGE)
            assert told.acknowledge.uuid == uuid
        # The resources are offered again.
        assert (await offered(stream))["agent_id"] == {"value": agent.id}


async def test_updates_of_the_master_have_no_uuid_and_say_what_was_wrong() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        agent = master.agent("a")
        wrong = task("t", agent.id, resources=[])
        await client.call(stream, "ACCEPT", **launch(await offered(stream), wrong))
        status = await status_of(stream)
        assert status["state"] == "TASK_ERROR"
        assert (status["source"], status["reason"]) == ("SOURCE_MASTER", "REASON_TASK_INVALID")
        assert "uuid" not in status


@pytest.mark.parametrize(
    ("capabilities", "states"),
    [
        ([], ["TASK_LOST", "TASK_LOST", "TASK_LOST", "TASK_LOST"]),
        (AWARE, ["TASK_DROPPED", "TASK_UNKNOWN", "TASK_GONE", "TASK_UNKNOWN"]),
    ],
    ids=["not-aware", "partition-aware"],
)
async def test_lost_stands_for_what_only_the_partition_aware_know(
    capabilities: list[dict[str, str]], states: list[str]
) -> None:
    async with serving() as master, master.client() as client:
        async with client.subscribed(capabilities=capabilities) as stream:
            await welcomed(stream)
            agent = master.agent("a")
            dead = {"id": {"value": "no-offer"}}
            found = []
            await client.call(stream, "ACCEPT", **launch(dead, task("t", agent.id)))
            status = await status_of(stream)
            assert status["reason"] == "REASON_INVALID_OFFERS"
            found.append(status["state"])
            known = {"task_id": {"value": "t"}, "agent_id": {"value": agent.id}}
            for asked in ({"task_id": {"value": "t"}}, known):
                await client.call(stream, "RECONCILE", reconcile={"tasks": [asked]})
                status = await status_of(stream)
                assert (status["reason"], "uuid" in status) == ("REASON_RECONCILIATION", False)
                found.append(status["state"])
            await client.call(stream, "KILL", kill={"task_id": {"value": "t"}})
            found.append((await status_of(stream))["state"])
    assert found == states


@pytest.mark.parametrize(
    ("capabilities", "state"), [([], "TASK_LOST"), (AWARE, "TASK_UNREACHABLE")]
)
async def test_an_agent_that_does_not_come_back(
    capabilities: list[dict[str, str]], state: str
) -> None:
    async with serving(agent_reregister_timeout_s=0.05) as master, master.client() as client:
        async with client.subscribed(capabilities=capabilities) as stream:
            await welcomed(stream)
            agent = master.agent("a")
            await client.call(
                stream, "ACCEPT", **launch(await offered(stream), task("t", agent.id))
            )
            agent.disconnect()
            failure = await stream.event("FAILURE")
            assert failure["failure"] == {"agent_id": {"value": agent.id}}
            status = await status_of(stream)
            assert (status["state"], status["reason"]) == (state, "REASON_AGENT_REMOVED")
            assert "unreachable_time" in status


async def test_reconciliation_of_all_tasks() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        agent = master.agent("a")
        tasks = [task(name, agent.id) for name in ("s", "t")]
        await client.call(stream, "ACCEPT", **launch(await offered(stream), *tasks))
        agent.report(stream.framework_id, "t", pb.TASK_RUNNING)
        await status_of(stream)
        await client.call(stream, "RECONCILE", reconcile={})
        told = [await status_of(stream) for _ in range(2)]
        assert {s["task_id"]["value"]: s["state"] for s in told} == {
            "s": "TASK_STAGING",
            "t": "TASK_RUNNING",
        }


async def test_operations_that_nobody_knows() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        asked = {"operation_id": {"value": "o"}, "agent_id": {"value": "a"}}
        part = {"operations": [asked]}
        assert (await client.call(stream, "RECONCILE_OPERATIONS", reconcile_operations=part)) == (
            202,
            b"",
        )
        event = await stream.event("UPDATE_OPERATION_STATUS")
        status = event["update_operation_status"]["status"]
        assert (status["state"], status["operation_id"]) == ("OPERATION_UNKNOWN", {"value": "o"})
        assert status["agent_id"] == {"value": "a"}
        assert "uuid" not in status


async def test_kill_and_messages_reach_the_agent() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        agent = master.agent("a")
        executor = {"executor_id": {"value": "e"}, "command": {"value": "run"}}
        wanted = task("t", agent.id, executor=executor)
        del wanted["command"]
        await client.call(stream, "ACCEPT", **launch(await offered(stream), wanted))
        kill = {"task_id": {"value": "t"}, "kill_policy": {"grace_period": {"nanoseconds": 5}}}
        await client.call(stream, "KILL", kill=kill)
        (order,) = agent.take(agent_pb2.Event.KILL_TASK)
        assert order.kill_task.kill_policy.grace_period.nanoseconds == 5
        to = {"agent_id": {"value": agent.id}, "executor_id": {"value": "e"}}
        await client.call(stream, "MESSAGE", message={**to, "data": "aGk="})
        (message,) = agent.take(agent_pb2.Event.EXECUTOR_MESSAGE)
        assert message.executor_message.data == b"hi"


async def test_a_declined_offer_comes_again_after_its_filter() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        master.agent("a")
        offer = await offered(stream)
        part = {"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 31536000}}
        await client.call(stream, "DECLINE", decline=part)
        # Only REVIVE brings it back before that.
        await client.call(stream, "REVIVE")
        again = await offered(stream)
        assert again["id"] != offer["id"]
        assert again["agent_id"] == offer["agent_id"]


async def test_an_offer_of_an_agent_that_goes_is_rescinded() -> None:
    async with serving() as master, master.client() as client, client.subscribed() as stream:
        await welcomed(stream)
        agent = master.agent("a")
        offer = await offered(stream)
        agent.disconnect()
        assert (await stream.event("RESCIND"))["rescind"] == {"offer_id": offer["id"]}


async def test_two_frameworks_over_both_forms_do_not_hear_of_each_other() -> None:
    async with serving() as master:
        await _beside(master)


async def _beside(master: HttpMaster) -> None:
    async with (
        master.client(Media.JSON) as one,
        master.client(Media.PROTOBUF) as two,
        one.subscribed() as first,
        two.subscribed() as second,
    ):
        await welcomed(first)
        await welcomed(second)
        assert first.framework_id != second.framework_id
        # Nobody speaks on another one's stream.
        foreign = Stream(first.connection, first.head, first.media, second.framework_id)
        assert (await one.call(foreign, "TEARDOWN"))[0] == 400
        await two.call(second, "KILL", kill={"task_id": {"value": "t"}})
        assert (await second.event("UPDATE"))["type"] == "UPDATE"
        await one.call(first, "TEARDOWN")
        assert await first.next() is None
